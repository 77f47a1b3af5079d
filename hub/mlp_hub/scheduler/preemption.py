"""Whom a job may stop, and the cheapest way to make room for it.

Two rights, in this order (Kueue's): to take back what a tenant lent from those who borrowed it, whatever their
priority; and to stop work of lower priority. Extra workers of elastic jobs go first. What is stopped is the
cheapest by lost work, never more than needed, and only if the job then really starts.

Nobody can be stopped in turns: priority is strict, a tenant inside its nominal quota loses nothing to another
tenant, and who takes back stays inside its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from mlp_hub.domain.resources import MILLI
from mlp_hub.scheduler.fitting import seats, vector_on
from mlp_hub.scheduler.model import Devices
from mlp_hub.scheduler.nodes import NodeIndex
from mlp_hub.scheduler.ordering import ONE_QUEUE, dominant_share
from mlp_hub.scheduler.queues import Vector, resources_of
from mlp_hub.scheduler.quota import QuotaTree
from mlp_hub.scheduler.state import Entry, Held, State

MOST_CANDIDATES = 2000
"""Running jobs that are looked at as victims for one job, the cheapest ones."""
MOST_NODES = 256
"""Nodes that are looked at one by one for a cheap place."""


@dataclass(frozen=True, slots=True)
class Shrink:
    """An elastic job gives up its last `by` workers."""

    held: Held
    by: int


@dataclass(frozen=True, slots=True)
class RoomMade:
    """What has to be stopped so that a job can start on `placement`."""

    victims: tuple[Held, ...]
    shrinks: tuple[Shrink, ...]
    placement: tuple[str, ...]
    index: NodeIndex  # as it is once the victims are gone
    quotas: QuotaTree

    def stops(self, uid: str) -> bool:
        """Whether this job is stopped or shrunk."""
        return any(h.run.job.uid == uid for h in (*self.victims, *(s.held for s in self.shrinks)))


@dataclass(frozen=True, slots=True)
class NotYet:
    """There would be victims, but none that has run long enough before `at`."""

    at: float


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


def make_room(state: State, entry: Entry, *, on_quota: bool) -> RoomMade | NotYet | None:
    """Find the cheapest victims with which the job could start now; None when none would do.

    `on_quota`: it is the quota that it lacks, so only work in its own tree of quotas can help.
    """
    rights = _Rights(state, entry, on_quota)
    candidates: list[Held] = []
    not_yet = math.inf
    policy = state.policy
    for held in rights.candidates():
        ripe = held.run.started_at + policy.min_run_s
        if policy.min_run_s > 0 and ripe > state.now:
            not_yet = min(not_yet, ripe)
        else:
            candidates.append(held)
    shrinkable = [h for h in rights.shrinkable() if h.run.started_at + policy.min_run_s <= state.now]
    best: RoomMade | None = None
    if (candidates or shrinkable) and _could_help(state, entry, candidates, shrinkable, on_quota):
        cost = {h.run.job.uid: lost_work(h, state.now, policy.restart_cost_s) for h in candidates}
        candidates.sort(key=lambda h: (cost[h.run.job.uid], h.run.job.priority, -h.serial))
        del candidates[MOST_CANDIDATES:]
        best_cost = math.inf
        for order in _orders(state, entry, candidates, cost, on_quota):
            found = _Trial(state, entry).run(order, shrinkable)
            if found is not None:
                total = sum(cost[h.run.job.uid] for h in found.victims)
                if total < best_cost:
                    best, best_cost = found, total
    if best is None and not_yet < math.inf:
        return NotYet(not_yet)
    return best


class _Rights:
    """Whom this job may stop or shrink."""

    def __init__(self, state: State, entry: Entry, on_quota: bool) -> None:
        self.state, self.entry, self.on_quota = state, entry, on_quota
        self.mine = entry.cls.tenant
        self.vector = entry.cls.vector
        self.main = "gpu" if "gpu" in self.vector else "cpu"
        quotas = state.quotas
        over = quotas.excess(self.mine, self.vector)
        self.short = [d for d, _, _ in over] if over else list(self.vector)
        self.entitled = quotas.within_nominal(self.mine, self.vector) and any(
            quotas.nominal(self.mine, d) is not None for d in (self.main, *self.short)
        )

    def tenants(self) -> Iterable[str]:
        """Yield the tenants whose work could be in the way."""
        state = self.state
        if self.on_quota:
            return [t for t in state.quotas.tenants(state.quotas.root(self.mine)) if state.held_by.get(t)]
        return [t for t, held in state.held_by.items() if held and t in state.queues]

    def candidates(self) -> Iterator[Held]:
        """Yield the running jobs that may be stopped whole."""
        priority = self.entry.job.priority
        for tenant in self.tenants():
            allowed = self._allowed(tenant)
            if allowed is None:
                continue
            for held in self.state.held_by[tenant].values():
                job = held.run.job
                if job.preemptible and not held.run.stopping and (allowed or job.priority < priority):
                    yield held

    def shrinkable(self) -> list[Held]:
        """List elastic jobs with workers above their least that this job may have."""
        state, job = self.state, self.entry.job
        root = state.quotas.root(self.mine)
        out = []
        for held in state.elastic.values():
            run = held.run
            theirs = run.job.tenant
            if run.stopping or run.workers <= run.job.workers_min:
                continue
            if self.on_quota and state.quotas.root(theirs) != root:
                continue
            if theirs == self.mine:
                if run.job.priority <= job.priority:
                    out.append(held)
            elif run.job.priority < job.priority or self.entitled or self._fairer(theirs):
                out.append(held)
        out.sort(key=lambda h: (h.run.job.priority, -h.serial))
        return out

    def _allowed(self, tenant: str) -> bool | None:
        """Tell whose work of a tenant may be stopped: True all, False that of lower priority, None nothing."""
        state, quotas = self.state, self.state.quotas
        one_queue = state.policy.name in ONE_QUEUE
        if tenant == self.mine:
            return None if state.policy.name == "fifo" else False
        if self.on_quota:
            lent = quotas.may_reclaim(self.mine, tenant, self.short, self.vector)
        else:
            lent = self.entitled and not self._inside(tenant)
        if lent:
            return True
        if state.policy.name == "fifo" or self._inside(tenant):
            return None
        if one_queue or self._fairer(tenant):
            return False
        return None

    def _inside(self, tenant: str) -> bool:
        """Whether a tenant holds no more than it was promised; without a quota nothing was."""
        quotas = self.state.quotas
        if quotas.nominal(tenant, self.main) is None:
            return False
        return not quotas.borrows(tenant, self.vector)

    def _fairer(self, tenant: str) -> bool:
        """Whether this job's tenant would still hold a smaller weighted share than the other one."""
        state = self.state
        used = dict(state.quotas.used(self.mine))
        for d, v in self.vector.items():
            used[d] = used.get(d, 0) + v
        weight = max(state.queues[self.mine].tenant.weight, 1e-9)
        other = max(state.queues[tenant].tenant.weight, 1e-9)
        share = dominant_share(resources_of(used), state.index.total)
        return share / weight <= state.meter.share(tenant) / other


