"""Windows of time that are booked for tenants: made, listed, removed, and forgotten when they are over."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NoReturn, TypeVar

from mlp_api import tenants as tenant_api
from mlp_hub.domain.booking import BookedWindow
from mlp_hub.domain.errors import Reason, Refused, not_found
from mlp_hub.domain.resources import Quota
from mlp_hub.domain.tenant import Tenant
from mlp_hub.executors.base import NodeInfo
from mlp_hub.scheduler.vectors import limits_of, vector_of
from mlp_hub.scheduler.words import listing
from mlp_hub.service import wire
from mlp_hub.service.kept_free import total_of
from mlp_hub.service.quota import owner_of
from mlp_hub.service.refusals import limit_in, number, unit
from mlp_hub.store import Database, Tx

T = TypeVar("T")
DAY_S = 86_400.0
LAST_S = 253_402_214_400.0  # a day before the year 10000
MOST_DAYS = 30
MOST_DAYS_AHEAD = 366
MOST_OF_TENANT = 100
"""Windows of one tenant that are not over."""


class Bookings:
    """The booked windows. `actor` is who asks, for the audit log; whether they may is for the caller to say.

    `changed` is called on the event loop after every change: the scheduler has to be told of it.
    """

    def __init__(
        self,
        db: Database,
        clock: Callable[[], float],
        nodes: Callable[[], Sequence[NodeInfo]],
        *,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self._db = db
        self._clock = clock
        self._nodes = nodes
        self._changed = changed

    async def list(self, tenant: str) -> Sequence[tenant_api.Booking]:
        """Return the tenant's windows that are not over, the next one first. Raises `NotFound`."""
        now = self._clock()

        def work(tx: Tx) -> list[tenant_api.Booking]:
            _existing(tx, tenant)
            return [wire.booking_to(w, now) for w in tx.bookings.of_tenant(tenant, now)]

        return await self._db.read(work)

    async def create(self, tenant: str, asked: tenant_api.BookingCreate, *, actor: str) -> tenant_api.Booking:
        """Book a window. Raises `NotFound`, `Invalid`, `Conflict` (the name), `ExceedsMaxQuota` with what is left."""
        now = self._clock()
        window = BookedWindow(
            tenant,
            asked.name,
            _seconds("start", asked.start),
            _seconds("end", asked.end),
            wire.amount_from("amount", asked.amount),
            actor,
            now,
        )
        nodes = self._nodes()

        def work(tx: Tx) -> tenant_api.Booking:
            owner = _existing(tx, tenant)
            _check_times(window, now)
            _check_amount(window.amount)
            mine = tx.bookings.of_tenant(tenant, now)
            if len(mine) >= MOST_OF_TENANT:
                raise Refused(
                    Reason.INVALID,
                    f"{tenant} has {len(mine)} booked windows, which is the most; remove one first",
                )
            if any(w.name == window.name for w in mine):
                raise Refused(
                    Reason.CONFLICT,
                    f"{tenant} has a booked window {window.name} already; use another name, or remove that one",
                )
            _check_room(tx, owner, window, nodes, now)
            # one of that name may be over and not forgotten yet
            tx.bookings.remove(tenant, window.name)
            tx.bookings.insert(window)
            tx.audit.add(now, actor, "booking.create", window.name, tenant=tenant, detail=_described(window))
            return wire.booking_to(window, now)

        return await self._write(work)

    async def remove(self, tenant: str, name: str, *, actor: str) -> tenant_api.Booking:
        """Give a window up, open or not; what runs in it goes on. Raises `NotFound`."""
        now = self._clock()

        def work(tx: Tx) -> tenant_api.Booking:
            _existing(tx, tenant)
            window = tx.bookings.remove(tenant, name)
            if window is None or window.end <= now:
                raise not_found("booked window", f"{name} of tenant {tenant}")
            tx.audit.add(now, actor, "booking.delete", name, tenant=tenant, detail=_described(window))
            return wire.booking_to(window, now)

        return await self._write(work)

    async def sweep(self) -> int:
        """Forget the windows that are over; return how many."""
        now = self._clock()
        return await self._db.write(lambda tx: tx.bookings.sweep(now))

    async def _write(self, fn: Callable[[Tx], T]) -> T:
        result = await self._db.write(fn)
        self._changed()
        return result


def _existing(tx: Tx, name: str) -> Tenant:
    tenant = tx.tenants.get(name)
    if tenant is None:
        raise not_found("tenant", name)
    return tenant


def _seconds(field: str, time: datetime) -> float:
    """Return a time in seconds; refuse those that no calendar has in UTC."""
    seconds = time.timestamp()
    if not 0 <= seconds < LAST_S:
        _invalid(f"{field} is {time.isoformat()}; give a time between 1970 and 9999")
    return seconds


