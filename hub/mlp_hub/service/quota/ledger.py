"""Ledger: try, confirm, cancel and release of resources, with expiry.

Every call is one write transaction. Write transactions exclude each other, so a checked amount cannot change
before it is taken. The amount in use is the sum of the rows that hold; an expired try holds nothing, whether it
was swept or not. All calls may be repeated.

    try request  ->  tried      holds; expires
    confirm      ->  confirmed  holds until it is released
    cancel       ->  cancelled  holds nothing
    try release  ->  releasing  still holds; cancel and expiry take it back to confirmed; confirm -> released

A request of an applier whose requests are workloads (`domain.workload.workload`) is not tried here. It is
pending until a cycle of the scheduler admits it, in one order with jobs; then it is a try that holds. A repeated
request keeps its place, and an abandoned one expires. Requests that name their node, or need storage, are tried
at once, because stopped work gives no storage back.

A release under a new id with an amount (an anonymous one) gives back, when confirmed, from the oldest confirmed
requests of the same applier in the same tenant. Requests that take a node's capacity are given back by their
own id only: the work that runs there would not shrink.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol, TypeVar

from mlp_api import types as api
from mlp_hub.domain.errors import Reason, Refused, not_found
from mlp_hub.domain.quantities import quantities
from mlp_hub.domain.resources import ZERO, Resources, amount_of
from mlp_hub.domain.runtime.environment import EnvironmentPhase
from mlp_hub.domain.workload.ledger import RequestPhase, ResourceRequest, check_request_move
from mlp_hub.domain.workload.workload import KINDS
from mlp_hub.executors.nodes import NodeInfo
from mlp_hub.service.quota import accounting, caps
from mlp_hub.service.support import limits
from mlp_hub.service.support.told import notifying
from mlp_hub.service.support.units import amount_of_try
from mlp_hub.store import Database, Tx
from mlp_language.message import msg

T = TypeVar("T")
P = RequestPhase
KEEP_S = 7 * 86_400.0
"""Safety: seconds from their making for which rows that hold nothing any more are kept: bounds the table."""
PLACE_S = 120.0
"""Tuning: seconds that a pending request keeps its place without a renewal.

