"""Pending workloads: each tenant's queue, in classes of jobs with equal requests.

Equal requests share one verdict: the result for the first job of a class holds for all behind it.
So a cycle looks at classes and never at all jobs. A class that could not start is inadmissible
until amounts that it could use are given back (see `cache.inadmissible` and `cycle.requeue`).
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from dataclasses import dataclass, field
from enum import Enum

from mlp_hub.domain.errors import Reason
from mlp_hub.scheduler.model.demand import Demand
from mlp_hub.scheduler.model.resources import Vector, vector_of_ranks
from mlp_hub.scheduler.model.types import CapacityWindow, PendingWorkload, TenantQueue
from mlp_hub.scheduler.policy import LONG_AGO_S, JobKey, goes_first
from mlp_hub.scheduler.workloads.size_classes import Cell, cell_of

ClassKey = tuple[Demand, int, int, int, str | None, int, str]
"""Properties that jobs must share to share a verdict.

They are demand, workers_min, workers_max, ps, topology, priority, and the user where a queue goes
by its members (else "").
"""


class Awaits(Enum):
    """Resource that has to come free before an inadmissible class is tried again; nothing: the class is active."""

    NOTHING = 0
    QUOTA = 1
    NODES = 2
    ANYTHING = 3


@dataclass(eq=False, slots=True)
class QuotaStanding:
    """Standing of the smallest gang of a class against its tenant's quota, under one stamp of its tree; None: nobody asked yet."""

    stamp: int
    fits: bool | None = None
    inside: bool | None = None  # its tenant stays inside nominal quota with it
    entitled: bool | None = None  # its tenant was promised room on nodes for it


@dataclass(eq=False, slots=True)
class JobClass:
    """Waiting jobs of one tenant that ask for the same, the first in line first."""

    tenant: str
    demand: Demand
    workers_min: int
    workers_max: int
    ps: int
    topology: str | None
    priority: int
    user: str  # "" where the queue does not go by its members
    serial: int
    jobs: list[tuple[JobKey, str]] = field(default_factory=list)
    awaits: Awaits = Awaits.NOTHING
    awaited_root: str = ""  # root of the quota tree whose quota it awaits
    reason: Reason | None = None  # why its first job could not start when it was last tried
    ahead: str | CapacityWindow | None = (
        None  # uid of the job that it would have delayed, or the window it would run into
    )
    pass_by: float | None = (
        None  # who ends by then does not delay that job; None: no end is known to be soon enough
    )
    ripe: float | None = (
        None  # when the first of those whom it may stop has run long enough for that; None: nobody has to
    )
    said: Reason | None = None  # the reason that was last told
    shortest: float = math.inf  # expected run time of the shortest job that was ever in it
    standing: QuotaStanding | None = None  # as it was last worked out, see `assign.fit`
    never: tuple[object, bool] | None = (
        None  # whether its quota is too small for it, and under which quotas that was so
    )
    cell: Cell = field(init=False)  # of requests of about this size
    ranks_min: int = field(init=False)  # the fewest ranks that the gang starts with
    vector: Vector = field(init=False)  # what the smallest gang takes of the quota; not to be changed

    def __post_init__(self) -> None:
        self.cell = cell_of(self.demand, self.topology)
        self.ranks_min = self.workers_min + self.ps
        self.vector = vector_of_ranks(self.demand, self.ranks_min)

    @property
    def key(self) -> ClassKey:
        """Return what its jobs have in common."""
        return (
            self.demand,
            self.workers_min,
            self.workers_max,
            self.ps,
            self.topology,
            self.priority,
            self.user,
        )

    def add(self, key: JobKey, uid: str) -> None:
        """Let a job wait at its place."""
        insort(self.jobs, (key, uid))

    def remove(self, key: JobKey, uid: str) -> None:
        """Take a job out."""
        at = bisect_left(self.jobs, (key, uid))
        if at == len(self.jobs) or self.jobs[at][1] != uid:
            raise KeyError(uid)
        del self.jobs[at]

    def fork(self) -> JobClass:
        """Return an independent copy."""
        other = JobClass.__new__(JobClass)
        for name in JobClass.__slots__:  # a forecast copies every class there is
            setattr(other, name, getattr(self, name))
        other.jobs = self.jobs[:]
        return other

    @property
    def first_of_jobs(self) -> JobKey | None:
        """Return the key of the first job behind those that go first, None if there is none."""
        at = bisect_left(self.jobs, ((-LONG_AGO_S / 2, 0.0, ""), ""))
        return self.jobs[at][0] if at < len(self.jobs) else None

    def ahead_of(self, key: JobKey) -> int:
        """Count the jobs of this class that are before a key."""
        return bisect_left(self.jobs, (key, ""))


Head = tuple[tuple[JobKey, str], int, JobClass]
"""Class with its first job and its serial, by which equal ones are told apart."""


