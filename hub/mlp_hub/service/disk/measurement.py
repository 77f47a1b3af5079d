"""One look at the disk: free space, sizes of directories, writes of processes."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mlp_hub.domain.jobs.job import Job
from mlp_hub.executors.base import Executor
from mlp_hub.executors.workspace import Home, JobRun, Place, Size, Space
from mlp_hub.service.config import DiskPolicy
from mlp_hub.service.disk import rules
from mlp_hub.service.disk.meter import Bounded, DiskMeter, Measured, Processes, Whose
from mlp_hub.service.disk.rules import DiskWriter
from mlp_hub.service.support.runs import run_of
from mlp_language.message import Message

Keeps = Callable[[Space], Awaitable[None]]
"""Keeps room for the platform itself while there is enough."""


@dataclass(frozen=True, slots=True)
class Look:
    """Result of one look: a shortage for jobs, and one for notebook servers too.

    `lost` is the amount by which the disk filled in the last minute. `measured` are the directories
    that were measured.
    """

    space: Space | None
    shortage: Message | None
    shortage_for_servers: Message | None = None
    lost: tuple[int, float] = (0, 0.0)
    measured: Mapping[Place, Size] = field(default_factory=dict)

    @property
    def holds(self) -> tuple[bool, bool]:
        """Whether jobs, and servers, are not started."""
        return self.shortage is not None, self.shortage_for_servers is not None


class Looker:
    """Remembers what it saw."""

    def __init__(self, executor: Executor, policy: DiskPolicy, keep: Keeps, *, database_here: bool) -> None:
        self._executor = executor
        self._workspace = executor.workspace
        self._policy = policy
        self._keep = keep
        self._database_here = database_here  # what is stored of jobs' points fills this disk too
        self._filled: dict[str, Measured] = {}  # what is not free of each file system
        self.meter = DiskMeter()
        self._of: dict[Whose, str] = {}  # by key of processes: whose they are, or were
        self.processes = Processes()

    async def measure_all(
        self, jobs: Sequence[Job], users: Iterable[str], servers: Iterable[str], points: Mapping[str, int]
    ) -> Look:
        """Look once at these jobs, at the homes of these users and at the notebook servers of some; takes a moment.

        `points` is how many bytes of metric points are stored of each job, by its uid.
        """
        here = await self._workspace.spaces()
        if not here:
            return Look(None, None)
        floor = self._policy.floor
        short = ((name, one) for name, one in here.items() if rules.shortage(one, floor))
        name, space = next(short, next(iter(here.items())))
        await self._keep(space)
        now = time.monotonic()
        for one, of_it in here.items():
            self._filled.setdefault(one, Measured()).note(now, Size(of_it.total - of_it.free))
        asked: list[Whose] = [job.attempt for job in jobs]
        asked += map(Home, servers)
        self._of = {whose: user for whose, user in self._of.items() if self._may_have_written(whose)}
        here_too = {job.attempt: points.get(job.uid, 0) for job in jobs} if self._database_here else {}
        use = {
            whose: replace(one, written=one.written + more, stored=one.stored + more)
            for whose, one in (await self._executor.disk_use(asked)).items()
            for more in (here_too.get(whose, 0) if isinstance(whose, str) else 0,)
        }
        self.processes.note(asked, use, self._of)
        self._of |= {job.attempt: job.spec.user for job in jobs} | {Home(user): user for user in servers}
        places, hurry = self._places(jobs, users, here_too), space.free < 2 * floor
        sizes = await self._workspace.sizes(self.meter.waits(places, hurry=hurry), hurry=hurry)
        measured = {place: self.meter.known[place].size for place in self.meter.note(places, sizes)}
        if not self._database_here:  # they are charged wherever they are
            elsewhere = {run_of(job): points.get(job.uid, 0) for job in jobs}
            measured = {
                place: replace(size, used=size.used + elsewhere.get(place, 0))
                if isinstance(place, JobRun)
                else size
                for place, size in measured.items()
            }
        lost = self._filled[name].grown()
        return Look(space, rules.shortage(space, floor), rules.shortage_at_half(space, floor), lost, measured)

    def _places(
        self, jobs: Sequence[Job], users: Iterable[str], points: Mapping[str, int]
    ) -> dict[Place, Bounded]:
        unlinked = self.processes.unlinked
        places: dict[Place, Bounded] = {}
        for home in map(Home, users):
            places[home] = Bounded(self._policy.home, unlinked.get(home, 0))
        for job in jobs:
            # an attempt may have written all of it before it was looked at first
            news = self.processes.written[job.attempt].size.used if job.restarts else rules.ALL
            extra = unlinked[job.attempt] + points.get(job.attempt, 0)
            places[run_of(job)] = Bounded(self._policy.job, extra, news)
        return places

    def _may_have_written(self, whose: Whose) -> bool:
        """Whether its user's home was measured last before it was gone, or has grown since it was there."""
        home, its = self.meter.known.get(Home(self._of[whose])), self.processes.stored.get(whose)
        if home is None or its is None or not (home.history and its.history):
            return False
        return home.history[0][0] <= its.history[-1][0]

    def writer_of_home(self, user: str, jobs: Sequence[Job], servers: Collection[str]) -> DiskWriter | None:
        """Find who lets a home grow: the user's job that writes most, or the notebooks where no job writes as much.

        It is nobody who is here where one that has gone since wrote more of it than they did.
        """
        home, wrote = Home(user), self.processes.wrote
        grown, over = self.meter.known[home].grown()
        here: dict[Whose, str | None] = {}
        there: dict[Whose, int] = {}
        for job in (job for job in jobs if job.spec.user == user):
            here[job.attempt] = job.uid
            # what a job wrote to its own directory is not in the home
            there[job.attempt] = max(wrote(job.attempt) - self.meter.known[run_of(job)].grown()[0], 0)
        first = max(there, key=there.__getitem__, default=None)
        if user in servers:
            here[home], there[home] = None, wrote(home)
            if first is None or there[first] < max(grown / 2, there[home]):
                first = home
        gone = (wrote(key) for key, whose in self._of.items() if whose == user and key not in here)
        if first is None or there[first] < min(grown / 2, max(gone, default=0)):
            return None
        return DiskWriter(here[first], user, grown, over)

    def stored_beside(self, user: str, jobs: Sequence[Job]) -> tuple[int, int]:
        """Return what a user's processes stored that is in no job's directory: since they began, and in the last minute."""
        own: dict[Whose, Measured] = {Home(user): Measured()}
        own |= {job.attempt: self.meter.known[run_of(job)] for job in jobs if job.spec.user == user}
        stored = self.processes.stored
        found = [(stored[key], known) for key, known in own.items() if key in stored]
        return (
            sum(max(one.size.used - known.size.used, 0) for one, known in found),
            sum(max(one.grown()[0] - known.grown()[0], 0) for one, known in found),
        )

    def by_growth(
        self, jobs: Sequence[Job], users: Iterable[str], servers: Collection[str]
    ) -> list[DiskWriter]:
        """List who lets which directory grow."""
        writers = [DiskWriter(job.uid, job.spec.user, *self.meter.known[run_of(job)].grown()) for job in jobs]
        of_homes = [self.writer_of_home(user, jobs, servers) for user in users]
        return writers + [writer for writer in of_homes if writer is not None]

    def by_writes(self, jobs: Sequence[Job], servers: Iterable[str]) -> list[DiskWriter]:
        """List who wrote how much to a disk, wherever on it."""
        stored = self.processes.stored
        writers = [DiskWriter(job.uid, job.spec.user, *stored[job.attempt].grown()) for job in jobs]
        return writers + [DiskWriter(None, user, *stored[Home(user)].grown()) for user in servers]
