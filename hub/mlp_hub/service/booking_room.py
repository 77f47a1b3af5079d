"""Whether booked windows can be held: within their tenants' quotas, and on the nodes beside all else that is kept free.

A window is checked when it is booked, and all are checked again whenever quotas or nodes change. One that can no longer be
held stays, marked with what is left for it, and that is what is kept free; of several that do not fit together those that
were made first come first. It is whole again as soon as it fits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from mlp_hub.domain.booking import BookedWindow, Shortfall
from mlp_hub.domain.resources import Quota
from mlp_hub.domain.tenant import Tenant
from mlp_hub.executors.base import NodeInfo
from mlp_hub.scheduler.vectors import limits_of, vector_of
from mlp_hub.service.booking_load import Load
from mlp_hub.service.kept_free import total_of
from mlp_hub.service.quota import owner_of
from mlp_hub.service.refusals import limit_in, number, unit
from mlp_hub.service.wire import when
from mlp_hub.store.tx import Tx

ACTOR = "system"
Key = tuple[str, str]  # tenant and name of a window


@dataclass(frozen=True, slots=True)
class Lack:
    """That a window asks for more of a dimension than is left for it at its worst moment, what there is, and how much others have.

    `top` is the tenant whose quota is short, None where it is the nodes.
    """

    dimension: str
    asked: int
    left: int
    others: int
    there_is: str
    top: str | None


@dataclass(frozen=True, slots=True)
class Ground:
    """What windows are held against: the tenants, and what the nodes have, all of them and those that are up."""

    tenants: Mapping[str, Tenant]
    all_nodes: Mapping[str, int]
    up_nodes: Mapping[str, int]
    reserved: Mapping[str, Mapping[str, int]]
    """What tenants reserve; a guarantee that is lowered comes back when it is wanted, so all of it counts."""

    @classmethod
    def of(cls, tenants: Sequence[Tenant], nodes: Sequence[NodeInfo]) -> Ground:
        """Make it of tenants and nodes."""
        up = vector_of(total_of(n for n in nodes if n.up))
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
        self, lack: Lack, window: BookedWindow, others: Sequence[BookedWindow]
    ) -> tuple[float, list[tuple[int, str, str]]]:
        """Return the worst moment of a window, and what it cannot have then: how much, why, and for whom it is kept."""
        d, top = lack.dimension, lack.top
        kept = [
            (limits.get(d, 0), "reserved", name)
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
        kept += [(n, f"booked ({w.name})", w.tenant) for w, n in booked if w.start <= moment < w.end]
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


class Book:
    """Windows that are entered one after another, and what each next one lacks beside those.

    To enter one of n and to ask about one takes the logarithm of n, for each dimension and tenant on the way up.
    """

    def __init__(self, ground: Ground, windows: Iterable[BookedWindow]) -> None:
        """Make it for these windows: others cannot be entered or asked about."""
        self._ground = ground
        self._moments = sorted({w.start for w in windows})
        self._loads: dict[tuple[str | None, str], Load] = {}
        self._below: dict[tuple[str | None, str], int] = {}
        for name, limits in ground.reserved.items():
            for d, amount in limits.items():
                tops: list[str | None] = [None, *(t.name for t in ground.way_up(name) if t.name != name)]
                for top in tops:
                    self._below[top, d] = self._below.get((top, d), 0) + amount

    def enter(self, window: BookedWindow, amount: Quota) -> None:
        """Count a window with this amount from now on."""
        for d, n in limits_of(amount).items():
            if n:
                for top in (None, *(t.name for t in self._ground.way_up(window.tenant))):
                    load = self._loads.get((top, d))
                    if load is None:
                        load = self._loads[top, d] = Load(self._moments)
                    load.add(window.start, window.end, n)

    def lacks(self, window: BookedWindow, *, only_up: bool = False) -> list[Lack]:
        """Return what the window lacks beside those that are entered: of each dimension the worst.

        Nodes that are down count, since they are expected back, unless `only_up`.
        """
        ground = self._ground
        have = ground.up_nodes if only_up else ground.all_nodes
        found: list[Lack] = []
        for d, asked in limits_of(window.amount).items():
            if not asked:
                continue
            seen = []
            for top in ground.way_up(window.tenant):
                own = _own(top, d)
                if own is not None:
                    there = f"the quota of {top.name} is {number(d, own)} {unit(d)}"
                    seen.append(self._lack(window, d, asked, own, there, top.name))
            all_ = have.get(d, 0)
            there = f"the nodes {'that are up ' if only_up else ''}have {number(d, all_)} {unit(d)}"
            seen.append(self._lack(window, d, asked, all_, there, None))
            worst = min(seen, key=lambda lack: lack.left)
            if worst.left < asked:
                found.append(worst)
        return found

    def _lack(  # noqa: PLR0917
        self, window: BookedWindow, d: str, asked: int, all_: int, there_is: str, top: str | None
    ) -> Lack:
        others = self._below.get((top, d), 0)
        if top == window.tenant:
            others += self._ground.reserved.get(top, {}).get(d, 0)
        load = self._loads.get((top, d))
        if load is not None:
            others += load.most(window.start, window.end)
        return Lack(d, asked, all_ - others, others, there_is, top)


def _own(owner: Tenant, dimension: str) -> int | None:
    own = limit_in(owner.quota, dimension)
    return owner.quota.gpu if own is None and dimension.startswith("gpu:") else own


# ------------------------------------------------------------------ all of them


def checked(windows: Sequence[BookedWindow], ground: Ground, now: float) -> dict[Key, BookedWindow]:
    """Return the windows as they can be held now, those that were made first before the others.

    A node that is down counts until the window is open.
    """
    found: dict[Key, BookedWindow] = {}
    book = Book(ground, windows)
    for window in sorted(windows, key=lambda w: (w.made_at, w.start, w.tenant, w.name)):
        lacking = book.lacks(window, only_up=window.start <= now < window.end)
        short = _shortfall(window, lacking, now) if lacking else None
        found[window.tenant, window.name] = seen = replace(window, short=short)
        book.enter(window, seen.in_force)
    return found


def _shortfall(window: BookedWindow, lacking: Sequence[Lack], now: float) -> Shortfall:
    left = {lack.dimension: max(lack.left, 0) for lack in lacking}
    kinds = {k: left.get(f"gpu:{k}", v) for k, v in window.amount.kinds.items()}
    plain = {d: v for d, v in left.items() if ":" not in d}
    amount: Quota = replace(window.amount, kinds=kinds, **plain)
    since = now if window.short is None else window.short.since
    return Shortfall(since, amount, "; ".join(map(_sentence, lacking)))


def _sentence(lack: Lack) -> str:
    """Say it so that every member of the tenant may read it: of others only how much is theirs."""
    d = lack.dimension
    left = max(lack.left, 0)
    besides = f", of which {number(d, lack.others)} is reserved or booked besides" if lack.others else ""
    verb = "is" if left == 1000 and not d.startswith("r") else "are"
    return f"needs {number(d, lack.asked)} {unit(d)}, {number(d, left)} {verb} left: {lack.there_is}{besides}"


def changed(tx: Tx, nodes: Sequence[NodeInfo], now: float) -> list[tuple[BookedWindow, BookedWindow]]:
    """Return the windows that cannot be held as they are stored to be, before and after; nothing is stored."""
    windows = tx.bookings.current(now)
    if not windows:
        return []
    seen = checked(windows, Ground.of(tx.tenants.all(), nodes), now)
    pairs = [(w, seen[w.tenant, w.name]) for w in windows]
    return [(before, after) for before, after in pairs if before.short != after.short]


def review_in(tx: Tx, nodes: Sequence[NodeInfo], now: float) -> list[str]:
    """Store which windows can be held as things are now, with their entries in the audit log; return sentences on them."""
    found = changed(tx, nodes, now)
    for before, after in found:
        tx.bookings.set_short(after)
        was, is_ = before.short, after.short
        if is_ is None or was is None or was.left != is_.left:
            action = "booking.whole" if is_ is None else "booking.short"
            detail: dict[str, object] = {"message": sentence(after)}
            tx.audit.add(now, ACTOR, action, after.name, tenant=after.tenant, detail=detail)
    return [sentence(after) for _, after in found]


def sentence(window: BookedWindow) -> str:
    """Say of a window whether it can be held."""
    at = when(window.start)
    what = f"the window {window.name} of {window.tenant}, {at:%A %Y-%m-%d %H:%M} UTC,"
    return f"{what} fits again" if window.short is None else f"{what} no longer fits: {window.short.message}"