@dataclass(eq=False, slots=True)
class Entry:
    """A waiting job in its class."""

    job: PendingWorkload
    cls: JobClass
    key: JobKey


@dataclass(eq=False, slots=True)
class Queue:
    """One tenant's queue. `heads` are its classes in the order of their first jobs; not to be changed.

    Where it goes `by_members`, `lanes` are those of each who waits, in the same way, and `heads` is empty.
    """

    tenant: TenantQueue
    classes: dict[ClassKey, JobClass] = field(default_factory=dict)
    length: int = 0
    heads: list[Head] = field(default_factory=list)
    several: dict[int, JobClass] = field(default_factory=dict)  # by serial, the classes of more than one job
    by_members: bool = False
    lanes: dict[str, list[Head]] = field(default_factory=dict)

    @property
    def first(self) -> JobKey:
        """Return the key of the first job of all classes, where it does not go by members; IndexError when nobody waits."""
        return self.heads[0][0][0]

    @property
    def first_of_jobs(self) -> JobKey | None:
        """Return the key of the first job behind those that go first, None if there is none."""
        best: JobKey | None = None
        for first, _, cls in self.heads:
            if best is not None and best < first[0]:
                break
            key = first[0] if not goes_first(first[0]) else cls.first_of_jobs
            if key is not None and (best is None or key < best):
                best = key
        return best

    def add(self, entry: Entry) -> None:
        """Let a job wait at its place in its class."""
        cls = entry.cls
        before = cls.jobs[0] if cls.jobs else None
        cls.add(entry.key, entry.job.uid)
        if len(cls.jobs) > 1:
            self.several[cls.serial] = cls
        self.length += 1
        self._lead(cls, before)

    def remove(self, entry: Entry) -> None:
        """Take a job out of its class, which stays even when nobody waits in it any more; see `drop`."""
        cls = entry.cls
        before = cls.jobs[0] if cls.jobs else None
        cls.remove(entry.key, entry.job.uid)
        if len(cls.jobs) <= 1:
            self.several.pop(cls.serial, None)
        self.length -= 1
        self._lead(cls, before)

    def _lead(self, cls: JobClass, before: tuple[JobKey, str] | None) -> None:
        """Put a class whose first job was `before` where its present first job belongs."""
        first = cls.jobs[0] if cls.jobs else None
        if first == before:
            return
        heads = self.lanes.setdefault(cls.user, []) if self.by_members else self.heads
        if before is not None:
            del heads[bisect_left(heads, (before, cls.serial, cls))]
        if first is not None:
            insort(heads, (first, cls.serial, cls))
        elif self.by_members and not heads:
            del self.lanes[cls.user]

    def move(self, entry: Entry, key: JobKey) -> None:
        """Let a job wait at another place."""
        self.remove(entry)
        entry.key = key
        self.add(entry)

    def class_for(self, job: PendingWorkload, demand: Demand, serial: int) -> JobClass:
        """Return the class of a job, making it with this serial number if it is the first of its kind."""
        user = job.user if self.by_members else ""
        key = (demand, job.workers_min, job.workers_max, job.ps, job.topology, job.priority, user)
        known = self.classes.get(key)
        if known is None:
            known = self.classes[key] = JobClass(self.tenant.name, *key, serial)
        return known

    def drop(self, cls: JobClass) -> None:
        """Forget a class without jobs."""
        self.classes.pop(cls.key, None)

    def fork(self) -> Queue:
        """Return an independent copy, with copies of the classes."""
        if not self.classes:  # as most are
            return Queue(self.tenant, by_members=self.by_members)
        copies = {cls: cls.fork() for cls in self.classes.values()}
        classes = {key: copies[cls] for key, cls in self.classes.items()}
        heads = [(first, serial, copies[cls]) for first, serial, cls in self.heads]
        lanes = {
            user: [(first, serial, copies[cls]) for first, serial, cls in lane]
            for user, lane in self.lanes.items()
        }
        several = {serial: copies[cls] for serial, cls in self.several.items()}
        return Queue(self.tenant, classes, self.length, heads, several, self.by_members, lanes)

    def position(self, entry: Entry) -> int:
        """Return the place of a job in its line, from 1: in the queue, or among those of the same user where it goes by members."""
        heads, several = self.heads, list(self.several.values())
        if self.by_members:
            user = entry.cls.user
            heads, several = self.lanes[user], [cls for cls in several if cls.user == user]
        first_ones = bisect_left(heads, ((entry.key, ""),))
        return 1 + first_ones + sum([max(cls.ahead_of(entry.key) - 1, 0) for cls in several])

    def waiting_of(self, user: str) -> int:
        """Return how many jobs of a user wait, where the queue goes by members."""
        return sum(len(cls.jobs) for _, _, cls in self.lanes[user])
