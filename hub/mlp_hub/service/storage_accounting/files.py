"""Charges of homes and of jobs' directories, with the stored metric points of a job.

They are measured in the background, in proportion to the changes. Running jobs are measured by the
watch of the disk anyway, and charged whenever they have grown or shrunk by much. Ended jobs are
measured once more and then left alone: that is exact, since nothing writes there any more. A row
with a `granted` amount means that programs can be writing. After a crash all of those are measured
again, and so are directories without a row.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlp_hub.domain.jobs import names
from mlp_hub.domain.jobs.job import HOLDING, Job
from mlp_hub.domain.stored.storage import StoredItem, StoredKind, home_uid
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.domain.workload.workload import SERVER
from mlp_hub.executors.base import Executor
from mlp_hub.executors.workspace import Home, JobRun, Place, Size
from mlp_hub.service.lifecycle.workqueue import WorkQueue
from mlp_hub.service.metrics.service import MetricsService
from mlp_hub.service.state.board import Board
from mlp_hub.service.storage_accounting.full import FullStorages
from mlp_hub.service.support.batching import Batch
from mlp_hub.service.support.runs import run_of
from mlp_hub.service.support.told import notifying
from mlp_hub.service.tenants.places import default_tenant
from mlp_hub.store.tx import Tx

log = logging.getLogger(__name__)
HOME, OUTPUT = "home", "output"
LEAST_CHANGE = 2**20
"""Tuning: bytes of change from which a directory in use is charged again.

It trades fewer written rows for accuracy in the meantime.
"""
PART = 64
"""Tuning: divisor of the used amount; if the result exceeds the bytes above, it is the limit: same trade."""
HOME_AFTER_S = 1.0
"""Tuning: seconds from the end of a job to a look at its owner's home: many jobs that end together cause one walk over it."""
OUTPUTS_EVERY_S = 0.5
"""Tuning: seconds between two charges of the directories of ended jobs: fewer statements for each job, for later charges."""
TOGETHER = 200
"""Tuning: jobs' directories that nobody ever measured, as of an older hub, that one sweep takes on: size of a lot, for how long it
takes until all are charged."""


@dataclass(frozen=True, slots=True)
class _Charge:
    """Outcome of a charge: another amount was stored, or it has to be measured again."""

    stored: bool = False
    again: bool = False


@dataclass(frozen=True, slots=True)
class _MeasuredOutput:
    """Measured directory of a job: its size, and the stored state at that time."""

    uid: str
    used: int
    before: StoredItem | None
    alive: bool


_StoredOutput = tuple[Job | None, StoredItem | None, int]
"""Stored state of a job's directory: the job, the charge, the bytes of its points."""


