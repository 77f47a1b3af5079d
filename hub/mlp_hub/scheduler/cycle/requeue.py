"""Inadmissible classes that a cycle tries again: those that what came free could serve, and some that may stop others.

What is requeued in one cycle is bounded, those first that are next by policy; the others have their turn in later ones.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice

from mlp_hub.domain.errors import Reason
from mlp_hub.scheduler.assign.fit import has_promise, has_quota
from mlp_hub.scheduler.cache.inadmissible import (
    ANYTHING,
    MOST_REQUEUED,
    NODES,
    QUOTA,
    Group,
    GroupName,
    NodeAsk,
)
from mlp_hub.scheduler.cache.state import ClusterState
from mlp_hub.scheduler.model.demand import Demand
from mlp_hub.scheduler.nodes.index import NodeIndex
from mlp_hub.scheduler.nodes.states import NodeState, slots_of
from mlp_hub.scheduler.policy import is_one_queue
from mlp_hub.scheduler.workloads.pending import Awaits, JobClass

MANY_PASSING = 128
"""Tuning: classes behind those with a reservation, beyond which only some are tried in one cycle whether they may pass: time
of a cycle, for how much is tried in it."""
MOST_RETRIED = 24
"""Tuning: classes for which victims are searched again in one cycle because something changed; the others come in a later
one."""
PAUSE_S = 10.0
"""Tuning: seconds until victims are searched again where nothing changes meanwhile; until the next time twice as long, and so
on: work of a cycle for how soon a job is tried."""
MANY_KINDS = 64
"""Tuning: different requests beyond which they are looked at by their size first: time of a cycle, for how much is tried in
it."""
MOST_CHECKED = 1000
"""Tuning: classes of one group that are checked for a right to stop others, in one cycle: time of a cycle, for how much is
tried in it."""


def requeue_inadmissible(state: ClusterState) -> None:
    """Let those be active that may have room since the last cycle."""
    inadmissible, index = state.inadmissible, state.index
    if inadmissible.all_changed:
        for group in inadmissible.groups():
            inadmissible.requeue_all(group)
        inadmissible.due.clear()
        inadmissible.resume_at = None
    else:
        _Requeueing(state).run(freed_nodes=index.version != inadmissible.seen_version)
    _requeue_due(state)
    inadmissible.seen_holds = state.running.holds
    inadmissible.seen_version, inadmissible.seen_changes = index.version, index.logged
    inadmissible.freed.clear()
    inadmissible.all_changed = False


def _requeue_due(state: ClusterState) -> None:
    """Requeue whose time has come, and some of those for which a search for victims is owed."""
    inadmissible = state.inadmissible
    for serial in list(islice(inadmissible.owed, MOST_RETRIED)):
        cls = inadmissible.owed.pop(serial)
        if cls.jobs:
            inadmissible.requeue(cls)
    while inadmissible.timers and inadmissible.timers[0][0] <= state.now:
        _, _, cls = inadmissible.timers.pop(0)
        if cls.jobs:
            inadmissible.requeue(cls)


class _Requeueing:
    """Requeues in each group those that what changed may serve, and some that may stop others."""

    def __init__(self, state: ClusterState) -> None:
        self.state = state
        self.inadmissible = state.inadmissible
        self._changed = False  # something did that gives some another look
        self._powerless: dict[tuple[str, int, bool, bool, str | None], bool] = {}

    def run(self, *, freed_nodes: bool) -> None:
        state, inadmissible = self.state, self.inadmissible
        if inadmissible.freed or freed_nodes:
            self._requeue_passing()
        # while capacity is kept free, what one tree gives back may serve any other
        roots = inadmissible.by_root if inadmissible.freed and state.quotas.reserves else inadmissible.freed
        for root in sorted(roots):
            self._requeue_within_quota(root)
        if freed_nodes:
            self._requeue_fitting()
        if state.policy.preemption and state.running.holds != inadmissible.seen_holds:
            self._note_outranking()
        if state.policy.preemption:
            self._retry()

    def _requeue_passing(self) -> None:
        """Requeue those that may pass: the first by policy, and others in turn, since any may be short enough."""
        state, inadmissible = self.state, self.inadmissible
        kinds = len(inadmissible.anything)
        groups = {a: g for a, g in inadmissible.anything.items() if self._has_room(a, g, kinds)}
        many = sum(map(len, groups.values())) > MANY_PASSING
        for name in state.first_tenants() if many else ():
            for cls in list(state.queues[name].classes.values()):
                if cls.awaits is Awaits.ANYTHING and (cls.demand, cls.topology) in groups:
                    inadmissible.requeue(cls)
        for group in groups.values():
            some = list(islice(group.values(), 4 if many else MANY_PASSING))
            inadmissible.requeue_first(some, MANY_PASSING, state.turn_of)
        for ask, group in inadmissible.anything.items():
            self._note((ANYTHING, ask), group)

    def _requeue_within_quota(self, root: str) -> None:
        """Requeue those whose quota has room now."""
        group = self.inadmissible.by_root.get(root, {})
        fitting = [cls for cls in group.values() if has_quota(self.state.quotas, cls)]
        self.inadmissible.requeue_first(fitting, MOST_REQUEUED, self.state.turn_of)
        self._note((QUOTA, root), group)

    def _requeue_fitting(self) -> None:
        """Requeue what the nodes have room for now: one look for each different demand."""
        state, inadmissible = self.state, self.inadmissible
        # of a large group: ranks that fit, and how many classes to requeue
        wanted: dict[NodeAsk, tuple[int, int]] = {}
        gained = _gained(state)
        for ask, group in inadmissible.by_ask.items():
            crowded = ask in inadmissible.crowded
            if crowded or gained is None or gained.may_hold(ask[0]):
                kinds = len(inadmissible.by_ask)
                room = state.index.total_slots(*ask) if self._has_room(ask, group, kinds) else 0
                if room and len(group) > MOST_REQUEUED:
                    wanted[ask] = (room, min(room + 4, MOST_REQUEUED))
                    inadmissible.crowded.add(ask)
                else:
                    inadmissible.crowded.discard(ask)
                    fitting = [cls for cls in group.values() if cls.ranks_min <= room]
                    inadmissible.requeue_first(fitting, MOST_REQUEUED, state.turn_of)
            self._note((NODES, ask), group)
        if not wanted:
            return
        for name in state.next_tenants(MOST_REQUEUED):
            for cls in list(state.queues[name].classes.values()):
                ask = (cls.demand, cls.topology)
                room, most = wanted.get(ask, (0, 0))
                if most and cls.awaits is Awaits.NODES and cls.ranks_min <= room:
                    inadmissible.requeue(cls)
                    wanted[ask] = (room, most - 1)

    def _has_room(self, ask: NodeAsk, group: Group, kinds: int) -> bool:
        """Whether a rank fits now; where requests of many kinds wait, nothing is asked that is larger than all room."""
        index = self.state.index
        if kinds > MANY_KINDS:
            least = next(iter(group.values())).cell
            if not index.has_slots(least.demand, 1, least.topology):
                return False
        return index.has_slots(ask[0], 1, ask[1])

    def _note_outranking(self) -> None:
        """Note whom a start may have helped: it took the last room, or gave its tenant the larger share."""
        state, s = self.state, self.inadmissible
        only = not state.running.elastic and is_one_queue(state.policy)
        for ask, group in s.anything.items():
            self._note((ANYTHING, ask), group, reserved_only=only)
        for root, group in s.by_root.items():
            self._note((QUOTA, root), group, reserved_only=only)
        for ask, group in s.by_ask.items():
            self._note((NODES, ask), group, reserved_only=only)

    def _note(self, name: GroupName, group: Group, *, reserved_only: bool = False) -> None:
        """Note that the classes of a group are due another look; one that is due already keeps its place."""
        if group:
            self._changed = True
            due = self.inadmissible.due
            known = due.get(name)
            due[name] = (reserved_only and (known is None or known[0]), len(group))

    def _retry(self) -> None:
        """Requeue some that may stop others. Groups take turns, and within one those that waited longest, so that all have theirs."""
        state, inadmissible = self.state, self.inadmissible
        if not self._changed and (inadmissible.resume_at is None or state.now < inadmissible.resume_at):
            return
        left = MOST_RETRIED
        for name in list(inadmissible.due):
            reserved_only, classes = inadmissible.due.pop(name)
            chosen, looked_at = self._may_stop(inadmissible.group(name), left, reserved_only=reserved_only)
            for cls in chosen:
                inadmissible.requeue(cls)  # next time it joins the end of its group
            left -= len(chosen)
            if looked_at < classes:
                inadmissible.due[name] = (reserved_only, classes - looked_at)
            if not left:
                break
        inadmissible.pauses = 0 if self._changed else inadmissible.pauses + 1
        inadmissible.resume_at = state.now + PAUSE_S * (inadmissible.pauses + 1) if inadmissible.due else None

    def _may_stop(self, group: Group, most: int, *, reserved_only: bool) -> tuple[list[JobClass], int]:
        """Return at most `most` classes of a group that can stop others, and the number of classes looked at.

        If not all were looked at, those go to the group's end.
        """
        chosen: list[JobClass] = []
        passed: list[JobClass] = []
        for cls in islice(group.values(), MOST_CHECKED):
            if (reserved_only and cls.reason is not Reason.RESERVED) or self._is_powerless(cls):
                passed.append(cls)
            elif self.state.may_stop(cls):
                chosen.append(cls)
                if len(chosen) == most:
                    break
            else:
                passed.append(cls)
        looked_at = len(chosen) + len(passed)
        if looked_at < len(group):
            for cls in passed:
                del group[cls.serial]
                group[cls.serial] = cls
        return chosen, looked_at

    def _is_powerless(self, cls: JobClass) -> bool:
        """Whether no class of this tenant, priority and kind may stop anything, whatever is in use."""
        state, demand = self.state, cls.demand
        alike = (cls.tenant, cls.priority, demand.cpu > 0, demand.gpu > 0, demand.gpu_kind)
        known = self._powerless.get(alike)
        if known is None:
            running = state.running
            known = not running.elastic and not running.any_preemptible_below(cls.priority)
            known = known and not has_promise(state.quotas, cls.tenant, cls.vector)
            self._powerless[alike] = known
        return known


class _Gained:
    """Free amounts of the nodes that changed: only what fits on one of these may have room now that had none."""

    def __init__(self, index: NodeIndex, states: Collection[NodeState]) -> None:
        self._index, self._states = index, states
        self._cpu = max((state.cpu for state in states), default=-1)
        self._ram = max((state.ram for state in states), default=-1)
        self._gpu = max((state.idle for state in states), default=-1)

    def may_hold(self, demand: Demand) -> bool:
        """Whether one of these nodes has room for a rank."""
        if demand.cpu > self._cpu or demand.ram > self._ram or demand.gpu > self._gpu:
            return False
        ask = self._index.catalog.ask(demand)
        return any(slots_of(state, ask) for state in self._states)


def _gained(state: ClusterState) -> _Gained | None:
    """Return what to look at of the nodes that changed since groups were last looked at; None: at all nodes."""
    states = state.index.states_since(state.inadmissible.seen_changes)
    return None if states is None else _Gained(state.index, states)
