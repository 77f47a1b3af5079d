"""Run times and memory of earlier runs, kept in memory: read from the store once after a start, then fed by each run that finishes.

Nothing is read for a forecast. The one query after a start is bounded (`Runs.newest_finished`).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from mlp_hub.background import BackgroundTask
from mlp_hub.domain.jobs.job import FINAL, Cause, Job, JobSpec, Phase
from mlp_hub.domain.jobs.right_size import (
    MemoryOfRuns,
    PastMemory,
    RunMemory,
    memory_keys,
    memory_of,
    used_memory,
)
from mlp_hub.domain.jobs.run_times import Key, PastRuns, RunTimes, keys_of
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.scheduler.forecast.ranges import running
from mlp_hub.scheduler.model.outlook import Outlook
from mlp_hub.service.state.board import Board
from mlp_hub.service.state.leadership import LeaseLost
from mlp_hub.store.tx import Tx

log = logging.getLogger(__name__)
LOOKED_AT = 50_000
"""Tuning: runs that the query after a start looks at, those submitted last: completeness of the history, for the time of a start."""
OF_USER = 500
"""Safety: runs of one user among them that are taken: a user with very many leaves room for others."""
TAKEN = 5_000
"""Tuning: runs whose specification is read then: completeness of the history, for half a second of a reader."""
LONGEST_SPEC = 20_000
"""Safety: characters of a specification; runs with longer ones are passed over then: it bounds what is read to 100 MB."""


class EarlierRuns:
    """Earlier runs of jobs that are alike."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._times = RunTimes()
        self._memory = MemoryOfRuns()
        self._keys: dict[str, tuple[Key, ...]] = {}  # of active jobs that somebody asked about
        self._loading = BackgroundTask(self._load)

    def start(self) -> None:
        """Follow the board, and read earlier runs in the background."""
        self._times.clear()
        self._memory.clear()
        self._keys.clear()
        self._board.on_change(self._changed)
        self._loading.cancel()
        self._loading.start()

    async def stop(self) -> None:
        """Read no more."""
        await self._loading.stop()

    async def loaded(self) -> None:
        """Wait until earlier runs are read."""
        await self._loading.finish()

    async def _load(self) -> None:
        try:
            found = await self._board.db.read(_read)
        except LeaseLost:
            return
        except Exception:  # forecasts then begin with what ends from now on
            log.exception("reading the run times of earlier runs failed")
            return
        ended_meanwhile, self._times = self._times, RunTimes()
        memory_meanwhile, self._memory = self._memory, MemoryOfRuns()
        for one in found:
            if one.ran is not None:
                self._times.add(one.user, one.keys, one.ran)
            if one.memory is not None:
                self._memory.add(one.user, one.memory_keys, one.memory)
        self._times.update(ended_meanwhile)
        self._memory.update(memory_meanwhile)

    def _changed(self, job: Job, before: Job | None) -> None:
        if job.phase not in FINAL or (before is not None and before.phase in FINAL):
            return
        keys = self._keys.pop(job.uid, None)
        if job.phase is Phase.FINISHED:
            self._times.add(job.spec.user, keys_of(job.spec) if keys is None else keys, job.ran_in_all)
        if (memory := memory_of(job)) is not None:
            self._memory.add(job.spec.user, memory_keys(job.spec), memory)

    async def remove(self, user: str) -> bool:
        """Forget the runs of a user who leaves."""
        self._times.forget(user)
        self._memory.forget(user)
        return True

    def of(self, uid: str) -> tuple[PastRuns, float] | None:
        """Return the earlier runs of an active job, and the seconds that its earlier attempts ran; None if too few are known.

        May be called in a thread.
        """
        job = self._board.jobs.get(uid)
        if job is None:
            return None
        keys = self._keys.get(uid)
        if keys is None:
            keys = self._keys[uid] = keys_of(job.spec)
        found = self._times.of(job.spec.user, keys)
        return None if found is None else (found, job.ran)

    def of_spec(self, spec: JobSpec) -> tuple[PastRuns, float] | None:
        """Return the earlier runs of a job that is not submitted."""
        found = self._times.of(spec.user, keys_of(spec))
        return None if found is None else (found, 0.0)

    def memory_of(self, spec: JobSpec) -> PastMemory | None:
        """Return the memory that alike runs of a job's user used, of whatever cores and memory; None if none is known."""
        return self._memory.of(spec.user, memory_keys(spec))

    def end_of(self, job: Job, now: float) -> Outlook | None:
        """Return when a running job ends by its earlier runs; None if too few are known or it does not run."""
        if job.phase is not Phase.RUNNING or job.started_at is None:
            return None
        found = self.of(job.uid)
        return None if found is None else running(found[0], job.started_at, found[1], now)


@dataclass(frozen=True, slots=True)
class _EarlierRunFacts:
    user: str
    keys: tuple[Key, ...]
    ran: float | None  # seconds; None of a run that did not finish
    memory_keys: tuple[Key, ...]
    memory: RunMemory | None


def _read(tx: Tx) -> list[_EarlierRunFacts]:
    """Return what is known of earlier runs, the oldest first."""
    found = tx.runs.newest_finished(
        SYSTEM, looked_at=LOOKED_AT, of_user=OF_USER, most=TAKEN, longest_spec=LONGEST_SPEC
    )
    return [
        _EarlierRunFacts(
            run.spec.user,
            keys_of(run.spec),
            run.ran if run.phase is Phase.FINISHED else None,
            memory_keys(run.spec),
            used_memory(
                run.spec,
                run.phase,
                Cause.OUT_OF_MEMORY if run.phase is Phase.FAILED else None,
                run.ram_peak,
            ),
        )
        for run in found
    ]
