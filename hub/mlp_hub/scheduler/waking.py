"""Which sleeping classes are looked at in a cycle: those that what came free could serve, and some that may stop others.

What is woken in one cycle is bounded, those first that are next by policy; the others have their turn in later ones.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice

from mlp_hub.domain.errors import Reason
from mlp_hub.scheduler.demand import Demand
from mlp_hub.scheduler.fitting import has_promise, has_quota
from mlp_hub.scheduler.node_states import NodeState, slots_of
from mlp_hub.scheduler.nodes import NodeIndex
from mlp_hub.scheduler.ordering import is_one_queue
from mlp_hub.scheduler.queues import Asleep, JobClass
from mlp_hub.scheduler.sleeping import ANYTHING, MOST_WOKEN, NODES, QUOTA, Due, Group, NodeAsk
from mlp_hub.scheduler.state import State

MANY_PASSING = 128
"""Beyond so many classes that wait for those with a reservation, only some of them look in one cycle whether they may pass."""
MOST_RETRIED = 24
"""Classes that get another look for victims in one cycle because something changed; the others have it in a later one."""
PAUSE_S = 10.0
"""Where nothing changes meanwhile, that later one comes after so long, the next one after twice as long, and so on."""
MANY_KINDS = 64
"""Beyond so many different requests they are first looked at by their size."""
LOOKED_AT = 1000
"""Classes of one group that are looked at for a right to stop others, in one cycle."""


def wake_up(state: State) -> None:
    """Wake what may have room since the last cycle."""
    sleepers, index = state.sleepers, state.index
    if sleepers.all_changed:
        for group in sleepers.groups():
            sleepers.wake_all(group)
        sleepers.due.clear()
        sleepers.resume_at = None
    else:
        _Waking(state).run(freed_nodes=index.version != sleepers.seen_version)
    _wake_due(state)
    sleepers.seen_holds = state.running.holds
    sleepers.seen_version, sleepers.seen_changes = index.version, index.logged
    sleepers.freed.clear()
    sleepers.all_changed = False


def _wake_due(state: State) -> None:
    """Wake whose time has come, and some of those that are owed a look."""
    sleepers = state.sleepers
    for serial in list(islice(sleepers.owed, MOST_RETRIED)):
        cls = sleepers.owed.pop(serial)
        if cls.jobs:
            sleepers.wake(cls)
    while sleepers.alarms and sleepers.alarms[0][0] <= state.now:
        _, _, cls = sleepers.alarms.pop(0)
        if cls.jobs:
            sleepers.wake(cls)


class _Waking:
    """Wakes in each group those that what changed may serve, and some that may stop others."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.sleepers = state.sleepers
        self._changed = False  # something did that gives some another look
        self._powerless: dict[tuple[str, int, bool, bool, str | None], bool] = {}

    def run(self, *, freed_nodes: bool) -> None:
        state, sleepers = self.state, self.sleepers
        if sleepers.freed or freed_nodes:
            self._wake_passing()
        # while capacity is kept free, what one tree gives back may serve any other
        roots = sleepers.by_root if sleepers.freed and state.quotas.reserves else sleepers.freed
        for root in sorted(roots):
            self._wake_within_quota(root)
        if freed_nodes:
            self._wake_fitting()
        if state.policy.preemption and state.running.holds != sleepers.seen_holds:
            self._note_outranking()
        if state.policy.preemption:
            self._retry()

    def _wake_passing(self) -> None:
        """Wake those that may pass: the first by policy, and others in turn, since any may be short enough."""
        state, sleepers = self.state, self.sleepers
        kinds = len(sleepers.anything)
        groups = {a: g for a, g in sleepers.anything.items() if self._has_room(a, g, kinds)}
        many = sum(map(len, groups.values())) > MANY_PASSING
        for name in state.first_tenants() if many else ():
            for cls in list(state.queues[name].classes.values()):
                if cls.asleep is Asleep.ANYTHING and (cls.demand, cls.topology) in groups:
                    sleepers.wake(cls)
        for group in groups.values():
            some = list(islice(group.values(), 4 if many else MANY_PASSING))
            sleepers.wake_first(some, MANY_PASSING, state.turn_of)
        for ask, group in sleepers.anything.items():
            self._note((ANYTHING, ask), group)

    def _wake_within_quota(self, root: str) -> None:
        """Wake those whose quota has room now."""
        group = self.sleepers.by_root.get(root, {})
        fitting = [cls for cls in group.values() if has_quota(self.state.quotas, cls)]
        self.sleepers.wake_first(fitting, MOST_WOKEN, self.state.turn_of)
        self._note((QUOTA, root), group)

    def _wake_fitting(self) -> None:
        """Wake what the nodes have room for now: one look for each different demand."""
        state, sleepers = self.state, self.sleepers
        # of a large group: ranks that fit, and how many classes to wake
        wanted: dict[NodeAsk, tuple[int, int]] = {}
        gained = _gained(state)
        for ask, group in sleepers.by_ask.items():
            crowded = ask in sleepers.crowded
            if crowded or gained is None or gained.may_hold(ask[0]):
                kinds = len(sleepers.by_ask)
                room = state.index.total_slots(*ask) if self._has_room(ask, group, kinds) else 0
                if room and len(group) > MOST_WOKEN:
                    wanted[ask] = (room, min(room + 4, MOST_WOKEN))
                    sleepers.crowded.add(ask)
                else:
                    sleepers.crowded.discard(ask)
                    fitting = [cls for cls in group.values() if cls.ranks_min <= room]
                    sleepers.wake_first(fitting, MOST_WOKEN, state.turn_of)
            self._note((NODES, ask), group)
        if not wanted:
            return
        for name in state.next_tenants(MOST_WOKEN):
            for cls in list(state.queues[name].classes.values()):
                ask = (cls.demand, cls.topology)
                room, most = wanted.get(ask, (0, 0))
                if most and cls.asleep is Asleep.NODES and cls.ranks_min <= room:
                    sleepers.wake(cls)
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
        state, s = self.state, self.sleepers
        only = not state.running.elastic and is_one_queue(state.policy)
        for ask, group in s.anything.items():
            self._note((ANYTHING, ask), group, reserved_only=only)
        for root, group in s.by_root.items():
            self._note((QUOTA, root), group, reserved_only=only)
        for ask, group in s.by_ask.items():
            self._note((NODES, ask), group, reserved_only=only)

    def _note(self, name: Due, group: Group, *, reserved_only: bool = False) -> None:
        """Note that the classes of a group are due another look; one that is due already keeps its place."""
        if group:
            self._changed = True
            due = self.sleepers.due
            known = due.get(name)
            due[name] = (reserved_only and (known is None or known[0]), len(group))

    def _retry(self) -> None:
        """Wake some that may stop others. Groups take turns, and within one those that slept longest, so that all have theirs."""
        state, sleepers = self.state, self.sleepers
        if not self._changed and (sleepers.resume_at is None or state.now < sleepers.resume_at):
            return
        left = MOST_RETRIED
        for name in list(sleepers.due):
            reserved_only, classes = sleepers.due.pop(name)
            chosen, looked_at = self._may_stop(sleepers.group(name), left, reserved_only=reserved_only)
            for cls in chosen:
                sleepers.wake(cls)  # it will sleep at the end of its group
            left -= len(chosen)
            if looked_at < classes:
                sleepers.due[name] = (reserved_only, classes - looked_at)
            if not left:
                break
        sleepers.pauses = 0 if self._changed else sleepers.pauses + 1
        sleepers.resume_at = state.now + PAUSE_S * (sleepers.pauses + 1) if sleepers.due else None

    def _may_stop(self, group: Group, most: int, *, reserved_only: bool) -> tuple[list[JobClass], int]:
        """Return so many classes of a group that may stop others, and how many were looked at; if not all, these go to its end."""
        chosen: list[JobClass] = []
        passed: list[JobClass] = []
        for cls in islice(group.values(), LOOKED_AT):
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
    """What is free on the nodes of which something changed: only who fits on one of these may have room now that had none."""

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


def _gained(state: State) -> _Gained | None:
    """Return what to look at of the nodes that changed since sleepers were last looked at; None: at all nodes."""
    states = state.index.states_since(state.sleepers.seen_changes)
    return None if states is None else _Gained(state.index, states)
