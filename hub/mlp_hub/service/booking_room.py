"""Whether booked windows can be held: within their tenants' quotas, and on the nodes beside all else that is kept free.

A window is checked when it is booked, and all are checked again whenever quotas or nodes change. One that can no longer be
held stays, marked with what is left for it, and that is what is kept free; of several that do not fit together those that
were made first come first. It is whole again as soon as it fits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from mlp_hub.domain.booking import BookedWindow, Shortfall
from mlp_hub.domain.resources import Quota
from mlp_hub.domain.tenant import Tenant
from mlp_hub.executors.base import NodeInfo
from mlp_hub.scheduler.vectors import limits_of, vector_of
from mlp_hub.service.kept_free import total_of
from mlp_hub.service.quota import owner_of
from mlp_hub.service.refusals import limit_in, number, unit
from mlp_hub.service.wire import when
from mlp_hub.store.tx import Tx

ACTOR = "system"
Key = tuple[str, str]  # tenant and name of a window


@dataclass(frozen=True, slots=True)
class Lack:
    """That a window asks for more of a dimension than is left for it at a moment, what there is, and who has the rest."""

    dimension: str
    asked: int
    left: int
    there_is: str
    kept: tuple[tuple[int, str, str], ...]  # amount, why, and for which tenant
    moment: float


@dataclass(frozen=True, slots=True)
class Ground:
    """What windows are held against: the tenants, and what the nodes have, all of them and those that are up."""

    tenants: Mapping[str, Tenant]
    all_nodes: Mapping[str, int]
    up_nodes: Mapping[str, int]

    @classmethod
    def of(cls, tenants: Sequence[Tenant], nodes: Sequence[NodeInfo]) -> Ground:
        """Make it of tenants and nodes."""
        up = vector_of(total_of(n for n in nodes if n.up))
        return cls({t.name: t for t in tenants}, vector_of(total_of(nodes)), up)

    def way_up(self, name: str) -> Iterator[Tenant]:
        """Yield a tenant, its parent, and so on."""
        tenant = self.tenants.get(name)
        while tenant is not None:
            yield tenant
            tenant = None if tenant.parent is None else self.tenants.get(tenant.parent)

    def is_below(self, name: str, top: str) -> bool:
        """Whether a tenant is the other one or below it."""
        return any(t.name == top for t in self.way_up(name))

    def reserved(self) -> dict[str, dict[str, int]]:
        """Return what tenants reserve; a guarantee that is lowered comes back when it is wanted, so all of it counts."""
        found = {name: owner_of(t.configured).reserved for name, t in self.tenants.items()}
        return {name: limits_of(r) for name, r in found.items() if r is not None}


def lacks(
    window: BookedWindow, others: Sequence[BookedWindow], ground: Ground, *, only_up: bool = False
) -> Iterator[Lack]:
    """Yield what the window lacks beside these others, at each moment of it at which that may change.

    Nodes that are down count, since they are expected back, unless `only_up`.
    """
    above = list(ground.way_up(window.tenant))
    owner = above[0]
    reserved = ground.reserved()
    have = ground.up_nodes if only_up else ground.all_nodes
    others = [w for w in others if w.overlaps(window.start, window.end)]
    for moment in sorted({window.start, *(w.start for w in others if w.start > window.start)}):
        at_once = [w for w in others if w.start <= moment < w.end]
        for dimension, asked in limits_of(window.amount).items():
            if not asked:
                continue
            for top in above:
                own = _own(top, dimension)
                if own is None:
                    continue
                # of a tenant above, what it keeps for itself is what it keeps for those below it
                kept = [
                    (v.get(dimension, 0), "reserved", t)
                    for t, v in reserved.items()
                    if t == owner.name or (t != top.name and ground.is_below(t, top.name))
                ]
                beside = [w for w in at_once if ground.is_below(w.tenant, top.name)]
                there = f"the quota of {top.name} is {number(dimension, own)} {unit(dimension)}"
                lack = _lack((dimension, asked, own), there, (*kept, *_booked(beside, dimension)), moment)
                if lack is not None:
                    yield lack
            all_ = have.get(dimension, 0)
            kept = [(v.get(dimension, 0), "reserved", t) for t, v in reserved.items()]
            there = f"the nodes {'that are up ' if only_up else ''}have {number(dimension, all_)} {unit(dimension)}"
            lack = _lack((dimension, asked, all_), there, (*kept, *_booked(at_once, dimension)), moment)
            if lack is not None:
                yield lack


def _lack(
    numbers: tuple[str, int, int], there_is: str, kept: tuple[tuple[int, str, str], ...], moment: float
) -> Lack | None:
    dimension, asked, all_ = numbers
    left = all_ - sum(n for n, _, _ in kept)
    if asked <= left:
        return None
    return Lack(dimension, asked, left, there_is, tuple(k for k in kept if k[0]), moment)


def _own(owner: Tenant, dimension: str) -> int | None:
    own = limit_in(owner.quota, dimension)
    return owner.quota.gpu if own is None and dimension.startswith("gpu:") else own


def _booked(windows: Sequence[BookedWindow], dimension: str) -> Iterator[tuple[int, str, str]]:
    for w in windows:
        yield limits_of(w.amount).get(dimension, 0), f"booked ({w.name})", w.tenant


# ------------------------------------------------------------------ all of them


def checked(windows: Sequence[BookedWindow], ground: Ground, now: float) -> dict[Key, BookedWindow]:
    """Return the windows as they can be held now, those that were made first before the others.

    A node that is down counts until the window is open.
    """
    found: dict[Key, BookedWindow] = {}
    held: list[BookedWindow] = []
    for window in sorted(windows, key=lambda w: (w.made_at, w.start, w.tenant, w.name)):
        lacking = list(lacks(window, held, ground, only_up=window.start <= now < window.end))
        short = _shortfall(window, lacking, now) if lacking else None
        found[window.tenant, window.name] = seen = replace(window, short=short)
        held.append(replace(seen, amount=seen.in_force))
    return found


def _shortfall(window: BookedWindow, lacking: Sequence[Lack], now: float) -> Shortfall:
    worst: dict[str, Lack] = {}
    for lack in lacking:
        known = worst.get(lack.dimension)
        if known is None or lack.left < known.left:
            worst[lack.dimension] = lack
    left = {d: max(lack.left, 0) for d, lack in worst.items()}
    kinds = {k: left.get(f"gpu:{k}", v) for k, v in window.amount.kinds.items()}
    plain = {d: v for d, v in left.items() if ":" not in d}
    amount: Quota = replace(window.amount, kinds=kinds, **plain)
    since = now if window.short is None else window.short.since
    return Shortfall(since, amount, "; ".join(map(_sentence, worst.values())))


def _sentence(lack: Lack) -> str:
    """Say it so that every member of the tenant may read it: of others only how much is theirs."""
    d = lack.dimension
    left = max(lack.left, 0)
    others = sum(n for n, _, _ in lack.kept)
    besides = f", of which {number(d, others)} is reserved or booked besides" if others else ""
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