class FileAccounting:
    """Charges what lies in homes and jobs' directories. `changed` is told what may have made or taken room."""

    def __init__(
        self,
        queue: WorkQueue,
        board: Board,
        executor: Executor,
        clock: Callable[[], float],
        metrics: MetricsService,
        *,
        changed: Callable[[], None],
        wanted: bool,
    ) -> None:
        self._queue, self._board, self._db, self._clock = queue, board, board.db, clock
        self._workspace = executor.workspace
        self._changed = changed
        self.is_on = wanted and executor.workspace.measures
        self._noted: dict[tuple[str, str], int] = {}  # what the watch of the disk found, not charged yet
        self._charged: dict[tuple[str, str], int] = {}  # of what is written to: what it was charged with
        self._users: frozenset[str] = frozenset()  # of whom something may be running
        self._places_changed = self._backlog = True
        self.full = FullStorages(board, executor.nodes, clock, is_on=self.is_on)
        self._looks: Batch[str, _StoredOutput] = Batch(self._look_at)
        self._charges: Batch[_MeasuredOutput, _Charge] = Batch(self._charge)
        queue.serve(HOME, self._home)
        queue.serve(OUTPUT, self._output)
        metrics.points.listeners.append(self.points_changed)
        metrics.deleted.append(self.points_changed)

    async def start(self) -> None:
        """Measure all that may have changed unseen; call when the queue is open and the board is read."""
        if not self.is_on:
            return
        self._noted.clear()
        self._charged.clear()
        self._users = frozenset()
        self._places_changed = self._backlog = True
        self._board.on_change(self._job_changed)

        def work(tx: Tx) -> tuple[list[StoredItem], list[str]]:
            return tx.stored.written_to(), tx.stored.users_without_home()

        items, users = await self._db.read(work)
        for item in items:
            self._queue.add((item.kind.value, item.user if item.kind is StoredKind.HOME else item.uid))
        for user in users:
            self._queue.add((HOME, user))

    async def stop(self) -> None:
        """Read and store nothing more; the next start measures what was left."""
        await self._looks.stop()
        await self._charges.stop()

    def note(self, sizes: Mapping[Place, Size]) -> None:
        """Charge the directories whose size has changed by much, as measured by the watch of the disk."""
        if not self.is_on:
            return
        running = {run_of(job): job.uid for job in self._board.holding.values()}
        for place, size in sizes.items():
            key = self._key(place, running)
            if key is None:
                continue
            before = self._charged.get(key)
            if before is None or abs(size.used - before) >= max(LEAST_CHANGE, before // PART):
                self._noted[key] = size.used
                self._queue.add(key)

    def places_changed(self) -> None:
        """Look soon whose homes count for another tenant by now."""
        self._places_changed = True

    async def review_homes(self) -> None:
        """Find users who began to work or ended, and homes that count elsewhere; add directories never measured."""
        if not self.is_on:
            return
        now = self._clock()
        rows = await self._db.read(lambda tx: tx.ledger.held(now, applier=SERVER.applier))
        running = {job.spec.user for job in self._board.holding.values()}
        users = frozenset({row.user for row in rows if row.user} | running)
        changed, self._users = users ^ self._users, users
        for user in changed:
            self._queue.add((HOME, user))
        for uid in self._board.holding:
            if (OUTPUT, uid) not in self._charged:
                self._queue.add((OUTPUT, uid))
        if self._backlog:
            jobs = await self._db.read(lambda tx: tx.stored.jobs_never_measured(TOGETHER))
            self._backlog = bool(jobs)
            for uid in jobs:
                self._queue.add((OUTPUT, uid))
        if self._places_changed:
            self._places_changed = False
            for user in await self._db.read(_elsewhere):
                self._queue.add((HOME, user))

    async def tidy(self) -> None:
        """Measure homes that may have changed; warn users and tenants whose storage is nearly full."""
        await self.review_homes()
        await self.full.warn()

    def points_changed(self, uid: str) -> None:
        """Charge a job again that is not running: points of it were stored or deleted.

        For a running job the watch of the disk reports.
        """
        if self.is_on and uid not in self._board.holding:
            self._queue.add((OUTPUT, uid))

    @staticmethod
    def _key(place: Place, running: Mapping[JobRun, str]) -> tuple[str, str] | None:
        if isinstance(place, Home):
            return HOME, place.user
        uid = running.get(place)
        return None if uid is None else (OUTPUT, uid)

    def _job_changed(self, job: Job, before: Job | None) -> None:
        if before is not None and before.phase in HOLDING and job.phase not in HOLDING:
            self._queue.add_after((OUTPUT, job.uid), _until_next(OUTPUTS_EVERY_S))
            self._queue.add_after((HOME, job.spec.user), HOME_AFTER_S)

    async def _used(self, key: tuple[str, str], place: Place, points: int = 0, *, written_to: bool) -> int:
        noted = self._noted.pop(key, None)
        if noted is not None and written_to:
            return noted
        return await self._workspace.disk_size(place) + points

    async def _home(self, user: str) -> bool:
        key, uid = (HOME, user), home_uid(user)
        before = await self._db.read(lambda tx: tx.stored.get(uid))
        works = user in self._users
        used = await self._used(key, Home(user), written_to=works)
        made_at = self._clock() if before is None else before.made_at

        def work(tx: Tx) -> _Charge:
            if tx.stored.get(uid) != before:
                return _Charge(again=True)
            if before is not None or used or works:
                tenant = default_tenant(tx, user)
                item = StoredItem(
                    uid, StoredKind.HOME, tenant, user, user, made_at, used=used, granted=int(works)
                )
                if item != before:
                    tx.stored.put(item)
                    return _Charge(stored=True)
            return _Charge()

        return await self._store(key, work, used, written_to=works)

    async def _output(self, uid: str) -> bool:
        job, before, points = await self._looks.submit_item(uid)
        if job is None:
            return False  # its row went with it
        key, alive = (OUTPUT, uid), job.phase in HOLDING
        # each by itself: a directory of millions of files keeps no others waiting
        used = await self._used(key, run_of(job), points, written_to=alive)
        charge = self._charges.submit_item(_MeasuredOutput(uid, used, before, alive))
        return await self._noting(key, charge, used, written_to=alive)

    async def _look_at(self, uids: Sequence[str]) -> Sequence[_StoredOutput]:
        """Read what is stored of the directories of jobs."""

        def look(tx: Tx) -> list[_StoredOutput]:
            jobs, items, sizes = tx.jobs.among(SYSTEM, uids), tx.stored.among(uids), tx.metrics.sizes(uids)
            return [(jobs.get(uid), items.get(uid), sizes.get(uid, 0)) for uid in uids]

        return await self._db.read(look)

    async def _charge(self, outputs: Sequence[_MeasuredOutput]) -> Sequence[_Charge]:
        """Store the sizes of the directories of jobs, of different ones, in one transaction."""

        def work(tx: Tx) -> list[_Charge]:
            uids = [output.uid for output in outputs]
            jobs, items = tx.jobs.among(SYSTEM, uids), tx.stored.among(uids)
            there: dict[str, bool] = {}
            new, done = [], []
            for output in outputs:
                job, before = jobs.get(output.uid), items.get(output.uid)
                if job is None:
                    done.append(_Charge())
                    continue
                if before != output.before or (job.phase in HOLDING) is not output.alive:
                    done.append(_Charge(again=True))
                    continue
                tenant = job.spec.tenant if before is None else before.tenant
                if tenant not in there:
                    there[tenant] = tx.tenants.get(tenant) is not None
                item = _item_of(job, output, tenant if there[tenant] else default_tenant(tx, job.spec.user))
                if item != before:
                    new.append(item)
                done.append(_Charge(stored=item != before))
            tx.stored.put_outputs(new)
            return done

        return await self._db.write(work)

    async def _store(
        self, key: tuple[str, str], work: Callable[[Tx], _Charge], used: int, *, written_to: bool
    ) -> bool:
        return await self._noting(key, self._db.write(work), used, written_to=written_to)

    async def _noting(
        self, key: tuple[str, str], charge: Coroutine[Any, Any, _Charge], used: int, *, written_to: bool
    ) -> bool:
        """Wait for a charge, and know what was charged; True if it must be measured again."""
        done = await notifying(charge, self._changed, news=lambda done: done.stored)
        if done.again or not written_to:
            self._charged.pop(key, None)
        else:
            self._charged[key] = used
        return done.again


def _until_next(every_s: float) -> float:
    """Return the seconds until the next multiple of `every_s` on the loop's clock; all callers of a period get the same moment."""
    return every_s - asyncio.get_running_loop().time() % every_s


def _item_of(job: Job, output: _MeasuredOutput, tenant: str) -> StoredItem:
    title = names.reference(job.spec.name, job.run)
    return StoredItem(
        job.uid,
        StoredKind.OUTPUT,
        tenant,
        job.spec.user,
        f"{title} {job.uid}",
        job.submitted_at,
        used=output.used,
        granted=int(output.alive),
    )


def _elsewhere(tx: Tx) -> list[str]:
    """Return the users whose homes count for another tenant than they do."""
    return [item.user for item in tx.stored.homes() if item.tenant != default_tenant(tx, item.user)]