def _check_times(window: BookedWindow, now: float) -> None:
    start, end = window.start, window.end
    if end <= start:
        _invalid(f"end is {_at(end)}, start is {_at(start)}: a window ends after it starts; give a later end")
    if end <= now:
        _invalid(f"end is {_at(end)}, which is over; it is {_at(now)} now, give a later end")
    if end - start > MOST_DAYS * DAY_S:
        _invalid(
            f"the window is {(end - start) / DAY_S:.4g} days long; {MOST_DAYS} days are the most. "
            "Give an earlier end, or reserve the amount in the tenant's quota"
        )
    if start > now + MOST_DAYS_AHEAD * DAY_S:
        _invalid(f"start is {_at(start)}; a window starts {MOST_DAYS_AHEAD} days from now at the latest")


def _check_amount(amount: Quota) -> None:
    limits = limits_of(amount)
    if "rom" in limits:
        _invalid("amount has rom: what is booked is kept free on nodes, and storage is not a matter of nodes")
    if not any(limits.values()):
        _invalid('amount is nothing; name what is to be kept free, as {"cpu": 4}')


def _check_room(tx: Tx, owner: Tenant, window: BookedWindow, nodes: Sequence[NodeInfo], now: float) -> None:
    """Refuse what is not within the quota, or not on the nodes beside what else is kept free, at any moment of it."""
    others = [w for w in tx.bookings.current(now) if w.overlaps(window.start, window.end)]
    # a guarantee that is lowered comes back when it is wanted: what is configured counts
    reserved = {t.name: limits_of(_configured(t)) for t in tx.tenants.all() if t.reserved is not None}
    have = vector_of(total_of(nodes))
    wanted = {d: v for d, v in limits_of(window.amount).items() if v}
    for moment in sorted({window.start, *(w.start for w in others if w.start > window.start)}):
        at_once = [w for w in others if w.start <= moment < w.end]
        _check_quota(owner, wanted, reserved.get(owner.name, {}), at_once, moment)
        _check_nodes(wanted, have, reserved, at_once, moment)


def _configured(tenant: Tenant) -> Quota | None:
    return owner_of(tenant.configured).reserved


def _check_quota(
    owner: Tenant,
    wanted: Mapping[str, int],
    reserved: Mapping[str, int],
    windows: Sequence[BookedWindow],
    moment: float,
) -> None:
    mine = [w for w in windows if w.tenant == owner.name]
    for dimension, asked in wanted.items():
        own = limit_in(owner.quota, dimension)
        if own is None and dimension.startswith("gpu:"):
            own = owner.quota.gpu
        if own is None:
            continue
        kept = [(reserved.get(dimension, 0), "reserved"), *_amounts(mine, dimension)]
        left = own - sum(n for n, _ in kept)
        if asked > left:
            raise _refusal(
                f"the quota of {owner.name} is {number(dimension, own)} {unit(dimension)}",
                (dimension, asked, left),
                kept,
                moment,
            )


def _check_nodes(
    wanted: Mapping[str, int],
    have: Mapping[str, int],
    reserved: Mapping[str, Mapping[str, int]],
    windows: Sequence[BookedWindow],
    moment: float,
) -> None:
    for dimension, asked in wanted.items():
        all_ = have.get(dimension, 0)
        kept = [(v.get(dimension, 0), f"reserved for {t}") for t, v in reserved.items()]
        kept += _amounts(windows, dimension, named=True)
        left = all_ - sum(n for n, _ in kept)
        if asked > left:
            raise _refusal(
                f"the nodes have {number(dimension, all_)} {unit(dimension)}",
                (dimension, asked, left),
                kept,
                moment,
            )


def _amounts(
    windows: Sequence[BookedWindow], dimension: str, *, named: bool = False
) -> Iterator[tuple[int, str]]:
    for w in windows:
        whose = f" for {w.tenant}" if named else ""
        yield limits_of(w.amount).get(dimension, 0), f"booked{whose} ({w.name})"


def _refusal(
    what: str, numbers: tuple[str, int, int], kept: Sequence[tuple[int, str]], moment: float
) -> Refused:
    dimension, asked, left = numbers
    taken = listing(f"{number(dimension, n)} is {why}" for n, why in kept if n)
    way = f"Book {number(dimension, left)} {unit(dimension)} at most" if left > 0 else "Book less"
    return Refused(
        Reason.EXCEEDS_MAX_QUOTA,
        f"{what}{f', of which at {_at(moment)} {taken}' if taken else ''}; this window asks for "
        f"{number(dimension, asked)}. {way}{', or another time' if taken else ''}",
    )


def _described(window: BookedWindow) -> dict[str, object]:
    return {"start": _at(window.start), "end": _at(window.end), "amount": wire.limit_to(window.amount)}


def _at(time: float) -> str:
    return wire.when(time).isoformat(timespec="seconds").replace("+00:00", "Z")


def _invalid(msg: str) -> NoReturn:
    raise Refused(Reason.INVALID, msg)
