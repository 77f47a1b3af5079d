"""The smallest change with which a waiting job would start now: a question to copies of the core.

The core has just planned. A copy gets the job with a smaller request and plans the difference. So
the only cost of a try in proportion to the waiting jobs is the copy itself. All tries of an answer
together are bounded, whatever the number of waiting jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from mlp_hub.domain.dimensions import BY_NAME, MILLI, WHOLE
from mlp_hub.scheduler.core import Core
from mlp_hub.scheduler.model.types import Admit, PendingWorkload, Wait

JOBS_PER_UNIT = 8
"""Tuning: jobs whose copying takes as long as looking at one class (`ClusterState.effort`)."""


class Tries:
    """Asks whether a job would start if it were another one; `core` is left as it is. `over`: no more may be asked."""

    def __init__(self, core: Core, job: PendingWorkload, most: float) -> None:
        self._core = core
        self._uid = job.uid
        self._left = most
        self._fork: Core | None = None
        self._copying = 1 + (len(core.state.waiting) + len(core.state.running)) / JOBS_PER_UNIT
        self.made = 0

    @property
    def over(self) -> bool:
        """Whether the bound is reached."""
        return self._left <= 0

    def starts(self, job: PendingWorkload) -> bool:
        """Tell whether the job would start now as this; False, and nothing asked, beyond the bound."""
        if self.over:
            return False
        self.made += 1
        if self._fork is None:
            self._fork = self._core.fork()
            self._left -= self._copying
        fork = self._fork
        before = fork.state.effort
        fork.withdraw(self._uid)
        fork.submit(job)
        plan = fork.plan(fork.state.now)
        self._left -= fork.state.effort - before
        if not all(isinstance(d, Wait) for d in plan):
            self._fork = None  # it has gone on, the next question needs another one
        return any(isinstance(d, Admit) and d.uid == self._uid for d in plan)


def smaller(tries: Tries, job: PendingWorkload) -> Iterator[str]:
    """Yield the smallest single changes with which the job would start now, as options of `submit`."""

    def workers(n: int) -> PendingWorkload:
        return replace(job, workers_min=n, workers_max=n)

    fewer = _largest(0, job.workers_min - 1, lambda n: tries.starts(workers(n)))
    if fewer:
        yield f"--workers {fewer}"
    for option, dimension, least, step in (
        ("--cpu", "cpu", 100, 100),
        ("--ram", "ram", max(100, job.per_worker.parts_of("ram")), 64),
        ("--gpu", "gpu", 0, MILLI),
        *((f"--{d}", d, BY_NAME[d].least, 1) for d, _ in job.per_worker.amounts),
    ):
        steps = (job.per_worker.part(dimension) - least) // step
        if steps <= 0 or not tries.starts(_with(job, dimension, least)):
            continue

        def less(n: int, dimension: str = dimension, least: int = least, step: int = step) -> bool:
            return tries.starts(_with(job, dimension, least + n * step))

        value = least + _largest(0, steps, less) * step
        yield f"{option} {value if dimension in WHOLE else f'{value / MILLI:g}'}"


def _largest(low: int, high: int, works: Callable[[int], bool]) -> int:
    """Return the largest number up to `high` that works, if all below it do; `low` is taken to."""
    while low < high:
        middle = (low + high + 1) // 2
        if works(middle):
            low = middle
        else:
            high = middle - 1
    return low


def _with(job: PendingWorkload, dimension: str, value: int) -> PendingWorkload:
    return replace(job, per_worker=job.per_worker.with_part(dimension, value))