def _could_help(
    state: State, entry: Entry, candidates: Sequence[Held], shrinkable: Sequence[Held], on_quota: bool
) -> bool:
    """Whether all candidates together would free enough: a quick no for most."""
    vector = entry.cls.vector
    freed: Vector = {}
    for held in (*candidates, *shrinkable):
        for d, v in held.vector.items():
            freed[d] = freed.get(d, 0) + v
    if on_quota:
        return all(
            freed.get(d, 0) + available >= asked
            for d, asked, available in state.quotas.excess(entry.cls.tenant, vector)
        )
    return any(freed.get(d, 0) for d in vector)


def _orders(
    state: State, entry: Entry, candidates: list[Held], cost: dict[str, float], on_quota: bool
) -> Iterator[list[Held]]:
    """Yield orders in which to take victims: the cheapest first, and the cheapest nodes first."""
    yield candidates
    if on_quota or len(candidates) < 2:
        return
    # ranks that fill much of a node need victims that sit together
    demand, want = entry.cls.demand, entry.cls.ranks_min
    on_node: dict[str, list[Held]] = {}
    for held in candidates:
        for name in dict.fromkeys(held.run.placement):
            on_node.setdefault(name, []).append(held)
    if len(on_node) < 2:
        return
    priced = []
    names = sorted(on_node, key=lambda n: (sum(cost[h.run.job.uid] for h in on_node[n]), n))[:MOST_NODES]
    for name in names:
        trial = state.index.fork()
        before = trial.slots(name, demand)
        price, used = 0.0, []
        for held in on_node[name]:
            if trial.slots(name, demand) >= max(want, before + 1):
                break
            trial.give(held.demand, held.run.placement, held.run.devices)
            price += cost[held.run.job.uid]
            used.append(held)
        gained = trial.slots(name, demand) - before
        if gained > 0:
            priced.append((price / min(gained, want), name, used))
    if priced:
        priced.sort(key=lambda p: p[:2])
        chosen = dict.fromkeys(h.run.job.uid for _, _, used in priced for h in used)
        by_uid = {h.run.job.uid: h for h in candidates}
        yield [by_uid[uid] for uid in chosen]


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

    state: State
    entry: Entry
    index: NodeIndex = field(init=False)
    quotas: QuotaTree = field(init=False)

    def __post_init__(self) -> None:
        self.index = self.state.index.fork()
        self.quotas = self.state.quotas.fork()

    def run(self, order: Sequence[Held], shrinkable: Sequence[Held]) -> RoomMade | None:
        """Return what has to go for the job to start, None when all of it would not be enough."""
        if self._fits():
            return None  # it fits without: nothing has to be stopped for it
        cut: dict[str, int] = {}
        by_uid = {h.run.job.uid: h for h in shrinkable}
        for held in shrinkable:
            self._shrink(held, cut)
        gone: list[_Gone] = []
        for held in order:
            if self._fits():
                break
            gone.append(self._stop(held, cut.get(held.run.job.uid, 0)))
        if not self._fits():
            return None
        gone = self._prune(gone)
        self._prune_cuts(cut, by_uid, {g.held.run.job.uid for g in gone})
        placement = seats(self.index, self.quotas, self.entry.cls, self.entry.cls.workers_min)
        if placement is None:
            return None
        shrinks = tuple(Shrink(by_uid[uid], n) for uid, n in cut.items() if n)
        return RoomMade(tuple(g.held for g in gone), shrinks, placement, self.index, self.quotas)

    def _shrink(self, held: Held, cut: dict[str, int]) -> None:
        """Take workers of one elastic job, one after another, until the job fits."""
        uid = held.run.job.uid
        while held.run.workers - cut.get(uid, 0) > held.run.job.workers_min and not self._fits():
            cut[uid] = cut.get(uid, 0) + 1
            self._cut(held, cut[uid], give=True)

    def _prune_cuts(self, cut: dict[str, int], by_uid: dict[str, Held], stopped: set[str]) -> None:
        """Give workers back that nobody misses, those of the last job first."""
        for uid in reversed(list(cut)):
            if uid in stopped:
                del cut[uid]
                continue
            while cut[uid]:
                self._cut(by_uid[uid], cut[uid], give=False)
                if not self._fits():
                    self._cut(by_uid[uid], cut[uid], give=True)
                    break
                cut[uid] -= 1

    def _prune(self, gone: list[_Gone]) -> list[_Gone]:
        """Take back whom nobody misses, the most expensive first."""
        needed = []
        for g in reversed(gone):
            self.index.take(g.held.demand, g.placement, g.devices)
            self.quotas.charge(g.held.run.job.tenant, g.vector)
            if not self._fits():
                self.index.give(g.held.demand, g.placement, g.devices)
                self.quotas.release(g.held.run.job.tenant, g.vector)
                needed.append(g)
        return needed[::-1]

    def _stop(self, held: Held, cut: int) -> _Gone:
        placement, devices = without_last(held, cut) if cut else (held.run.placement, held.run.devices)
        vector = vector_on(self.index, held.demand, placement)
        self.index.give(held.demand, placement, devices)
        self.quotas.release(held.run.job.tenant, vector)
        return _Gone(held, placement, devices, vector)

    def _cut(self, held: Held, nth: int, *, give: bool) -> None:
        """Give back, or take again, the nth worker from the end."""
        rank = held.run.workers - nth
        placement, devices = (held.run.placement[rank],), (held.run.devices[rank],)
        vector = vector_on(self.index, held.demand, placement)
        if give:
            self.index.give(held.demand, placement, devices)
            self.quotas.release(held.run.job.tenant, vector)
        else:
            self.index.take(held.demand, placement, devices)
            self.quotas.charge(held.run.job.tenant, vector)

    def _fits(self) -> bool:
        cls = self.entry.cls
        if self.quotas.excess(cls.tenant, cls.vector):
            return False
        if self.index.total_slots(cls.demand, cls.topology) < cls.ranks_min:
            return False
        if not cls.demand.gpu or cls.demand.gpu_kind:
            return True
        return seats(self.index, self.quotas, cls, cls.workers_min) is not None


def without_last(held: Held, n: int) -> tuple[tuple[str, ...], Devices]:
    """Return placement and GPUs of a job without its last n workers; parameter servers stay."""
    run = held.run
    keep = run.workers - n
    return (
        run.placement[:keep] + run.placement[run.workers :],
        run.devices[:keep] + run.devices[run.workers :],
    )
