"""Windows of time that are booked for tenants: made, listed, looked at again, removed, and forgotten when they are over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NoReturn, TypeVar

from mlp_api import tenants as tenant_api
from mlp_hub.domain.booking import BookedWindow
from mlp_hub.domain.errors import Reason, Refused, not_found
from mlp_hub.domain.ledger import ResourceRequest
from mlp_hub.domain.resources import Quota
from mlp_hub.domain.tenant import Tenant
from mlp_hub.executors.base import NodeInfo
from mlp_hub.scheduler.vectors import limits_of, part
from mlp_hub.scheduler.words import listing
from mlp_hub.service import wire
from mlp_hub.service.board import APPLIER
from mlp_hub.service.booking_room import Book, Ground, changed, review_in
from mlp_hub.service.refusals import number, unit
from mlp_hub.store import Database, Tx

T = TypeVar("T")
DAY_S = 86_400.0
LAST_S = 253_402_214_400.0  # a day before the year 10000
MOST_DAYS = 30
MOST_DAYS_AHEAD = 366
MOST_OF_TENANT = 100
"""Windows of one tenant that are not over,"""
MOST_IN_ALL = 1000
"""and of all together: all are looked at again when a quota or the nodes change."""
REVIEW_EVERY_S = 600.0
"""So often at least, though nothing that they depend on has changed."""


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
        self._seen: list[NodeInfo] | None = None  # the nodes as of the last review
        self._again = 0.0  # when a window opens or closes after that

    async def list(self, tenant: str) -> Sequence[tenant_api.Booking]:
        """Return the tenant's windows that are not over, the next one first. Raises `NotFound`."""
        await self.review()
        now = self._clock()

        def work(tx: Tx) -> Sequence[tenant_api.Booking]:
            _existing(tx, tenant)
            return _shown(tx, tx.bookings.of_tenant(tenant, now), now)

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
            _existing(tx, tenant)
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
            if tx.bookings.count(now) >= MOST_IN_ALL:
                raise Refused(
                    Reason.INVALID,
                    f"{MOST_IN_ALL} windows are booked, which is the most of all tenants together; remove one first",
                )
            _check_room(tx, window, nodes, now)
            # one of that name may be over and not forgotten yet
            tx.bookings.remove(tenant, window.name)
            tx.bookings.insert(window)
            tx.audit.add(now, actor, "booking.create", window.name, tenant=tenant, detail=_described(window))
            review_in(tx, nodes, now)  # one that opens at once may need a node that is down
            made = next(w for w in tx.bookings.of_tenant(tenant, now) if w.name == window.name)
            return _shown(tx, [made], now)[0]

        return await self._write(work)

    async def remove(self, tenant: str, name: str, *, actor: str) -> tenant_api.Booking:
        """Give a window up, open or not; what runs in it goes on. Raises `NotFound`."""
        now, nodes = self._clock(), self._nodes()

        def work(tx: Tx) -> tenant_api.Booking:
            _existing(tx, tenant)
            window = tx.bookings.remove(tenant, name)
            if window is None or window.end <= now:
                raise not_found("booked window", f"{name} of tenant {tenant}")
            tx.audit.add(now, actor, "booking.delete", name, tenant=tenant, detail=_described(window))
            review_in(tx, nodes, now)
            return _shown(tx, [window], now)[0]

        return await self._write(work)

    async def review(self) -> None:
        """Look whether all windows can be held as things are now: nodes may have come or gone, a window opened or closed.

        Changes of tenants look at them in their own transaction.
        """
        now, nodes = self._clock(), self._nodes()
        if list(nodes) == self._seen and now < self._again <= now + REVIEW_EVERY_S:
            return
        again = now + REVIEW_EVERY_S

        def work(tx: Tx) -> tuple[bool, float]:
            times = [t for w in tx.bookings.current(now) for t in (w.start, w.end) if t > now]
            return bool(changed(tx, nodes, now)), min([again, *times])

        found, again = await self._db.read(work)
        if found:
            await self._write(lambda tx: review_in(tx, nodes, now))
        self._seen, self._again = list(nodes), again

    def review_in(self, tx: Tx) -> Sequence[str]:
        """Do so in the transaction of a change of tenants; return sentences on the windows that it concerns."""
        return review_in(tx, self._nodes(), self._clock())

    async def sweep(self) -> int:
        """Forget the windows that are over, and look at the others again; return how many are forgotten."""
        now = self._clock()
        gone = await self._db.write(lambda tx: tx.bookings.sweep(now))
        await self.review()
        return gone

    async def _write(self, fn: Callable[[Tx], T]) -> T:
        result = await self._db.write(fn)
        self._seen = None
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


def _check_room(tx: Tx, window: BookedWindow, nodes: Sequence[NodeInfo], now: float) -> None:
    """Refuse what is not within the quota, or not on the nodes beside what else is kept free, at any moment of it.

    Others count with all that they booked, held or not: a window that does not fit now is not to be crowded out.
    """
    ground, others = Ground.of(tx.tenants.all(), nodes), tx.bookings.current(now)
    book = Book(ground, (window, *others))
    for other in others:
        if other.overlaps(window.start, window.end):
            book.enter(other, other.amount)
    lacking = book.lacks(window)
    if not lacking:
        return
    lack = lacking[0]
    d = lack.dimension
    moment, kept = ground.kept_besides(lack, window, others)
    of_nodes = lack.top is None
    taken = listing(
        f"{number(d, n)} is {why.replace(' ', f' for {whose} ', 1) if of_nodes and ' ' in why else why}"
        + (f" for {whose}" if of_nodes and " " not in why else "")
        for n, why, whose in kept
    )
    way = f"Book {number(d, lack.left)} {unit(d)} at most" if lack.left > 0 else "Book less"
    raise Refused(
        Reason.EXCEEDS_MAX_QUOTA,
        f"{lack.there_is}{f', of which at {_at(moment)} {taken}' if taken else ''}; this window asks for "
        f"{number(d, lack.asked)}. {way}{', or another time' if taken else ''}",
    )


def _shown(tx: Tx, windows: Sequence[BookedWindow], now: float) -> Sequence[tenant_api.Booking]:
    """Return windows for the wire, with what is to be known of servers that others run."""
    if not windows:
        return []
    servers = [r for r in tx.ledger.held(now) if r.shares and r.applier != APPLIER]
    return [wire.booking_to(w, now, notes=_notes(w, servers)) for w in windows]


def _notes(window: BookedWindow, servers: Sequence[ResourceRequest]) -> list[str]:
    booked = [d for d, v in limits_of(window.amount).items() if v]
    held = {d: sum(part(r.amount, d) for r in servers if r.tenant != window.tenant) for d in booked}
    amounts = listing(f"{number(d, v)} {unit(d)}" for d, v in held.items() if v)
    now = f": servers of other tenants hold {amounts} now" if amounts else ""
    return [f"a notebook server that runs into the window keeps what it holds until it is stopped{now}"]


def _described(window: BookedWindow) -> dict[str, object]:
    return {"start": _at(window.start), "end": _at(window.end), "amount": wire.limit_to(window.amount)}


def _at(time: float) -> str:
    return wire.when(time).isoformat(timespec="seconds").replace("+00:00", "Z")


def _invalid(msg: str) -> NoReturn:
    raise Refused(Reason.INVALID, msg)
