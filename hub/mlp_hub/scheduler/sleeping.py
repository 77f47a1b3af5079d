"""Which classes of waiting jobs are looked at, and which sleep until something comes free that they could use.

This only keeps the groups; who is woken when, and by what, is decided in `waking`.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Collection, Iterator
from heapq import nsmallest

from mlp_hub.scheduler.demand import Demand
from mlp_hub.scheduler.ordering import JobKey
from mlp_hub.scheduler.queues import Asleep, JobClass

NodeAsk = tuple[Demand, str | None]  # a demand and its topology
Group = dict[int, JobClass]  # by serial
Turn = tuple[JobKey, JobKey, tuple[JobKey, str]]
"""Of a class: its tenant's key, that of its member where the queue goes by them, and its first job."""

MOST_WOKEN = 64
"""Classes of one group that are woken at once, those first in line; in a small cluster that is all of them."""


class Sleepers:
    """The classes by what has to come free before looking at them again is worth it, and those that are awake."""

    def __init__(self) -> None:
        self.awake: dict[str, Group] = {}  # by tenant
        self.by_root: dict[str, Group] = {}
        self.by_ask: dict[NodeAsk, Group] = {}
        self.anything: dict[NodeAsk, Group] = {}
        self.owed: Group = {}  # had no look for victims yet, for want of time
        self.alarms: list[tuple[float, int, JobClass]] = []
        self.freed: set[str] = set()  # roots of quota trees in which something was given back
        self.all_changed = True  # wake everything at the next cycle
        self.seen_version = -1  # of the node index, and
        self.seen_holds = 0  # so many holds had there been, when sleepers were last looked at

    def groups(self) -> Iterator[Group]:
        """Yield all groups of sleepers."""
        yield from self.by_root.values()
        yield from self.by_ask.values()
        yield from self.anything.values()

    def sleep_on_quota(self, cls: JobClass, root: str) -> None:
        """Try again when something is given back in its quota tree."""
        self._to_sleep(cls, self.by_root.setdefault(root, {}), Asleep.QUOTA)
        cls.sleeps_in = root

    def sleep_on_nodes(self, cls: JobClass) -> None:
        """Try again when the nodes have room for it."""
        self._to_sleep(cls, self.by_ask.setdefault((cls.demand, cls.topology), {}), Asleep.NODES)

    def sleep(self, cls: JobClass) -> None:
        """Try again when anything is given back."""
        self._to_sleep(cls, self.anything.setdefault((cls.demand, cls.topology), {}), Asleep.ANYTHING)

    def wake(self, cls: JobClass) -> None:
        """Look at a class in the next cycle, or still in this one."""
        self._leave_group(cls)
        self._wakes(cls)

    def wake_all(self, group: Group) -> None:
        """Wake a whole group."""
        for cls in group.values():
            self._wakes(cls)
        group.clear()

    def wake_first(
        self, group: Group, classes: Collection[JobClass], most: int, turn_of: Callable[[JobClass], Turn]
    ) -> None:
        """Wake so many classes of a group, those first whose turn comes first."""
        chosen = nsmallest(most, classes, key=turn_of) if len(classes) > most else list(classes)
        for cls in chosen:
            del group[cls.serial]
            self._wakes(cls)

    def forget(self, cls: JobClass) -> None:
        """Drop a class in which nobody waits any more."""
        self._leave_group(cls)
        self._leave_awake(cls)
        self.owed.pop(cls.serial, None)
        cls.asleep = Asleep.NO

    def alarm(self, at: float, cls: JobClass) -> None:
        """Wake a class at a time, whatever happens."""
        if not any(a == at and c is cls for a, _, c in self.alarms):
            insort(self.alarms, (at, cls.serial, cls), key=lambda alarm: alarm[:2])

    def fork(self, copies: Group) -> Sleepers:
        """Return an independent copy that holds these copies of the classes, by serial."""
        other = Sleepers()
        other.awake = {t: _copied(group, copies) for t, group in self.awake.items()}
        other.by_root = {root: _copied(group, copies) for root, group in self.by_root.items()}
        other.by_ask = {ask: _copied(group, copies) for ask, group in self.by_ask.items()}
        other.anything = {ask: _copied(group, copies) for ask, group in self.anything.items()}
        other.owed = {serial: copies[serial] for serial in self.owed if serial in copies}
        other.alarms = [(at, serial, copies[serial]) for at, serial, _ in self.alarms if serial in copies]
        other.freed = set(self.freed)
        other.all_changed = self.all_changed
        other.seen_version, other.seen_holds = self.seen_version, self.seen_holds
        return other

    def _to_sleep(self, cls: JobClass, group: Group, how: Asleep) -> None:
        self._leave_group(cls)
        group[cls.serial] = cls
        cls.asleep = how
        self._leave_awake(cls)

    def _wakes(self, cls: JobClass) -> None:
        cls.asleep = Asleep.NO
        self.awake.setdefault(cls.tenant, {})[cls.serial] = cls

    def _leave_group(self, cls: JobClass) -> None:
        if cls.asleep is Asleep.ANYTHING:
            self.anything.get((cls.demand, cls.topology), {}).pop(cls.serial, None)
        elif cls.asleep is Asleep.QUOTA:
            self.by_root.get(cls.sleeps_in, {}).pop(cls.serial, None)
        elif cls.asleep is Asleep.NODES:
            self.by_ask.get((cls.demand, cls.topology), {}).pop(cls.serial, None)

    def _leave_awake(self, cls: JobClass) -> None:
        mine = self.awake.get(cls.tenant)
        if mine is not None:
            mine.pop(cls.serial, None)
            if not mine:
                del self.awake[cls.tenant]


def _copied(group: Group, copies: Group) -> Group:
    return {serial: copies[serial] for serial in group}
