"""Check of booked windows: within their tenants' quotas, and on the nodes beside other amounts kept free.

A window is checked when it is booked, and all are checked again whenever quotas or nodes change.
One that can no longer be held stays, marked with the amount that is left for it. That amount is
kept free. If several do not fit together, those made first come first. A window is whole again as
soon as it fits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from mlp_hub.domain.quantities import number, quantity
from mlp_hub.domain.resources import Quota, quota_of
from mlp_hub.domain.tenants.account_names import THE_HUB
from mlp_hub.domain.tenants.tenant import Tenant
from mlp_hub.domain.workload.booking import BookedWindow, Shortfall
from mlp_hub.executors.nodes import NodeInfo
from mlp_hub.scheduler.model.resources import limits_of, vector_of
from mlp_hub.service.bookings.load import Load
from mlp_hub.service.quota.accounting import owner_of
from mlp_hub.service.quota.reserved import total_of
from mlp_hub.store.tx import Tx
from mlp_language.message import Arg, Message, Period, TenantRef, msg

Key = tuple[str, str]  # tenant and name of a window


@dataclass(frozen=True, slots=True)
class Shortage:
    """Shortage of a window in one dimension: amount asked, amount left at its worst moment, amount of others.

    `top` is the tenant whose quota is short, None where it is the nodes.
    """

    dimension: str
    asked: int
    left: int
    others: int
    there_is: Message
    top: str | None


@dataclass(frozen=True, slots=True)
class Supply:
    """Capacity that windows are held against: the tenants' quotas, and what the nodes have, all of them and those that are up."""

    tenants: Mapping[str, Tenant]
    all_nodes: Mapping[str, int]
    up_nodes: Mapping[str, int]
    reserved: Mapping[str, Mapping[str, int]]
    """Amounts that tenants reserve; a lowered guarantee comes back when it is wanted, so all of it counts."""

    @classmethod
    def from_tenants(cls, tenants: Sequence[Tenant], nodes: Sequence[NodeInfo]) -> Supply:
        """Make it of tenants and nodes."""
        up = vector_of(total_of(n for n in nodes if n.schedulable))
        reserved = {t.name: owner_of(t.configured).reserved for t in tenants}
        limits = {name: limits_of(r) for name, r in reserved.items() if r is not None}
        return cls({t.name: t for t in tenants}, vector_of(total_of(nodes)), up, limits)

    def way_up(self, name: str) -> Iterator[Tenant]:
        """Yield a tenant, its parent, and so on."""
        tenant = self.tenants.get(name)
        while tenant is not None:
            yield tenant
            tenant = None if tenant.parent is None else self.tenants.get(tenant.parent)

    def is_below(self, name: str, top: str) -> bool:
        """Whether a tenant is the other one or below it."""
        return any(t.name == top for t in self.way_up(name))

    def kept_besides(
        self, shortage: Shortage, window: BookedWindow, others: Sequence[BookedWindow]
    ) -> tuple[float, list[tuple[int, str | None, str]]]:
        """Return the worst moment of a window, and what it cannot have then: how much, by which window, and for whom.

        What is reserved has no window.
        """
        d, top = shortage.dimension, shortage.top
        kept: list[tuple[int, str | None, str]] = [
            (limits.get(d, 0), None, name)
            for name, limits in self.reserved.items()
            # of a tenant above, what it keeps for itself is what it keeps for those below it
            if top is None or name == window.tenant or (name != top and self.is_below(name, top))
        ]
        booked = [
            (w, limits_of(w.amount).get(d, 0))
            for w in others
            if w.overlaps(window.start, window.end) and (top is None or self.is_below(w.tenant, top))
        ]
        moment = _fullest(window.start, booked)
        kept += [(n, w.name, w.tenant) for w, n in booked if w.start <= moment < w.end]
        return moment, [k for k in kept if k[0]]


def _fullest(start: float, booked: Sequence[tuple[BookedWindow, int]]) -> float:
    """Return the first moment from `start` on at which most is booked."""
    steps = sorted([(max(w.start, start), n) for w, n in booked] + [(w.end, -n) for w, n in booked])
    load, most, at = 0, 0, start
    for moment, change in steps:
        load += change
        if load > most:
            most, at = load, moment
    return at


