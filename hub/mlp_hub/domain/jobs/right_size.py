"""Memory that runs used, and the amount that fits the next run. Pure; the one rule behind offers, forms, jobs and `--ram auto`.

The amount is the most that one rank of the newest alike runs held, and a margin. Runs are alike as in `run_times`, and cores
and memory may differ. A run that ran out of memory counts with all that it had, so the next amount is larger.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mlp_hub.domain.dimensions import BY_NAME, WITHIN
from mlp_hub.domain.jobs.job import Cause, Job, JobSpec, Phase, RankStatus
from mlp_hub.domain.jobs.run_times import Key, NewestOfKeys, keys_of

MARGIN_PERCENT = 20
"""Limit of jobs: percent that `--ram auto` adds to the most memory that earlier runs used."""
MARGIN_MIB = 256
"""Limit of jobs: MiB that `--ram auto` adds at least to the most memory that earlier runs used."""
STEP_MIB = 64
"""Tuning: MiB to whose multiple an amount is rounded up: runs whose use differs a little get the same shape."""
MOST_KEYS = 10_000
"""Safety: keys of all users together, at most 8 MB; keys of the user whose last run is longest ago go first."""
MOST_MIB = 1_000_000_000
"""Given: MiB of the largest request; a larger measurement is not believed."""


@dataclass(frozen=True, slots=True)
class RunMemory:
    """Memory of one rank of a run, in MiB: the most that any of its ranks used, and the amount that each had."""

    used: int
    asked: int
    ran_out: bool = False


@dataclass(frozen=True, slots=True)
class PastMemory:
    """Memory of alike runs that ended, at least one; the oldest first."""

    runs: tuple[RunMemory, ...]

    @property
    def most(self) -> int:
        """The most MiB that a rank used; of a run that ran out of memory all that it had."""
        return max(run.used for run in self.runs)

    @property
    def asked(self) -> int:
        """The MiB that each rank of the newest run had."""
        return self.runs[-1].asked

    @property
    def ran_out(self) -> int:
        """How many of the runs ran out of memory."""
        return sum(run.ran_out for run in self.runs)

    def fitting(self, spec: JobSpec | None = None) -> int:
        """Return the MiB that fit the next run: the largest use, and a margin.

        Not less than `spec` asks for as a part of its memory, such as shared memory, nor than a rank may ask for.
        """
        margin = max(-(-self.most * MARGIN_PERCENT // 100), MARGIN_MIB)
        fits = -(-(self.most + margin) // STEP_MIB) * STEP_MIB
        parts = {} if spec is None else dict(spec.per_worker.amounts)
        within = (v for name, v in parts.items() if name in WITHIN and BY_NAME[name].within == "ram")
        return min(max(fits, BY_NAME["ram"].least, *within), MOST_MIB)


class MemoryOfRuns(NewestOfKeys[RunMemory]):
    """The newest memory use of each key of each user."""

    def __init__(self) -> None:
        super().__init__(keys=MOST_KEYS)

    @staticmethod
    def believable(value: RunMemory) -> bool:
        """Whether it can have been measured: a run that used nothing was not."""
        return 0 < value.used <= MOST_MIB and 0 < value.asked <= MOST_MIB

    def of(self, user: str, keys: Iterable[Key]) -> PastMemory | None:
        """Return the runs of the closest likeness; None if none is known."""
        found = self.newest(user, keys, 1)
        return PastMemory(found) if found else None


def memory_keys(spec: JobSpec) -> tuple[Key, ...]:
    """Return the keys of a job whose cores and memory do not matter."""
    return keys_of(spec, any_size=True)


def memory_of(job: Job) -> RunMemory | None:
    """Return what a run that ended used; None if it says nothing of the next one, or was not measured."""
    cause = None if job.failure is None else job.failure.cause
    return used_memory(job.spec, job.phase, cause, _most(job.ranks))


def used_memory(spec: JobSpec, phase: Phase, cause: Cause | None, most: int | None) -> RunMemory | None:
    """Return what a run used whose ranks used `most` MiB at most.

    Runs that finished count, and those that ran out of memory. All others ended early, and say little.
    """
    asked = spec.per_worker.ram
    if phase is Phase.FAILED and cause is Cause.OUT_OF_MEMORY:
        return RunMemory(max(asked, most or 0), asked, ran_out=True)
    return RunMemory(most, asked) if phase is Phase.FINISHED and most else None


def _most(ranks: Iterable[RankStatus]) -> int | None:
    return max((rank.ram_peak for rank in ranks if rank.ram_peak is not None), default=None)
