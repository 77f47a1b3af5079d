"""Classes of waiting jobs: active ones, and ones inadmissible until something that they could use is free.

This module only keeps the groups. `cycle.requeue` decides which of them are requeued, when, and by
which event.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Iterator
from heapq import nsmallest
from operator import itemgetter

from mlp_hub.scheduler.fairness.members import MemberKey
from mlp_hub.scheduler.model.demand import Demand
from mlp_hub.scheduler.policy import JobKey
from mlp_hub.scheduler.workloads.pending import Awaits, JobClass

NodeAsk = tuple[Demand, str | None]  # a demand and its topology
Group = dict[int, JobClass]  # by serial
Turn = tuple[JobKey, MemberKey, tuple[JobKey, str]]
"""Sort key of a class: its tenant's key, that of its member where the queue goes by them, and its first job."""

QUOTA, NODES, ANYTHING = "quota", "nodes", "anything"
GroupName = tuple[str, str | NodeAsk]
"""Name of a group of inadmissible classes: the resource they await, and their quota tree or request."""

_NUMBER = itemgetter(0)
MOST_REQUEUED = 64
"""Tuning: classes of one group that are requeued at once, the first in line; in a small cluster all of them: time of a cycle,
for how much is tried in it."""

MOST_ASKS = 1 << 15
"""Tuning: requests whose places among the groups are remembered while their groups are empty: memory for not working it out
again."""


class RequestGroups:
    """Groups of inadmissible classes by request. Empty ones are dropped, but each keeps its place for when it returns."""

    def __init__(self) -> None:
        self._groups: dict[NodeAsk, Group] = {}
        self._number: dict[NodeAsk, int] = {}  # in the order in which they first came
        self._line: list[tuple[int, NodeAsk]] = []

    def __len__(self) -> int:
        return len(self._groups)

    def get(self, ask: NodeAsk) -> Group:
        """Return the group of a request; an empty one where there is none."""
        return self._groups.get(ask, {})

    def items(self) -> list[tuple[NodeAsk, Group]]:
        """List the groups in their order; the list stays as it is when groups come and go."""
        return [(ask, self._groups[ask]) for _, ask in self._line]

    def values(self) -> list[Group]:
        """List the groups in their order."""
        return [self._groups[ask] for _, ask in self._line]

    def add(self, cls: JobClass) -> None:
        """Add a class to the group of its request."""
        ask = (cls.demand, cls.topology)
        group = self._groups.get(ask)
        if group is None:
            group = self._groups[ask] = {}
            number = self._number.get(ask)
            if number is None:
                number = self._new_number(ask)
            insort(self._line, (number, ask), key=_NUMBER)
        group[cls.serial] = cls

    def remove(self, cls: JobClass) -> None:
        """Take a class out of its group."""
        ask = (cls.demand, cls.topology)
        group = self._groups.get(ask)
        if group is not None and group.pop(cls.serial, None) is not None and not group:
            del self._groups[ask]
            del self._line[bisect_left(self._line, self._number[ask], key=_NUMBER)]

    def fork(self, copies: Group) -> RequestGroups:
        """Return an independent copy that holds these copies of the classes, by serial."""
        other = RequestGroups()
        other._groups = {ask: _copied(group, copies) for ask, group in self._groups.items()}
        other._number, other._line = dict(self._number), self._line[:]
        return other

    def _new_number(self, ask: NodeAsk) -> int:
        if len(self._number) > max(MOST_ASKS, 2 * len(self._line)):
            self._line = [(number, known) for number, (_, known) in enumerate(self._line)]
            self._number = {known: number for number, known in self._line}
        number = self._number[ask] = len(self._number)
        return number


