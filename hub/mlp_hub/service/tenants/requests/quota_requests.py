"""Requests of tenants for more quota: asked by an admin of the tenant, decided by one of the platform.

What is accepted becomes the quota in the transaction that says so, so that neither is there without the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from mlp_api.teams import teams as api
from mlp_hub.domain.dimensions import COUNTED
from mlp_hub.domain.errors import Reason, Refused, not_found
from mlp_hub.domain.notices.notice import AskedFor, NoticeKind
from mlp_hub.domain.quantities import quantity
from mlp_hub.domain.resources import Quota, units
from mlp_hub.domain.tenants.requests import ASK_MACHINE, AskedQuota, AskPhase
from mlp_hub.service.support.people_notices import PeopleNotices
from mlp_hub.service.support.uids import UidMaker
from mlp_hub.service.support.units import amounts_to, maybe_when, quota_from, when
from mlp_hub.service.tenants.service import TenantService
from mlp_hub.store import Database, Tx
from mlp_language.message import msg

KEPT = 50
"""Tuning: requests of one tenant that are kept and shown: its admins' look back against the table's size."""
SHOWN = 1000
"""Safety: open requests of all tenants in one answer: each tenant has one at most."""


class QuotaRequests:
    """The requests. `actor` is who asks or decides; whether they may is for the caller to say."""

    def __init__(
        self, db: Database, tenants: TenantService, clock: Callable[[], float], notices: PeopleNotices
    ) -> None:
        self._db = db
        self._tenants = tenants
        self._clock = clock
        self._notices = notices
        self._uids = UidMaker()  # an id in a path begins with a letter, as all names do

    async def of_tenant(self, tenant: str) -> list[api.QuotaRequest]:
        """Return the newest of a tenant, the newest first. Raises `NotFound`."""
        await self._tenants.get(tenant)
        return [to_wire(one) for one in await self._db.read(lambda tx: tx.asking.of_tenant(tenant, KEPT))]

    async def open_ones(self) -> list[api.QuotaRequest]:
        """Return those of all tenants that wait for an answer, the oldest first."""
        return [to_wire(one) for one in await self._db.read(lambda tx: tx.asking.open_ones(SHOWN))]

    async def ask(
        self, tenant: str, asked: api.QuotaAsk, *, actor: str, of: Sequence[str] = ()
    ) -> api.QuotaRequest:
        """Ask for more; one request at a time; `of` are told, who decide. Raises `NotFound`, `Conflict`, `Invalid`."""
        amounts = dict(quota_from(asked).items())
        now = self._clock()
        new = AskedQuota(f"r{self._uids.make(now)}", tenant, actor, now, tuple(amounts.items()), asked.reason)

        def work(tx: Tx) -> tuple[AskedQuota, set[str]]:
            found = tx.tenants.get(tenant)
            if found is None:
                raise not_found("tenant", tenant)
            if any(one.phase is AskPhase.OPEN for one in tx.asking.of_tenant(tenant, KEPT)):
                raise Refused(
                    Reason.CONFLICT,
                    msg(
                        "{tenant} already has a request that waits for an answer; withdraw it to ask for something else",
                        tenant=tenant,
                    ),
                )
            _check_more(tenant, found.quota, amounts)
            tx.asking.insert(new)
            tx.asking.trim(tenant, KEPT)
            detail = {
                "after": _said(amounts),
                "before": _said(_now(found.quota, amounts)),
                "reason": asked.reason,
            }
            tx.audit.add(now, actor, "quota.ask", tenant, tenant=tenant, detail=detail)
            text = msg(
                "{user} asks for more quota of {tenant}: {reason}",
                user=actor,
                tenant=tenant,
                reason=asked.reason,
            )
            return new, self._notices.asked(tx, of, (NoticeKind.ASKED, AskedFor.QUOTA), tenant, text)

        found, who = await self._db.write(work)
        self._notices.notify(who)
        return to_wire(found)

    async def withdraw(self, tenant: str, uid: str, *, actor: str) -> api.QuotaRequest:
        """Take a request back. Raises `NotFound`, `WrongState`."""
        return to_wire(
            await self._db.write(lambda tx: self._decide(tx, tenant, uid, AskPhase.WITHDRAWN, actor=actor))
        )

    async def decline(self, tenant: str, uid: str, word: str, *, actor: str) -> api.QuotaRequest:
        """Say no, with a word. Raises `NotFound`, `WrongState`."""

        def work(tx: Tx) -> tuple[AskedQuota, set[str]]:
            decided = self._decide(tx, tenant, uid, AskPhase.DECLINED, actor=actor, word=word)
            return decided, self._answered(tx, decided)

        found, who = await self._db.write(work)
        self._notices.notify(who)
        return to_wire(found)

    async def accept(self, tenant: str, uid: str, word: str, *, actor: str) -> api.QuotaRequest:
        """Grant a request; larger values that the tenant has by now stay. Raises the errors of a tenant change."""

        def work(tx: Tx) -> tuple[AskedQuota, set[str]]:
            decided = self._decide(tx, tenant, uid, AskPhase.ACCEPTED, actor=actor, word=word)
            found = tx.tenants.get(tenant)
            assert found is not None  # noqa: S101 - its requests go with it
            more = {d: n for d, n in decided.amounts if found.quota.part(d) is not None}
            raised = {d: max(n, found.quota.part(d) or 0) for d, n in more.items()}
            self._tenants.set_quota(tx, tenant, found.quota.with_parts(raised), actor)
            return decided, self._answered(tx, decided)

        answered, who = await self._tenants.in_transaction(work)
        self._notices.notify(who)
        return to_wire(answered)

    def _answered(self, tx: Tx, decided: AskedQuota) -> set[str]:
        """Tell who asked what was decided."""
        args = {"who": decided.decided_by or "", "tenant": decided.tenant, "word": decided.word}
        if decided.phase is AskPhase.ACCEPTED:
            text = msg("{who} accepted your request for {tenant}. {word}", **args)
        else:
            text = msg("{who} declined your request for {tenant}. {word}", **args)
        return self._notices.asked(
            tx, [decided.user], (NoticeKind.ANSWERED, AskedFor.QUOTA), decided.tenant, text
        )

    def _decide(
        self, tx: Tx, tenant: str, uid: str, phase: AskPhase, *, actor: str, word: str = ""
    ) -> AskedQuota:
        asked = tx.asking.get(tenant, uid)
        if asked is None:
            raise not_found("request", uid)
        if asked.phase is not AskPhase.OPEN:
            raise Refused(
                Reason.WRONG_STATE,
                msg(
                    "the request of {tenant} is already decided: {state}, by {who}",
                    tenant=tenant,
                    state=asked.phase.value,
                    who=asked.decided_by or "",
                ),
            )
        ASK_MACHINE.check(asked.phase, phase, name=tenant)
        now = self._clock()
        decided = replace(asked, phase=phase, decided_by=actor, decided_at=now, word=word)
        tx.asking.update(decided)
        detail = {
            "user": asked.user,
            "amounts": _said(dict(asked.amounts)),
            **({"word": word} if word else {}),
        }
        tx.audit.add(now, actor, _ACTIONS[phase], tenant, tenant=tenant, detail=detail)
        return decided


_ACTIONS = {
    AskPhase.ACCEPTED: "quota.accept",
    AskPhase.DECLINED: "quota.decline",
    AskPhase.WITHDRAWN: "quota.withdraw",
}


def to_wire(asked: AskedQuota) -> api.QuotaRequest:
    """Return a request as on the wire."""
    of = dict(asked.amounts)
    return api.QuotaRequest(
        id=asked.uid,
        tenant=asked.tenant,
        user=asked.user,
        asked_at=when(asked.asked_at),
        cpu=units(of["cpu"]) if "cpu" in of else None,
        gpu=units(of["gpu"]) if "gpu" in of else None,
        ram=of.get("ram"),
        rom=of.get("rom"),
        amounts={d: of[d] for d in COUNTED if d in of},
        reason=asked.reason,
        state=asked.phase.value,
        decided_by=asked.decided_by,
        decided_at=maybe_when(asked.decided_at),
        word=asked.word,
    )


def _now(quota: Quota, amounts: Mapping[str, int]) -> dict[str, int]:
    return {dimension: quota.part(dimension) or 0 for dimension in amounts}


def _check_more(tenant: str, quota: Quota, amounts: Mapping[str, int]) -> None:
    if not amounts:
        raise Refused(
            Reason.INVALID,
            msg("ask for something: cpu, gpu, ram or storage, each as the total that the team should have"),
        )
    for dimension, amount in amounts.items():
        has = quota.part(dimension)
        if has is None:
            raise Refused(
                Reason.INVALID,
                msg(
                    "{tenant} has no limit of {dimension}: leave it out",
                    tenant=tenant,
                    dimension=msg("storage") if dimension == "rom" else dimension,
                ),
            )
        if amount <= has:
            raise Refused(
                Reason.INVALID,
                msg(
                    "{tenant} already has {has}, which is not less than {amount}; give the total that it should have",
                    tenant=tenant,
                    has=quantity(dimension, has),
                    amount=quantity(dimension, amount),
                ),
            )


def _said(amounts: Mapping[str, int]) -> dict[str, float]:
    return amounts_to(amounts)
