"""The cheapest way to make room for a job, of those that `preemption.eligibility` allows.

Extra workers of elastic jobs go first. The stopped jobs are the cheapest by lost work, never more
than needed, and only if the job then really starts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field

from mlp_hub.domain.resources import MILLI
from mlp_hub.scheduler.assign.fit import seats, vector_on
from mlp_hub.scheduler.cache.state import ClusterState
from mlp_hub.scheduler.model.resources import Vector
from mlp_hub.scheduler.model.types import Devices
from mlp_hub.scheduler.nodes.index import NodeIndex
from mlp_hub.scheduler.nodes.trial import Scratch
from mlp_hub.scheduler.preemption.eligibility import PreemptionRights
from mlp_hub.scheduler.quota.tree import QuotaTree
from mlp_hub.scheduler.workloads.admitted import Held
from mlp_hub.scheduler.workloads.pending import Entry, JobClass

MOST_CANDIDATES = 100
"""Tuning: running jobs that are examined as victims for one job, the cheapest ones: time of a cycle, for how much is tried in
it."""
MOST_NODES = 64
"""Tuning: nodes that are examined one by one for a cheap place: time of a cycle, for how much is tried in it."""


@dataclass(frozen=True, slots=True)
class Shrink:
    """An elastic job gives up its last `by` workers."""

    held: Held
    by: int


@dataclass(frozen=True, slots=True)
class RoomMade:
    """Victims that have to be stopped so that a job can start on `placement`."""

    victims: tuple[Held, ...]
    shrinks: tuple[Shrink, ...]
    placement: tuple[str, ...]
    index: NodeIndex  # as it is once the victims are gone
    quotas: QuotaTree
    moved: frozenset[str] = frozenset()  # of the victims, those that fit elsewhere at once

    def stops(self, uid: str) -> bool:
        """Whether this job is stopped or shrunk."""
        return any(h.run.job.uid == uid for h in (*self.victims, *(s.held for s in self.shrinks)))


@dataclass(frozen=True, slots=True)
class NotYet:
    """There are victims, but they may not be stopped before `at`; now: in the next cycle."""

    at: float
    made: RoomMade | None = (
        None  # the room that there would be if all could be stopped now; None: in the next cycle
    )


class ShortOfNodes:
    """Quota could be made free, but the nodes have no room all the same."""


def lost_work(held: Held, now: float, restart_cost_s: float = 0.0) -> float:
    """Return what stopping a job now throws away: seconds since its checkpoint, times its size.

    The size is its ranks' GPUs, or cores where it has none.
    """
    run, job = held.run, held.run.job
    since = now - max(run.started_at, run.checkpointed_at or -math.inf)
    if run.checkpointed_at is None and job.checkpoint_every:
        since %= job.checkpoint_every
    per_rank = held.demand.gpu or held.demand.cpu or MILLI
    return (max(since, 0.0) + restart_cost_s) * len(run.placement) * per_rank / MILLI


def room_comes(rights: PreemptionRights) -> bool:
    """Whether the job will fit once those that are stopping have ended."""
    state = rights.state
    if not state.running.stopping:
        return False
    trial = _Trial(rights)
    for uid in state.running.stopping:
        trial.stop(state.running[uid], 0)
    return trial.fits()


def make_room(
    rights: PreemptionRights, spared: Collection[str] = ()
) -> RoomMade | NotYet | ShortOfNodes | None:
    """Find the cheapest victims with which the job could start now; None when none would do.

    `spared` are jobs for which others were stopped in this cycle.
    """
    found = _ripe(rights, spared)
    made = _make(rights, found.whole, found.elastic)
    if isinstance(made, RoomMade) or found.not_yet == math.inf:
        return made
    if found.not_yet <= rights.state.now:
        return NotYet(found.not_yet)
    # nobody is told to wait for those who would not be enough
    rights.examined += len(found.young)
    later = _make(rights, found.whole + found.young, found.elastic + found.young_elastic)
    return NotYet(found.not_yet, later) if isinstance(later, RoomMade) else later


def _make(
    rights: PreemptionRights, candidates: list[Held], shrinkable: list[Held]
) -> RoomMade | ShortOfNodes | None:
    """Find the cheapest victims of these."""
    if not (candidates or shrinkable) or not _could_help(rights, candidates, shrinkable):
        return None
    return _cheapest(rights, candidates, shrinkable) or ShortOfNodes()


@dataclass(slots=True)
class _Ripe:
    """Jobs that a job may stop or shrink now, and those that it may once they have run long enough."""

    whole: list[Held] = field(default_factory=list)
    elastic: list[Held] = field(default_factory=list)
    young: list[Held] = field(default_factory=list)
    young_elastic: list[Held] = field(default_factory=list)
    not_yet: float = math.inf  # when the first of the others has; now: it may be stopped in the next cycle


def _ripe(rights: PreemptionRights, spared: Collection[str]) -> _Ripe:
    """Tell those apart that may be stopped now, and those that may be later."""
    state = rights.state
    least = state.policy.min_run_s
    found = _Ripe()
    for held in rights.candidates():
        ripe = held.run.started_at + least
        if held.run.job.uid in spared or rights.has_its_turn(held):
            found.not_yet = min(found.not_yet, state.now)
        elif least > 0 and ripe > state.now:
            found.not_yet = min(found.not_yet, ripe)
            found.young.append(held)
        else:
            found.whole.append(held)
    for held in rights.shrinkable():
        ripe = held.run.started_at + least
        if ripe <= state.now:
            found.elastic.append(held)
        else:
            found.not_yet = min(found.not_yet, ripe)
            found.young_elastic.append(held)
    return found


def _cheapest(
    rights: PreemptionRights, candidates: list[Held], shrinkable: Sequence[Held]
) -> RoomMade | None:
    """Try victims in more than one order and keep what costs least."""
    state = rights.state
    cost = {h.run.job.uid: lost_work(h, state.now, state.policy.restart_cost_s) for h in candidates}
    ordered = sorted([(cost[h.run.job.uid], h.run.job.priority, -h.serial, h) for h in candidates])
    best: RoomMade | None = None
    best_cost = math.inf
    for some in _choices(rights, [h for _, _, _, h in ordered]):
        for order in _orders(rights, some, cost):
            trial = _Trial(rights)
            found = trial.run(order, shrinkable)
            if found is None:
                if trial.stopped_all:
                    break  # in no other order are there more
                continue
            total = sum(cost[h.run.job.uid] for h in found.victims)
            if total < best_cost:
                best, best_cost = found, total
            if rights.short:
                break  # any of them has quota to give
    return best


def _choices(rights: PreemptionRights, ordered: list[Held]) -> Iterator[list[Held]]:
    """Yield the candidates to choose from, the cheapest ones.

    Some jobs get the right to reclaim only by the end of their tenant's own work. The jobs that they
    could reclaim from must then not crowd out that work. That work can also be enough alone.
    """
    if not rights.gets_inside:
        yield ordered[:MOST_CANDIDATES]
        return
    own = [h for h in ordered if h.run.job.tenant == rights.tenant][:MOST_CANDIDATES]
    others = [h for h in ordered if h.run.job.tenant != rights.tenant][:MOST_CANDIDATES]
    chosen = {h.run.job.uid for h in (*own, *others)}
    yield [h for h in ordered if h.run.job.uid in chosen]
    without = [h for h in ordered if not rights.reclaims(h)][:MOST_CANDIDATES]
    if without:
        yield without


def _could_help(rights: PreemptionRights, candidates: Sequence[Held], shrinkable: Sequence[Held]) -> bool:
    """Whether all candidates together would free enough: a quick no for most."""
    quotas = rights.state.quotas
    everybody = (*candidates, *shrinkable)
    if not rights.short:
        return any(held.vector.get(d) for held in everybody for d in rights.vector)
    same_tree = [held.vector for held in everybody if quotas.root(held.run.job.tenant) == rights.root]
    return all(
        sum([vector.get(d, 0) for vector in same_tree]) + available >= asked
        for d, asked, available in rights.over
    )


def _orders(rights: PreemptionRights, candidates: list[Held], cost: dict[str, float]) -> Iterator[list[Held]]:
    """Yield orders in which to take victims: the cheapest first, and the cheapest nodes first."""
    yield candidates
    if len(candidates) < 2:
        return
    state, entry = rights.state, rights.entry
    # ranks that fill much of a node need victims that sit together
    on_node: dict[str, list[Held]] = {}
    for held in candidates:
        for name in dict.fromkeys(held.run.placement):
            on_node.setdefault(name, []).append(held)
    if len(on_node) < 2:
        return
    names = sorted(on_node, key=lambda n: (sum(cost[h.run.job.uid] for h in on_node[n]), n))[:MOST_NODES]
    priced = []
    for name in names:
        if name in state.index:
            price, used = _price(state.index, entry.cls, name, on_node[name], cost)
            if used:
                priced.append((price, name, used))
    if priced:
        priced.sort(key=lambda p: p[:2])
        chosen = list({h.run.job.uid: h for _, _, used in priced for h in used}.values())
        if chosen != candidates:
            yield chosen


def _price(
    index: NodeIndex, cls: JobClass, name: str, there: Sequence[Held], cost: dict[str, float]
) -> tuple[float, list[Held]]:
    """Return what a rank costs on one node, and whom; nobody when stopping all there gains nothing."""
    record, want = index.record(name), cls.ranks_min
    before = fitting = index.slots_on(record, cls.demand)
    enough = max(want, before + 1)
    price, used = 0.0, []
    for held in there:
        here = [d for n, d in zip(held.run.placement, held.run.devices, strict=True) if n == name]
        record = index.moved(record, held.demand, here, 1)
        fitting = index.slots_on(record, cls.demand)
        price += cost[held.run.job.uid]
        used.append(held)
        if fitting >= enough:
            break
    gained = min(fitting - before, want)
    return (price / gained, used) if gained > 0 else (0.0, [])


@dataclass(eq=False, slots=True)
class _Gone:
    """A victim in a trial; `left` are the ranks of it that were still there when it was stopped."""

    held: Held
    placement: tuple[str, ...]
    devices: Devices
    vector: Vector


@dataclass(eq=False)
class _Trial:
    """Stops victims on copies of the nodes and quotas until the job fits, then takes back what was too much."""

    rights: PreemptionRights
    state: ClusterState = field(init=False)
    entry: Entry = field(init=False)
    nodes: Scratch = field(init=False)
    quotas: QuotaTree = field(init=False)
    stopped_all: bool = field(init=False, default=False)
    """All there were had been stopped and it still did not fit."""

    def __post_init__(self) -> None:
        self.state, self.entry = self.rights.state, self.rights.entry
        cls = self.entry.cls
        self.nodes = Scratch(self.state.index, cls.demand, cls.topology)
        self.quotas = self.state.quotas.fork()

    def run(self, order: Sequence[Held], shrinkable: Sequence[Held]) -> RoomMade | None:
        """Return what has to go for the job to start, None when all of it would not be enough."""
        if self.fits():
            return None  # it fits without: nothing has to be stopped for it
        cut: dict[str, int] = {}
        by_uid = {h.run.job.uid: h for h in shrinkable}
        for held in shrinkable:
            self._shrink(held, cut)
        gone = self._stop_in(order, cut)
        if not self.fits():
            self.stopped_all = len(gone) == len(order)
            return None
        gone = self._prune(gone)
        self._prune_cuts(cut, by_uid, gone)
        shrinks = tuple(Shrink(by_uid[uid], n) for uid, n in cut.items() if n)
        index = self.state.index.fork()
        for g in gone:
            index.release_ranks(g.held.demand, g.held.run.placement, g.held.run.devices)
        for shrink in shrinks:
            run = shrink.held.run
            last = slice(run.workers - shrink.by, run.workers)
            index.release_ranks(shrink.held.demand, run.placement[last], run.devices[last])
        placement = seats(index, self.quotas, self.entry.cls, self.entry.cls.workers_min)
        if placement is None or not self._by_right(gone, vector_on(index, self.entry.cls.demand, placement)):
            return None
        return RoomMade(tuple(g.held for g in gone), shrinks, placement, index, self.quotas)

    def _stop_in(self, order: Sequence[Held], cut: dict[str, int]) -> list[_Gone]:
        """Stop one job after another until it fits: for quota first, which only work in the same tree has."""
        gone: list[_Gone] = []
        rest = self._stop_until(self._has_quota, self.rights.for_quota, order, cut, gone)
        self._stop_until(self.fits, self.rights.for_nodes, rest, cut, gone)
        return gone

    def _stop_until(
        self,
        enough: Callable[[], bool],
        may_stop: Callable[[Held, QuotaTree], bool],
        order: Sequence[Held],
        cut: dict[str, int],
        gone: list[_Gone],
    ) -> list[Held]:
        """Stop one after another until it is enough, by one right; return who is left."""
        left: list[Held] = []
        for i, held in enumerate(order):
            if enough():
                return [*left, *order[i:]]
            if not may_stop(held, self.quotas):
                left.append(held)
                continue
            was_inside = not left or self.rights.is_inside(self.quotas)
            gone.append(self.stop(held, cut.get(held.run.job.uid, 0)))
            if not was_inside and self.rights.is_inside(self.quotas):
                # those passed over cost less, and it may have the right to them now
                left = self._stop_until(enough, may_stop, left, cut, gone)
        return left

    def _by_right(self, gone: Sequence[_Gone], vector: Vector) -> bool:
        """Return whether it stays inside its quota, also of its kind of GPU, if it reclaimed from others."""
        taken_back = any(self.rights.reclaims(g.held) for g in gone)
        return not taken_back or self.quotas.within_nominal(self.rights.tenant, vector)

    def _still_fits(self, gone: Sequence[_Gone]) -> bool:
        """Whether it fits, and may stop these still, after something was taken back."""
        if not self.fits():
            return False
        return not self.rights.gets_inside or self._by_right(gone, self.entry.cls.vector)

    def _shrink(self, held: Held, cut: dict[str, int]) -> None:
        """Take workers of one elastic job, one after another, until the job fits."""
        uid = held.run.job.uid
        least = held.run.job.workers_min
        while held.run.workers - cut.get(uid, 0) > least and not self.fits():
            if not self.rights.may_shrink(held, self.quotas):
                return
            cut[uid] = cut.get(uid, 0) + 1
            self._cut(held, cut[uid], give=True)

    def _prune_cuts(self, cut: dict[str, int], by_uid: dict[str, Held], gone: Sequence[_Gone]) -> None:
        """Give workers back that nobody misses, those of the last job first."""
        stopped = {g.held.run.job.uid for g in gone}
        for uid in reversed(list(cut)):
            if uid in stopped:
                del cut[uid]
                continue
            while cut[uid]:
                self._cut(by_uid[uid], cut[uid], give=False)
                if not self._still_fits(gone):
                    self._cut(by_uid[uid], cut[uid], give=True)
                    break
                cut[uid] -= 1

    def _prune(self, gone: list[_Gone]) -> list[_Gone]:
        """Take back whom nobody misses, the most expensive first."""
        needed: list[_Gone] = []
        if self.rights.gets_inside:
            # what was taken back from others first: without it, nobody has to go for the right to it either
            gone = sorted(gone, key=lambda g: self.rights.reclaims(g.held))
        for g in reversed(gone):
            self.nodes.reserve_ranks(g.held.demand, g.placement, g.devices)
            self.quotas.charge(g.held.run.job.tenant, g.vector)
            if not self._still_fits(needed):
                self.nodes.release_ranks(g.held.demand, g.placement, g.devices)
                self.quotas.release(g.held.run.job.tenant, g.vector)
                needed.append(g)
        return needed[::-1]

    def stop(self, held: Held, cut: int) -> _Gone:
        """Count a job as gone, of which `cut` workers were removed already."""
        placement, devices, vector = held.run.placement, held.run.devices, held.vector
        if cut:
            placement, devices = without_last(held, cut)
            vector = vector_on(self.state.index, held.demand, placement)
        self.nodes.release_ranks(held.demand, placement, devices)
        self.quotas.release(held.run.job.tenant, vector)
        return _Gone(held, placement, devices, vector)

    def _cut(self, held: Held, nth: int, *, give: bool) -> None:
        """Give back, or take again, the nth worker from the end."""
        rank = held.run.workers - nth
        placement, devices = (held.run.placement[rank],), (held.run.devices[rank],)
        vector = vector_on(self.state.index, held.demand, placement)
        if give:
            self.nodes.release_ranks(held.demand, placement, devices)
            self.quotas.release(held.run.job.tenant, vector)
        else:
            self.nodes.reserve_ranks(held.demand, placement, devices)
            self.quotas.charge(held.run.job.tenant, vector)

    def fits(self) -> bool:
        """Return whether the job fits in the trial's state."""
        return self._has_quota() and self.nodes.fitting() >= self.entry.cls.ranks_min

    def _has_quota(self) -> bool:
        return self.quotas.fits(self.entry.cls.tenant, self.entry.cls.vector)


def without_last(held: Held, n: int) -> tuple[tuple[str, ...], Devices]:
    """Return placement and GPUs of a job without its last n workers; parameter servers stay."""
    run = held.run
    keep = run.workers - n
    return (
        run.placement[:keep] + run.placement[run.workers :],
        run.devices[:keep] + run.devices[run.workers :],
    )