class Inadmissible:
    """Inadmissible classes, by the resource that makes another look worth it once it is free; and active ones."""

    def __init__(self) -> None:
        self.active: dict[str, Group] = {}  # by tenant
        self.by_root: dict[str, Group] = {}
        self.by_ask = RequestGroups()
        self.anything = RequestGroups()
        self.crowded: set[NodeAsk] = set()  # of `by_ask`, where some may stay though they had room
        self.owed: Group = {}  # had no look for victims yet, for want of time
        # groups that are due another look because something changed, the first one first: only for those that wait
        # for a turn behind others, and how many of its classes
        self.due: dict[GroupName, tuple[bool, int]] = {}
        self.pauses = 0  # so many times looks went on with nothing changed
        self.resume_at: float | None = None  # when looks go on if nothing changes before
        self.timers: list[tuple[float, int, JobClass]] = []
        self.freed: set[str] = set()  # roots of quota trees in which something was given back
        self.all_changed = True  # requeue everything at the next cycle
        self.seen_version = -1  # of the node index, and so many changes of it, and
        self.seen_changes = -1
        self.seen_holds = 0  # so many holds had there been, when groups were last looked at

    def groups(self) -> Iterator[Group]:
        """Yield all groups of inadmissible classes."""
        yield from self.by_root.values()
        yield from self.by_ask.values()
        yield from self.anything.values()

    def group(self, name: GroupName) -> Group:
        """Return the group of this name; an empty one where it is gone."""
        kind, key = name
        if isinstance(key, str):
            return self.by_root.get(key, {})
        return (self.by_ask if kind == NODES else self.anything).get(key)

    def await_quota(self, cls: JobClass, root: str) -> None:
        """Try again when something is given back in its quota tree."""
        self._set_aside(cls, Awaits.QUOTA)
        self.by_root.setdefault(root, {})[cls.serial] = cls
        cls.awaited_root = root

    def await_nodes(self, cls: JobClass) -> None:
        """Try again when the nodes have room for it."""
        self._set_aside(cls, Awaits.NODES)
        self.by_ask.add(cls)

    def await_anything(self, cls: JobClass) -> None:
        """Try again when anything is given back."""
        self._set_aside(cls, Awaits.ANYTHING)
        self.anything.add(cls)

    def requeue(self, cls: JobClass) -> None:
        """Look at a class in the next cycle, or still in this one."""
        self._leave_group(cls)
        cls.awaits = Awaits.NOTHING
        self.active.setdefault(cls.tenant, {})[cls.serial] = cls

    def requeue_all(self, group: Group) -> None:
        """Requeue a whole group."""
        for cls in list(group.values()):
            self.requeue(cls)

    def requeue_first(
        self, classes: Collection[JobClass], most: int, turn_of: Callable[[JobClass], Turn]
    ) -> None:
        """Requeue at most `most` of these classes, in the order of their turns."""
        chosen = nsmallest(most, classes, key=turn_of) if len(classes) > most else list(classes)
        for cls in chosen:
            self.requeue(cls)

    def forget(self, cls: JobClass) -> None:
        """Drop a class in which nobody waits any more."""
        self._leave_group(cls)
        self._leave_active(cls)
        self.owed.pop(cls.serial, None)
        cls.awaits = Awaits.NOTHING

    def requeue_at(self, at: float, cls: JobClass) -> None:
        """Requeue a class at a time, whatever happens."""
        if not any(a == at and c is cls for a, _, c in self.timers):
            insort(self.timers, (at, cls.serial, cls), key=lambda timer: timer[:2])

    def fork(self, copies: Group) -> Inadmissible:
        """Return an independent copy that holds these copies of the classes, by serial."""
        other = Inadmissible()
        other.active = {t: _copied(group, copies) for t, group in self.active.items()}
        other.by_root = {root: _copied(group, copies) for root, group in self.by_root.items()}
        other.by_ask, other.anything = self.by_ask.fork(copies), self.anything.fork(copies)
        other.crowded = set(self.crowded)
        other.owed = {serial: copies[serial] for serial in self.owed if serial in copies}
        other.timers = [(at, serial, copies[serial]) for at, serial, _ in self.timers if serial in copies]
        other.due, other.pauses, other.resume_at = dict(self.due), self.pauses, self.resume_at
        other.freed = set(self.freed)
        other.all_changed = self.all_changed
        other.seen_version, other.seen_changes = self.seen_version, self.seen_changes
        other.seen_holds = self.seen_holds
        return other

    def _set_aside(self, cls: JobClass, what: Awaits) -> None:
        self._leave_group(cls)
        cls.awaits = what
        self._leave_active(cls)

    def _leave_group(self, cls: JobClass) -> None:
        if cls.awaits is Awaits.ANYTHING:
            self.anything.remove(cls)
        elif cls.awaits is Awaits.QUOTA:
            self.by_root.get(cls.awaited_root, {}).pop(cls.serial, None)
        elif cls.awaits is Awaits.NODES:
            self.by_ask.remove(cls)

    def _leave_active(self, cls: JobClass) -> None:
        mine = self.active.get(cls.tenant)
        if mine is not None:
            mine.pop(cls.serial, None)
            if not mine:
                del self.active[cls.tenant]


def _copied(group: Group, copies: Group) -> Group:
    return {serial: copies[serial] for serial in group}
