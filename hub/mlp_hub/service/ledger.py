"""The ledger: try, confirm, cancel and release of resources, with expiry.

Every call is one write transaction, and write transactions exclude each other, so that what is checked cannot
change before it is taken. In-use is summed up from the rows that hold; a try whose time is over holds nothing,
whether it was swept or not. All calls may be repeated.

    try request  ->  tried      holds; expires
    confirm      ->  confirmed  holds until it is released
    cancel       ->  cancelled  holds nothing
    try release  ->  releasing  still holds; cancel and expiry take it back to confirmed; confirm -> released

A try of a notebook server whose room others have borrowed becomes a claim (see `claims`): it holds nothing, and is tried
again by whoever asked until it holds or expires.

A release under a new id with an amount (an anonymous one) gives back, when confirmed, from the oldest confirmed
requests of the same applier in the same tenant. Requests that take a node's capacity are given back by their
own id only: what runs there would not shrink.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from mlp_api import types as api
from mlp_hub.domain.errors import Reason, Refused, not_found
from mlp_hub.domain.ledger import RequestPhase, ResourceRequest, check_request_move
from mlp_hub.domain.resources import ZERO, Resources
from mlp_hub.executors.base import NodeInfo
from mlp_hub.scheduler.words import amount as words
from mlp_hub.service import quota
from mlp_hub.service.claims import (
    Reclaimer,
    claim_of,
    may_claim,
    node_use,
    sentence,
    set_aside,
    uid_of,
)
from mlp_hub.service.wire import amount_of_try
from mlp_hub.store import Database, Tx

T = TypeVar("T")
P = RequestPhase
TTL_S = 120.0
KEEP_S = 7 * 86_400.0
NODE_APPLIERS = frozenset({"sp"})  # what they run, they run on a node that the ledger chooses


class Ledger:
    """The one place where resources are taken and given back.

    `nodes` lists the nodes as they are now; `ttl_s` is how long a try holds; `changed` is called on the event
    loop after every call that may have made room or taken it; `asks` with the tenant of each request before it is tried;
    `reclaimer` decides about claims, which stand for `claim_s` after each try: without it nothing is claimed.
    """

    def __init__(
        self,
        db: Database,
        clock: Callable[[], float],
        nodes: Callable[[], Sequence[NodeInfo]],
        *,
        ttl_s: float = TTL_S,
        changed: Callable[[], None] = lambda: None,
        asks: Callable[[str], Awaitable[None]] | None = None,
        reclaimer: Reclaimer | None = None,
        claim_s: float = TTL_S,
    ) -> None:
        self._db = db
        self._clock = clock
        self._nodes = nodes
        self._ttl_s = ttl_s
        self.changed = changed
        self._asks = asks
        self._reclaimer = reclaimer
        self._claim_s = claim_s

    async def try_(self, asked: api.ResourceRequestTry) -> ResourceRequest | None:
        """Try to hold, or to give back; return the row with the node it got (None: nothing to give back).

        Raises `Refused`: `ExceedsMaxQuota`, `WaitingForQuota`, `WaitingForResources`, `NotFound` (tenant),
        `Conflict` (the id means another amount), `WrongState`, `Invalid`; `WaitingForPreempted` when room is being made
        for it, which is kept for whoever tries again.
        """
        if self._asks is not None and asked.request_type == "request":
            await self._asks(asked.tenant)
        reclaimer = self._reclaimer
        if reclaimer is None or asked.request_type != "request" or asked.applier not in NODE_APPLIERS:
            return await self._write(lambda tx: self.try_in(tx, asked))
        row, refused = await self._write(lambda tx: self._try_or_claim(tx, asked))
        if refused is None or row is None:
            return _answered(row, refused)
        outlook = await reclaimer.outlook(uid_of(row))
        if outlook is None:
            await self._write(lambda tx: self._give_up_claim(tx, asked.applier, asked.id))
            raise refused
        row, refused = await self._write(lambda tx: self._try_or_claim(tx, asked))  # there may be room by now
        if refused is None or row is None:
            return _answered(row, refused)
        raise sentence(asked.tenant, outlook, self._claim_s, refused)

    async def confirm(self, key: api.ResourceRequestKey) -> None:
        """Make a try lasting; without one, nothing. Raises `WrongState` when it expired or was cancelled."""
        await self._write(lambda tx: self.confirm_in(tx, key.applier, key.id))

    async def cancel(self, key: api.ResourceRequestKey) -> None:
        """Take a try back; without one, nothing. Raises `WrongState` when it was confirmed."""
        await self._write(lambda tx: self.cancel_in(tx, key.applier, key.id))

    async def sweep(self) -> int:
        """Write down which tries expired, forget rows that ended long ago; return how many expired."""
        now = self._clock()

        def work(tx: Tx) -> int:
            tx.ledger.purge(now - KEEP_S)
            return self.expire(tx, now)

        expired = await self._db.write(work)
        if expired:
            self.changed()
        return expired

    # ------------------------------------------------ inside a transaction

    def try_in(self, tx: Tx, asked: api.ResourceRequestTry) -> ResourceRequest | None:
        """Do what `try_` does inside a transaction."""
        now = self._clock()
        if "\0" in f"{asked.id}{asked.holder}{asked.user}{asked.node}{asked.gpu_kind}":
            raise Refused(Reason.INVALID, "a resource request holds a NUL character; leave it out")
        wanted = self._wanted(asked, now)
        row = self._row(tx, asked.applier, asked.id, now)
        if asked.request_type == "request":
            return self._try_request(tx, wanted, row, now)
        return self._try_release(tx, wanted, row, now)

    def confirm_in(self, tx: Tx, applier: str, request_id: str) -> None:
        """Do what `confirm` does inside a transaction."""
        now = self._clock()
        row = self._row(tx, applier, request_id, now)
        if row is None:
            return
        if row.phase is P.TRIED and row.kind == "release":
            self._give_back(tx, row)
            self._move(tx, row, P.RELEASED, "confirm")
        elif row.phase is P.TRIED:
            self._move(tx, row, P.CONFIRMED, "confirm")
        elif row.phase is P.RELEASING:
            self._move(tx, row, P.RELEASED, "confirm")
        elif row.phase in (P.CONFIRMED, P.RELEASED) and row.last in ("confirm", "cancel"):
            return
        else:
            how = "expired before its confirm" if row.last == "expire" else f"is {row.phase}"
            raise Refused(
                Reason.WRONG_STATE,
                f"resource request {applier}/{request_id} {how} and cannot be confirmed; try it again. "
                f"A try holds for {self._ttl_s:g} s",
            )

    def cancel_in(self, tx: Tx, applier: str, request_id: str) -> None:
        """Do what `cancel` does inside a transaction."""
        row = self._row(tx, applier, request_id, self._clock())
        if row is None or row.phase in (P.CANCELLED, P.EXPIRED):
            return
        if row.phase in (P.TRIED, P.CLAIMED):
            self._move(tx, row, P.CANCELLED, "cancel")
        elif row.phase is P.RELEASING:
            self._move(tx, row, P.CONFIRMED, "cancel")
        elif row.kind == "release" or (row.phase is P.CONFIRMED and row.last == "confirm"):
            raise Refused(
                Reason.WRONG_STATE,
                f"resource request {applier}/{request_id} is {row.phase} and cannot be cancelled; "
                + ("ask for the amount anew" if row.kind == "release" else "release it"),
            )

    def expire(self, tx: Tx, now: float) -> int:
        """Write down which claims and tries are over: requests hold nothing any more, releases are taken back."""
        rows = tx.ledger.expired(now)
        for row in rows:
            tx.ledger.put(_settled(row, now))
        return len(rows)

    # ----------------------------------------------------------- the rules

    def _try_request(
        self, tx: Tx, wanted: ResourceRequest, row: ResourceRequest | None, now: float
    ) -> ResourceRequest:
        if row is not None and row.held:
            _check_same(row, wanted)
            return row
        if row is not None and row.kind == "release" and row.phase in (P.TRIED, P.RELEASED):
            raise Refused(
                Reason.CONFLICT, f"id {row.id} of {row.applier} belongs to a release; use another id"
            )
        # what is set aside for others is theirs; what is set aside for this one is what it takes now
        claims = [c for c in set_aside(tx.ledger.claims(now)) if uid_of(c) != uid_of(wanted)]
        quota.Quotas(tx, now, self._nodes(), claims).check(wanted.tenant, wanted.amount)
        if wanted.applier in NODE_APPLIERS or wanted.node is not None:
            used = node_use(tx, now, claims)
            node = quota.choose_node(wanted.amount, self._nodes(), used, wanted.node)
            wanted = replace(wanted, node=node, shares=((node, wanted.amount.but(rom=0)),))
        tx.ledger.put(wanted)
        return wanted

    def _try_release(
        self, tx: Tx, wanted: ResourceRequest, row: ResourceRequest | None, now: float
    ) -> ResourceRequest | None:
        if row is not None and row.kind == "request":
            return self._try_whole_release(tx, wanted, row)
        wanted = replace(wanted, kind="release", node=None)
        if row is not None and row.phase in (P.TRIED, P.RELEASED):
            _check_same(row, wanted)
            return row
        if wanted.amount.is_zero:
            return None  # nothing under this id, and no amount: there is nothing to give back
        _tenant_must_exist(tx, wanted.tenant)
        earmarked = tx.ledger.tried_releases(wanted.applier, wanted.tenant, now)
        held = _total(r.amount for r in self._givers(tx, wanted))
        room = {d: n - _parts(earmarked).get(d, 0) for d, n in _parts(held).items()}
        if any(n > room.get(d, 0) for d, n in _parts(wanted.amount).items()):
            raise Refused(
                Reason.WRONG_STATE,
                f"{wanted.applier} holds {words(_whole(room))} in {wanted.tenant} that may be given back by amount; "
                f"this gives back {words(wanted.amount)}. Give back that much at most, or name the id of a request",
            )
        tx.ledger.put(wanted)
        return wanted

    def _try_whole_release(self, tx: Tx, wanted: ResourceRequest, row: ResourceRequest) -> ResourceRequest:
        if not wanted.amount.is_zero and wanted.amount != row.amount:
            raise Refused(
                Reason.INVALID,
                f"resource request {row.applier}/{row.id} is over {words(row.amount)} and is released as a whole; "
                f"leave {words(wanted.amount)} out, or release it under a new id",
            )
        if row.phase is P.CONFIRMED:
            return self._move(tx, row, P.RELEASING, "release", expires_at=wanted.expires_at)
        if row.phase in (P.TRIED, P.CLAIMED):
            raise Refused(
                Reason.WRONG_STATE,
                f"resource request {row.applier}/{row.id} is {row.phase} and cannot be released; cancel it",
            )
        return row

    def _give_back(self, tx: Tx, release: ResourceRequest) -> None:
        """Take the released amount off the oldest confirmed requests; one that is left with nothing has ended."""
        left = _parts(release.amount)
        for row in self._givers(tx, release):
            have = _parts(row.amount)
            rest = {d: n - min(n, left.get(d, 0)) for d, n in have.items()}
            if rest == have:
                continue
            left = {d: n - (have.get(d, 0) - rest.get(d, 0)) for d, n in left.items()}
            if any(rest.values()):
                tx.ledger.put(replace(row, amount=_whole(rest)))
            else:
                self._move(tx, row, P.RELEASED, "release")

    def _givers(self, tx: Tx, release: ResourceRequest) -> list[ResourceRequest]:
        held = tx.ledger.held(self._clock(), tenant=release.tenant, applier=release.applier)
        return [r for r in held if r.phase is P.CONFIRMED and not r.shares]

    def _try_or_claim(
        self, tx: Tx, asked: api.ResourceRequestTry
    ) -> tuple[ResourceRequest | None, Refused | None]:
        """Try; where that is refused, claim if it may. Returns the row that holds or claims, and the refusal."""
        try:
            return self.try_in(tx, asked), None
        except Refused as refused:
            now = self._clock()
            wanted = self._wanted(asked, now)
            before = self._row(tx, asked.applier, asked.id, now)
            pinned = asked.node is not None or (before is not None and before.kind == "release")
            quotas = quota.Quotas(tx, now, self._nodes())
            if pinned or not may_claim(wanted, refused, quotas):
                self._give_up_claim(tx, asked.applier, asked.id)
                return None, refused
            claim = claim_of(wanted, before, now + self._claim_s)
            tx.ledger.put(claim)
            return claim, refused

    def _give_up_claim(self, tx: Tx, applier: str, request_id: str) -> None:
        """End a claim for which no room can be made, or that may be none any more."""
        row = self._row(tx, applier, request_id, self._clock())
        if row is not None and row.phase is P.CLAIMED:
            self._move(tx, row, P.CANCELLED, "claim")

    def _wanted(self, asked: api.ResourceRequestTry, now: float) -> ResourceRequest:
        return ResourceRequest(
            id=asked.id,
            applier=asked.applier,
            tenant=asked.tenant,
            amount=amount_of_try(asked),
            phase=P.TRIED,
            created_at=now,
            expires_at=now + self._ttl_s,
            node=asked.node,
            holder=asked.holder,
            user=asked.user,
        )

    def _row(self, tx: Tx, applier: str, request_id: str, now: float) -> ResourceRequest | None:
        row = tx.ledger.get(applier, request_id)
        return None if row is None else _settled(row, now)

    def _move(
        self, tx: Tx, row: ResourceRequest, new: RequestPhase, by: str, *, expires_at: float | None = None
    ) -> ResourceRequest:
        check_request_move(row, new)
        moved = replace(row, phase=new, expires_at=expires_at, last=by)
        tx.ledger.put(moved)
        return moved

    async def _write(self, fn: Callable[[Tx], T]) -> T:
        result = await self._db.write(fn)
        self.changed()
        return result


def _answered(row: ResourceRequest | None, refused: Refused | None) -> ResourceRequest | None:
    if refused is not None:
        raise refused
    return row


def _settled(row: ResourceRequest, now: float) -> ResourceRequest:
    """Return the row as it is at `now`, whether its expiry was written down or not."""
    if not row.expired(now):
        return row
    new = P.CONFIRMED if row.phase is P.RELEASING else P.EXPIRED
    check_request_move(row, new)
    return replace(row, phase=new, expires_at=None, last="expire")


def _check_same(row: ResourceRequest, wanted: ResourceRequest) -> None:
    """Raise `Conflict` when a repeated try asks for something else: answering "held" would be a lie."""
    if (row.tenant, row.amount) == (wanted.tenant, wanted.amount):
        return
    raise Refused(
        Reason.CONFLICT,
        f"resource request {row.applier}/{row.id} is over {words(row.amount)} of {row.tenant}, not over "
        f"{words(wanted.amount)} of {wanted.tenant}; end it first, or use another id",
    )


def _tenant_must_exist(tx: Tx, tenant: str) -> None:
    if tx.tenants.get(tenant) is None:
        raise not_found("tenant", tenant)


def _total(amounts: Iterable[Resources]) -> Resources:
    total = ZERO
    for amount in amounts:
        total += amount
    return total


def _parts(amount: Resources) -> dict[str, int]:
    """Split an amount into parts that do not overlap: gpus of a kind are not also gpus of any kind."""
    named = dict(amount.kinds)
    parts = {"cpu": amount.cpu, "gpu": amount.gpu - sum(named.values()), "ram": amount.ram, "rom": amount.rom}
    return {**parts, **{f"gpu:{k}": v for k, v in named.items()}}


def _whole(parts: Mapping[str, int]) -> Resources:
    """Put the parts together again; those below zero count as nothing."""
    p = {d: max(n, 0) for d, n in parts.items()}
    kinds = tuple(sorted((d.removeprefix("gpu:"), n) for d, n in p.items() if d.startswith("gpu:") and n))
    gpu = p.get("gpu", 0) + sum(n for _, n in kinds)
    return Resources(p.get("cpu", 0), gpu, p.get("ram", 0), p.get("rom", 0), kinds)