The grace of work that is stopped for it is added. It trades a place held for nobody for a longer
pause between renewals.
"""
_PASSING = frozenset({Reason.WAITING_FOR_QUOTA, Reason.WAITING_FOR_RESOURCES})
"""Refusals of requests that can succeed later."""


class Scheduler(Protocol):
    """Decides about pending requests."""

    async def decided(self, request: ResourceRequest) -> ResourceRequest:
        """Return the row of a pending request once it holds. Raises `Refused` with the reason where it waits on."""
        ...


class Ledger:
    """The one place where resources are taken and given back.

    `nodes` lists the nodes as they are now; `ttl_s` is how long a try holds; `changed` is called on the event
    loop after every call that may have made room or taken it; `asks` with the tenant of each request before it is tried;
    `refuses` says why nothing may be held now, if that is so, and `refuses_new` why nothing more of a tenant on nodes; `scheduler` decides about pending requests, which keep their place for
    `place_s` after each try: without it nothing is pending.
    """

    def __init__(
        self,
        db: Database,
        clock: Callable[[], float],
        nodes: Callable[[], Sequence[NodeInfo]],
        *,
        ttl_s: float = limits.UNCONFIRMED_S,
        changed: Callable[[], None] = lambda: None,
        asks: Callable[[str], Awaitable[None]] | None = None,
        refuses: Callable[[], Refused | None] = lambda: None,
        refuses_new: Callable[[str], Refused | None] = lambda _: None,
        scheduler: Scheduler | None = None,
        place_s: float = limits.UNCONFIRMED_S,
    ) -> None:
        self._db = db
        self._clock = clock
        self._nodes = nodes
        self._ttl_s = ttl_s
        self.changed = changed
        self._asks = asks
        self._refuses = refuses
        self._refuses_new = refuses_new
        self._scheduler = scheduler
        self._place_s = place_s

    async def try_(self, asked: api.ResourceRequestTry) -> ResourceRequest | None:
        """Try to hold, or to give back; return the row with the node it got (None: nothing to give back).

        Raises `Refused`: `ExceedsMaxQuota`, `WaitingForQuota`, `WaitingForResources`, `NotFound` (tenant),
        `Conflict` (the id means another amount), `WrongState`, `Invalid`; `DiskFull`; of a pending request the
        reason for which it waits.
        """
        if asked.request_type == "request" and (refused := self._refuses()) is not None:
            raise refused
        if self._asks is not None and asked.request_type == "request":
            await self._asks(asked.tenant)
        if self._scheduler is None or not _is_workload(asked):
            return await self._write(lambda tx: self.try_in(tx, asked))
        row = await self._write(lambda tx: self._ask_in(tx, asked))
        if isinstance(row, Refused):
            raise row
        try:
            return row if row.held else await self._scheduler.decided(row)
        except Refused as waits:
            if waits.retry_after is None:  # it can never be admitted
                await self.cancel(api.ResourceRequestKey(id=asked.id, applier=asked.applier))
            raise

    async def confirm(self, key: api.ResourceRequestKey) -> None:
        """Make a try lasting; without one, nothing. Raises `WrongState` when it expired or was cancelled."""
        await self._write(lambda tx: self.confirm_in(tx, key.applier, key.id))

    async def cancel(self, key: api.ResourceRequestKey) -> None:
        """Take a try back; without one, nothing. Raises `WrongState` when it was confirmed."""
        await self._write(lambda tx: self.cancel_in(tx, key.applier, key.id))

    async def expire_requests(self) -> int:
        """Write down which tries expired, forget rows that ended long ago; return how many expired."""
        now = self._clock()

        def work(tx: Tx) -> int:
            tx.ledger.purge(now - KEEP_S)
            return self.expire(tx, now)

        return await notifying(self._db.write(work), self.changed, news=bool)

    # ------------------------------------------------ inside a transaction

    def try_in(self, tx: Tx, asked: api.ResourceRequestTry) -> ResourceRequest | None:
        """Do what `try_` does inside a transaction."""
        now = self._clock()
        wanted, row = self._wanted(asked, now), self._row(tx, asked.applier, asked.id, now)
        if asked.request_type == "release":
            return self._try_release(tx, wanted, row, now)
        if _holds(row, wanted):
            return row
        self._check_new(wanted)
        placed = self._placed(tx, wanted, now)
        caps.check(tx, wanted, now, later=False)
        tx.ledger.put(placed)
        return placed

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
            how = msg("expired before it was confirmed")
            if row.last != "expire":
                how = msg("is {phase}", phase=row.phase)
            raise Refused(
                Reason.WRONG_STATE,
                msg(
                    "resource request {applier}/{request_id} {how} and cannot be confirmed; try it again. A try is valid for {ttl_s} s",
                    applier=applier,
                    request_id=request_id,
                    how=how,
                    ttl_s=self._ttl_s,
                ),
            )

    def cancel_in(self, tx: Tx, applier: str, request_id: str) -> None:
        """Do what `cancel` does inside a transaction."""
        row = self._row(tx, applier, request_id, self._clock())
        if row is None or row.phase in (P.CANCELLED, P.EXPIRED):
            return
        if row.phase in (P.TRIED, P.PENDING):
            self._move(tx, row, P.CANCELLED, "cancel")
        elif row.phase is P.RELEASING:
            self._move(tx, row, P.CONFIRMED, "cancel")
        elif row.kind == "release" or (row.phase is P.CONFIRMED and row.last == "confirm"):
            raise Refused(
                Reason.WRONG_STATE,
                msg(
                    "resource request {applier}/{request_id} is {phase} and cannot be cancelled; {way}",
                    applier=applier,
                    request_id=request_id,
                    phase=row.phase,
                    way=msg("ask for the amount again") if row.kind == "release" else msg("release it"),
                ),
            )

    async def put_off(self, by: float) -> None:
        """Keep the length of all timed states, though the wall clock was set by `by` seconds."""
        await self._db.write(lambda tx: tx.ledger.put_off(by))

    def expire(self, tx: Tx, now: float) -> int:
        """Write down which pending requests and tries are over: requests hold nothing any more, releases are taken back."""
        rows = tx.ledger.expired(now)
        for row in rows:
            tx.ledger.put(_settled(row, now))
        return len(rows)

    # ----------------------------------------------------------- the rules

    def _placed(self, tx: Tx, wanted: ResourceRequest, now: float) -> ResourceRequest:
        """Return the request with its node. Raises `Refused` without room, or without such an environment."""
        if wanted.environment is not None:
            _check_environment(tx, wanted.environment, wanted.tenant)
        accounting.Quotas(tx, now, self._nodes()).check(wanted.tenant, wanted.amount)
        if wanted.applier not in KINDS and wanted.node is None:
            return wanted
        used = tx.ledger.node_use(now)
        node = accounting.choose_node(wanted.tenant, wanted.amount, self._nodes(), used, wanted.node)
        return replace(wanted, node=node, shares=((node, wanted.amount.on_nodes),))

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
                msg(
                    "{applier} holds {held} in {tenant} that can be given back by amount; this request gives back {given}. Give back at most that much, or name the id of a request",
                    applier=wanted.applier,
                    held=quantities(_whole(room)),
                    tenant=wanted.tenant,
                    given=quantities(wanted.amount),
                ),
            )
        tx.ledger.put(wanted)
        return wanted

    def _try_whole_release(self, tx: Tx, wanted: ResourceRequest, row: ResourceRequest) -> ResourceRequest:
        if not wanted.amount.is_zero and wanted.amount != row.amount:
            raise Refused(
                Reason.INVALID,
                msg(
                    "resource request {applier}/{id} is for {held} and is released as a whole; leave {given} out, or release it under a new id",
                    applier=row.applier,
                    id=row.id,
                    held=quantities(row.amount),
                    given=quantities(wanted.amount),
                ),
            )
        if row.phase is P.CONFIRMED:
            return self._move(tx, row, P.RELEASING, "release", expires_at=wanted.expires_at)
        if row.phase in (P.TRIED, P.PENDING):
            raise Refused(
                Reason.WRONG_STATE,
                msg(
                    "resource request {applier}/{id} is {phase} and cannot be released; cancel it",
                    applier=row.applier,
                    id=row.id,
                    phase=row.phase,
                ),
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

    def _ask_in(self, tx: Tx, asked: api.ResourceRequestTry) -> ResourceRequest | Refused:
        """Queue a request for admission, if it could ever hold; return its row, or the refusal.

        A request that already holds continues to hold; one that already waits keeps its age.
        """
        now = self._clock()
        wanted, before = self._wanted(asked, now), self._row(tx, asked.applier, asked.id, now)
        if before is not None and _holds(before, wanted):
            return before
        waits = before is not None and before.phase is P.PENDING
        if not waits:  # one that waits is told so by the scheduler
            self._check_new(wanted)
        try:
            caps.check(tx, wanted, now, later=True)
            self._placed(tx, wanted, now)
        except Refused as refused:
            if refused.reason not in _PASSING:
                if before is not None and waits:
                    self._move(tx, before, P.CANCELLED, "cancel")
                return refused
        since = before.created_at if before is not None and waits and _is_same(before, wanted) else now
        pending = replace(wanted, phase=P.PENDING, created_at=since, expires_at=now + self._place_s)
        tx.ledger.put(pending)
        return pending

    def _check_new(self, wanted: ResourceRequest) -> None:
        """Raise `Refused` where a tenant may hold no more on nodes; storage is not concerned."""
        amount = wanted.amount
        if (amount.cpu or amount.gpu or amount.ram) and (refused := self._refuses_new(wanted.tenant)):
            raise refused

    def _wanted(self, asked: api.ResourceRequestTry, now: float) -> ResourceRequest:
        if "\0" in f"{asked.id}{asked.holder}{asked.user}{asked.node}{asked.gpu_kind}{asked.environment}":
            raise Refused(Reason.INVALID, msg("a resource request has a NUL character; leave it out"))
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
            environment=asked.environment,
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
        return await notifying(self._db.write(fn), self.changed)


def _is_workload(asked: api.ResourceRequestTry) -> bool:
    """Whether this is admitted by the scheduler: a request for room on nodes, wherever that is."""
    on_nodes = bool(asked.cpu or asked.gpu or asked.ram) and not asked.rom and asked.node is None
    return asked.applier in KINDS and asked.request_type == "request" and on_nodes


def _holds(row: ResourceRequest | None, wanted: ResourceRequest) -> bool:
    """Whether the row holds what is wanted. Raises `Conflict` where it means something else."""
    if row is not None and row.held:
        _check_same(row, wanted)
        return True
    if row is not None and row.kind == "release" and row.phase in (P.TRIED, P.RELEASED):
        raise Refused(
            Reason.CONFLICT,
            msg("id {id} of {applier} belongs to a release; use another id", id=row.id, applier=row.applier),
        )
    return False


def _is_same(row: ResourceRequest, wanted: ResourceRequest) -> bool:
    same = (wanted.tenant, wanted.amount, wanted.environment)
    return (row.tenant, row.amount, row.environment) == same


def _settled(row: ResourceRequest, now: float) -> ResourceRequest:
    """Return the row as it is at `now`, whether its expiry was written down or not."""
    if not row.expired(now):
        return row
    new = P.CONFIRMED if row.phase is P.RELEASING else P.EXPIRED
    check_request_move(row, new)
    return replace(row, phase=new, expires_at=None, last="expire")


def _check_same(row: ResourceRequest, wanted: ResourceRequest) -> None:
    """Raise `Conflict` when a repeated try asks for something else: answering "held" would be a lie."""
    if _is_same(row, wanted):
        return
    raise Refused(
        Reason.CONFLICT,
        msg(
            "resource request {applier}/{id} is for {held} of {tenant}, not for {wanted} of {other}; end it first, or use another id",
            applier=row.applier,
            id=row.id,
            held=quantities(row.amount),
            tenant=row.tenant,
            wanted=quantities(wanted.amount),
            other=wanted.tenant,
        ),
    )


def _check_environment(tx: Tx, uid: str, tenant: str) -> None:
    """Refuse to start a server with an environment that is not ready; deletions see its use in the ledger."""
    found = tx.environments.get(uid)
    if found is None or found.tenant != tenant or found.phase is not EnvironmentPhase.READY:
        raise Refused(
            Reason.NOT_FOUND,
            msg(
                "the environment of the notebook server is not a ready environment of team {tenant}; choose again",
                tenant=tenant,
            ),
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
    unnamed = amount.but(gpu=amount.gpu - sum(named.values()))
    return {**dict(unnamed.items()), **{f"gpu:{k}": v for k, v in named.items()}}


def _whole(parts: Mapping[str, int]) -> Resources:
    """Put the parts together again; those below zero count as nothing."""
    p = {d: max(n, 0) for d, n in parts.items()}
    of_kinds = sum(n for d, n in p.items() if d.startswith("gpu:"))
    return amount_of({**{d: n for d, n in p.items() if n}, "gpu": p.get("gpu", 0) + of_kinds})
