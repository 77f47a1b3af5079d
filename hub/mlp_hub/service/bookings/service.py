"""Windows of time that are booked for tenants: made, listed, looked at again, removed, and forgotten when they are over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NoReturn, TypeVar

from mlp_api.teams import bookings as booking_api
from mlp_hub.domain.errors import Reason, Refused, not_found
from mlp_hub.domain.quantities import number, quantity
from mlp_hub.domain.resources import Quota
from mlp_hub.domain.tenants.tenant import Tenant
from mlp_hub.domain.workload.booking import BookedWindow
from mlp_hub.domain.workload.ledger import ResourceRequest
from mlp_hub.executors.nodes import NodeInfo
from mlp_hub.scheduler.model.resources import limits_of, part
from mlp_hub.service.bookings.feasibility import Occupancy, Supply, changed, review_in
from mlp_hub.service.bookings.wire import booking_to
from mlp_hub.service.state.board import APPLIER
from mlp_hub.service.support import limits, units
from mlp_hub.service.support.limits import ServiceLimits
from mlp_hub.service.support.told import notifying
from mlp_hub.store import Database, Tx
from mlp_language.message import Arg, Message, TenantRef, msg, some

T = TypeVar("T")
DAY_S = 86_400.0
"""Given: seconds of a day."""
LAST_S = 253_402_214_400.0
"""Given: upper bound of a time: a day before the year 10000."""
REVIEW_EVERY_S = 600.0
"""Tuning: seconds between two checks of all windows, even if nothing that they depend on has changed: sooner with less, cheaper with more."""


class BookingService:
    """The booked windows; `actor` is the asker, for the audit log, and the caller checks their right.

    `changed` is called on the event loop after every change: the scheduler has to learn of it.
    """

    def __init__(
        self,
        db: Database,
        clock: Callable[[], float],
        nodes: Callable[[], Sequence[NodeInfo]],
        *,
        changed: Callable[[], None] = lambda: None,
        most: ServiceLimits = limits.DEFAULTS,
    ) -> None:
        self._db = db
        self._most = most
        self._clock = clock
        self._nodes = nodes
        self._changed = changed
        self._seen: list[NodeInfo] | None = None  # the nodes as of the last review
        self._changes = 0  # of windows, by this process
        self._again = 0.0  # when a window opens or closes after that

    async def list(self, tenant: str) -> Sequence[booking_api.Booking]:
        """Return the tenant's windows that are not over, the next one first. Raises `NotFound`."""
        await self.review()
        now = self._clock()

        def work(tx: Tx) -> Sequence[booking_api.Booking]:
            _existing(tx, tenant)
            return _shown(tx, tx.bookings.of_tenant(tenant, now), now)

        return await self._db.read(work)

    async def create(
        self, tenant: str, asked: booking_api.BookingCreate, *, actor: str
    ) -> booking_api.Booking:
        """Book a window.

        Raises `NotFound`, `Invalid`, `Conflict` (the name), `ExceedsMaxQuota` with the amount that is left.
        """
        now = self._clock()
        window = BookedWindow(
            tenant,
            asked.name,
            _seconds("start", asked.start),
            _seconds("end", asked.end),
            units.amount_from("amount", asked.amount),
            actor,
            now,
        )
        nodes = self._nodes()

        def work(tx: Tx) -> booking_api.Booking:
            _existing(tx, tenant)
            _check_times(window, now, self._most)
            _check_amount(window.amount)
            mine = tx.bookings.of_tenant(tenant, now)
            if len(mine) >= self._most.windows_per_tenant:
                raise Refused(
                    Reason.INVALID,
                    msg(
                        "{tenant} has {count} booked windows, which is the limit; remove one first",
                        tenant=tenant,
                        count=len(mine),
                    ),
                )
            if any(w.name == window.name for w in mine):
                raise Refused(
                    Reason.CONFLICT,
                    msg(
                        "{tenant} already has a booked window {name}; use another name, or remove that one",
                        tenant=tenant,
                        name=window.name,
                    ),
                )
            if tx.bookings.count(now) >= limits.WINDOWS_IN_ALL:
                raise Refused(
                    Reason.INVALID,
                    msg(
                        "{most_in_all} windows are booked, which is the limit of all teams together; remove one first",
                        most_in_all=limits.WINDOWS_IN_ALL,
                    ),
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

    async def remove(self, tenant: str, name: str, *, actor: str) -> booking_api.Booking:
        """Give a window up, open or not; its running jobs continue. Raises `NotFound`."""
        now, nodes = self._clock(), self._nodes()

        def work(tx: Tx) -> booking_api.Booking:
            _existing(tx, tenant)
            window = tx.bookings.remove(tenant, name)
            if window is None or window.end <= now:
                text = msg("team {tenant} has no booked window {name}", name=name, tenant=tenant)
                raise Refused(Reason.NOT_FOUND, text)
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

        changes = self._changes
        found, again = await self._db.read(work)
        if found:
            await self._write(lambda tx: review_in(tx, nodes, now))
            changes += 1
        if changes == self._changes:  # else somebody changed a window that this look did not see
            self._seen, self._again = list(nodes), again

    def review_in(self, tx: Tx) -> Sequence[Message]:
        """Do so in the transaction of a change of tenants; return sentences on the windows that it concerns."""
        return review_in(tx, self._nodes(), self._clock())

    async def review_windows(self) -> int:
        """Forget the windows that are over, and look at the others again; return how many are forgotten."""
        now = self._clock()
        gone = await self._db.write(lambda tx: tx.bookings.delete_expired(now))
        await self.review()
        return gone

    async def _write(self, fn: Callable[[Tx], T]) -> T:
        def tell() -> None:
            self._seen = None
            self._changes += 1
            self._changed()

        return await notifying(self._db.write(fn), tell)


def _existing(tx: Tx, name: str) -> Tenant:
    tenant = tx.tenants.get(name)
    if tenant is None:
        raise not_found("tenant", name)
    return tenant


def _seconds(field: str, time: datetime) -> float:
    """Return a time in seconds; refuse those that no calendar has in UTC."""
    seconds = time.timestamp()
    if not 0 <= seconds < LAST_S:
        _invalid(
            msg(
                "{field} is {time}; give a time between 1970 and 9999",
                field=field,
                time=time.isoformat(),
            )
        )
    return seconds


def _check_times(window: BookedWindow, now: float, most: ServiceLimits) -> None:
    start, end = window.start, window.end
    if end <= start:
        _invalid(
            msg(
                "end is {end}, start is {start}: a window ends after it starts; give a later end",
                end=_at(end),
                start=_at(start),
            )
        )
    if end <= now:
        _invalid(
            msg(
                "end is {end}, which has passed; it is {now} now, give a later end",
                end=_at(end),
                now=_at(now),
            )
        )
    if end - start > most.window_days * DAY_S:
        _invalid(
            msg(
                "the window is {days} days long, and the limit is {most_days} days. Give an earlier end, or reserve the amount in the team's quota",
                days=f"{(end - start) / DAY_S:.4g}",
                most_days=most.window_days,
            )
        )
    if start > now + most.window_days_ahead * DAY_S:
        _invalid(
            msg(
                "start is {at}; a window must start within {most_days_ahead} days from now",
                at=_at(start),
                most_days_ahead=most.window_days_ahead,
            )
        )


def _check_amount(amount: Quota) -> None:
    limits = limits_of(amount)
    if "rom" in limits:
        _invalid(
            msg(
                "amount has rom: booked amounts are kept free on nodes, and storage does not belong to nodes; leave rom out"
            )
        )
    units.check_no_parts("amount", amount)
    if not any(limits.values()):
        _invalid(
            msg("amount is empty; name the resources to keep free, such as {example}", example='{"cpu": 4}')
        )


def _check_room(tx: Tx, window: BookedWindow, nodes: Sequence[NodeInfo], now: float) -> None:
    """Refuse what is not within the quota, or not on the nodes beside what else is kept free, at any moment of it.

    Others count with all that they booked, held or not: a window that does not fit now is not to be crowded out.
    """
    supply, others = Supply.from_tenants(tx.tenants.all(), nodes), tx.bookings.current(now)
    occupancy = Occupancy(supply, (window, *others))
    for other in others:
        if other.overlaps(window.start, window.end):
            occupancy.enter(other, other.amount)
    shortages = occupancy.shortages(window)
    if not shortages:
        return
    shortage = shortages[0]
    d = shortage.dimension
    moment, kept = supply.kept_besides(shortage, window, others)
    said: dict[str, Arg] = {
        "there_is": shortage.there_is,
        "asked": number(d, shortage.asked),
        "way": msg("Book less"),
    }
    if shortage.left > 0:
        said["way"] = msg("Book at most {left}", left=quantity(d, shortage.left))
    if not kept:
        raise Refused(
            Reason.EXCEEDS_MAX_QUOTA, msg("{there_is}; this window asks for {asked}. {way}", **said)
        )
    taken = some([_taken(number(d, n), name, whose) for n, name, whose in kept])
    raise Refused(
        Reason.EXCEEDS_MAX_QUOTA,
        msg(
            "{there_is}, of which at {at} {taken}; this window asks for {asked}. {way}, or another time",
            **said,
            at=_at(moment),
            taken=taken,
        ),
    )


def _taken(amount: float, name: str | None, whose: str) -> Message:
    if name is None:
        return msg("{amount} is reserved for {tenant}", amount=amount, tenant=TenantRef(whose))
    return msg("{amount} is booked for {tenant} ({name})", amount=amount, tenant=TenantRef(whose), name=name)


def _shown(tx: Tx, windows: Sequence[BookedWindow], now: float) -> Sequence[booking_api.Booking]:
    """Return windows for the wire, with notes on servers that others run."""
    if not windows:
        return []
    servers = [r for r in tx.ledger.held(now) if r.shares and r.applier != APPLIER]
    return [booking_to(w, now, notes=_notes(w, servers)) for w in windows]


def _notes(window: BookedWindow, servers: Sequence[ResourceRequest]) -> list[Message]:
    booked = [d for d, v in limits_of(window.amount).items() if v]
    held = {d: sum(part(r.amount, d) for r in servers if r.tenant != window.tenant) for d in booked}
    amounts = tuple([quantity(d, v) for d, v in held.items() if v])
    if not amounts:
        return [msg("a notebook server that runs into the window keeps its resources until it is stopped")]
    return [
        msg(
            "a notebook server that runs into the window keeps its resources until it is stopped: servers of other teams hold {amounts} now",
            amounts=amounts,
        )
    ]


def _described(window: BookedWindow) -> dict[str, object]:
    return {"start": _at(window.start), "end": _at(window.end), "amount": units.limit_to(window.amount)}


def _at(time: float) -> str:
    return units.when(time).isoformat(timespec="seconds").replace("+00:00", "Z")


def _invalid(text: Message) -> NoReturn:
    raise Refused(Reason.INVALID, text)