class Occupancy:
    """Windows that are entered one after another, and what each next one is short of beside those."""

    def __init__(self, supply: Supply, windows: Iterable[BookedWindow]) -> None:
        """Make it for these windows: others cannot be entered or asked about."""
        self._supply = supply
        self._moments = sorted({w.start for w in windows})
        self._loads: dict[tuple[str | None, str], Load] = {}
        self._below: dict[tuple[str | None, str], int] = {}
        for name, limits in supply.reserved.items():
            for d, amount in limits.items():
                tops: list[str | None] = [None, *(t.name for t in supply.way_up(name) if t.name != name)]
                for top in tops:
                    self._below[top, d] = self._below.get((top, d), 0) + amount

    def enter(self, window: BookedWindow, amount: Quota) -> None:
        """Count a window with this amount from now on."""
        for d, n in limits_of(amount).items():
            if n:
                for top in (None, *(t.name for t in self._supply.way_up(window.tenant))):
                    load = self._loads.get((top, d))
                    if load is None:
                        load = self._loads[top, d] = Load(self._moments)
                    load.add(window.start, window.end, n)

    def shortages(self, window: BookedWindow, *, only_up: bool = False) -> list[Shortage]:
        """Return what the window is short of beside those that are entered: of each dimension the worst.

        Nodes that are down count, since they are expected back, unless `only_up`.
        """
        supply = self._supply
        have = supply.up_nodes if only_up else supply.all_nodes
        found: list[Shortage] = []
        for d, asked in limits_of(window.amount).items():
            if not asked:
                continue
            seen = []
            for top in supply.way_up(window.tenant):
                own = _own(top, d)
                if own is not None:
                    there = msg(
                        "the quota of {tenant} is {own}", tenant=TenantRef(top.name), own=quantity(d, own)
                    )
                    seen.append(self._shortage(window, d, asked, own, there, top.name))
            all_ = have.get(d, 0)
            there = msg("the nodes have {all_}", all_=quantity(d, all_))
            if only_up:
                there = msg("the nodes that are up have {all_}", all_=quantity(d, all_))
            seen.append(self._shortage(window, d, asked, all_, there, None))
            worst = min(seen, key=lambda shortage: shortage.left)
            if worst.left < asked:
                found.append(worst)
        return found

    def _shortage(  # noqa: PLR0917
        self, window: BookedWindow, d: str, asked: int, all_: int, there_is: Message, top: str | None
    ) -> Shortage:
        others = self._below.get((top, d), 0)
        if top == window.tenant:
            others += self._supply.reserved.get(top, {}).get(d, 0)
        load = self._loads.get((top, d))
        if load is not None:
            others += load.most(window.start, window.end)
        return Shortage(d, asked, all_ - others, others, there_is, top)


def _own(owner: Tenant, dimension: str) -> int | None:
    own = owner.quota.part(dimension)
    return owner.quota.gpu if own is None and dimension.startswith("gpu:") else own


# ------------------------------------------------------------------ all of them


def checked(windows: Sequence[BookedWindow], supply: Supply, now: float) -> dict[Key, BookedWindow]:
    """Return the windows as they can be held now, those that were made first before the others.

    A node that is down counts until the window is open.
    """
    found: dict[Key, BookedWindow] = {}
    occupancy = Occupancy(supply, windows)
    for window in sorted(windows, key=lambda w: (w.made_at, w.start, w.tenant, w.name)):
        shortages = occupancy.shortages(window, only_up=window.start <= now < window.end)
        short = _shortfall(window, shortages, now) if shortages else None
        found[window.tenant, window.name] = seen = replace(window, short=short)
        occupancy.enter(window, seen.in_force)
    return found


def _shortfall(window: BookedWindow, shortages: Sequence[Shortage], now: float) -> Shortfall:
    left = {shortage.dimension: max(shortage.left, 0) for shortage in shortages}
    amount = quota_of({**limits_of(window.amount), **left})
    since = now if window.short is None else window.short.since
    return Shortfall(since, amount, msg("{all}", all=tuple(map(_sentence, shortages))))


def _sentence(shortage: Shortage) -> Message:
    """Say it so that every member of the tenant may read it: of others only how much is theirs."""
    d = shortage.dimension
    said = msg(
        "needs {asked}, but {left} is left: {there_is}",
        asked=quantity(d, shortage.asked),
        left=number(d, max(shortage.left, 0)),
        there_is=shortage.there_is,
    )
    if not shortage.others:
        return said
    return msg(
        "{said}, of which {others} is already reserved or booked",
        said=said,
        others=number(d, shortage.others),
    )


def changed(tx: Tx, nodes: Sequence[NodeInfo], now: float) -> list[tuple[BookedWindow, BookedWindow]]:
    """Return the windows that cannot be held as they are stored to be, before and after; nothing is stored."""
    windows = tx.bookings.current(now)
    if not windows:
        return []
    seen = checked(windows, Supply.from_tenants(tx.tenants.all(), nodes), now)
    pairs = [(w, seen[w.tenant, w.name]) for w in windows]
    return [(before, after) for before, after in pairs if before.short != after.short]


def review_in(tx: Tx, nodes: Sequence[NodeInfo], now: float) -> list[Message]:
    """Store which windows can be held as things are now, with their entries in the audit log; return sentences on them."""
    found = changed(tx, nodes, now)
    for before, after in found:
        tx.bookings.set_short(after)
        was, is_ = before.short, after.short
        if is_ is None or was is None or was.left != is_.left:
            action = "booking.whole" if is_ is None else "booking.short"
            detail: dict[str, object] = {"message": sentence(after)}
            tx.audit.add(now, THE_HUB, action, after.name, tenant=after.tenant, detail=detail)
    return [sentence(after) for _, after in found]


def sentence(window: BookedWindow) -> Message:
    """Say of a window whether it can be held."""
    what: dict[str, Arg] = {
        "name": window.name,
        "tenant": TenantRef(window.tenant),
        "period": Period(window.start, window.end),
    }
    if window.short is None:
        return msg("The window {name} of {tenant}, {period}, fits again", **what)
    return msg(
        "The window {name} of {tenant}, {period}, no longer fits: {why}", **what, why=window.short.message
    )
