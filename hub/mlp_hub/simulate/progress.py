"""Progress of a job: its work in seconds at full width, the part kept by checkpoints, and its end.

Full width is `workers_max`: an elastic job with half its workers is half as fast. A start after the
first costs `restart_cost_s` before work continues. Checkpoints come every `checkpoint_every`
seconds of running, counted from the begin of an attempt's work.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from mlp_hub.scheduler.model.types import PendingWorkload
from mlp_hub.simulate.scenario import JobLine

_SLACK = 1e-9  # of a checkpoint's interval: 3 x 0.1 s is a little more than 0.3 s


@dataclass(slots=True)
class Attempt:
    """A job that runs: since when, with how many workers, and how far it is."""

    line: JobLine
    started: float
    ready: float  # when its work begins: after the cost of a restart
    workers: int
    since: float  # when it got this number of workers, or began
    done: float  # work at that time, in seconds at full width
    kept: float  # work at its last checkpoint

    @classmethod
    def start(cls, line: JobLine, now: float, workers: int, kept: float, restart_cost: float) -> Attempt:
        """Begin with the work that an earlier attempt's checkpoint kept."""
        ready = now + restart_cost
        return cls(line, now, ready, workers, ready, kept, kept)

    def advance(self, now: float) -> None:
        """Bring work and checkpoints up to `now`."""
        if now <= self.since:
            return
        every = self.line.checkpoint_every
        if every is not None:
            times = (now - self.ready) / every + _SLACK
            # so often that it cannot be counted: all that it has done is saved
            saved = now if math.isinf(times) else self.ready + every * math.floor(times)
            if saved > self.since:
                self.kept = self.done + self._work(saved - self.since)
        self.done += self._work(now - self.since)
        self.since = now

    def resize(self, now: float, workers: int) -> None:
        """Go on with another number of workers."""
        self.advance(now)
        self.workers = workers

    def end(self) -> float:
        """Return when its work will be done, if nothing happens to it."""
        left = max(self.line.duration - self.done, 0.0)
        if self.workers != self.line.workers_max:
            left = left * self.line.workers_max / self.workers
        return self.since + left

    def lost(self) -> float:
        """Return the work since its last checkpoint, in worker-seconds, as far as it was advanced."""
        return max(self.done - self.kept, 0.0) * self.line.workers_max

    def _work(self, span: float) -> float:
        if self.workers == self.line.workers_max:
            return span
        return span * self.workers / self.line.workers_max


@dataclass(slots=True)
class Run:
    """A job from its submission to its end."""

    uid: str
    name: str
    line: JobLine
    submitted: float
    waiting_since: float
    waited: float = 0.0
    starts: int = 0
    kept: float = 0.0  # work that its checkpoints kept
    attempt: Attempt | None = None
    placement: tuple[str, ...] = ()
    placed_at: float = 0.0  # since when it holds just this
    told: set[str] = field(default_factory=set)  # reasons of the present wait
    version: int = 0  # an end in the calendar that bears another one is out of date

    def as_waiting(self, priority: int, restart_cost: float) -> PendingWorkload:
        """Return the job as the core sees it. Of its duration it shows only what its user told."""
        line = self.line
        estimate = line.estimate
        if estimate is not None and self.starts:
            left = estimate - self.kept
            estimate = left + restart_cost if left > 0 else None  # it was wrong: nothing is known now
        return PendingWorkload(
            uid=self.uid,
            name=self.name.removeprefix(f"{line.user}/"),  # in a run of a hub's jobs each is called USER/NAME
            user=line.user,
            tenant=line.tenant,
            per_worker=line.per_worker,
            workers_min=line.workers_min,
            workers_max=line.workers_max,
            queued_at=self.submitted,
            priority=priority,
            gpu_kind=line.gpu_kind,
            topology=line.topology,
            time_limit=line.time_limit,
            estimate=estimate,
            preemptible=line.preemptible,
            checkpoint_every=line.checkpoint_every,
        )
