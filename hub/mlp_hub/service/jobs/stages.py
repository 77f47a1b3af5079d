"""Stages of a job's attempts, as its timeline has them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from mlp_hub.domain.jobs.stages import StartStage
from mlp_hub.store.records import JobEvent

MOST_ATTEMPTS = 20
"""Tuning: attempts that are told, the newest: a job that fails for ever has more than anybody looks at."""
_QUEUES = frozenset({"submitted", "resumed", "requeued"})
_LEAVES = frozenset({"requeued", "suspended", "resized"})
"""Steps with which an attempt ends and another one is to come."""
_ENDS = frozenset({"ended", "attempt-failed", "start-failed", "cancelled"})
_REACHED = {
    **{stage.value: stage for stage in StartStage if stage is not StartStage.QUEUED},
    "running": StartStage.STARTED,
}
STEPS = frozenset({*_QUEUES, *_LEAVES, *_ENDS, *_REACHED, "preempted", "starting"})
"""Steps of a timeline about attempts' stages."""


@dataclass(slots=True)
class StagedAttempt:
    """An attempt: when it came to which stage, in seconds since the epoch; `ended` is the step with which it ended."""

    number: int = 0
    stages: dict[StartStage, float] = field(default_factory=dict)
    begun: bool = False  # its executor was told
    ended: str | None = None
    ended_at: float | None = None

    def in_order(self) -> list[tuple[StartStage, float, float | None]]:
        """List the stages: when, and how long after the one before; clocks of different machines turn no order around."""
        found: list[tuple[StartStage, float, float | None]] = []
        for stage in StartStage:
            if stage in self.stages:
                before = found[-1][1] if found else None
                at = self.stages[stage] if before is None else max(self.stages[stage], before)
                found.append((stage, at, None if before is None else at - before))
        return found


def attempts_of(events: Iterable[JobEvent], restarts: int) -> list[StagedAttempt]:
    """Return the newest attempts, in order, of a job that was started again `restarts` times."""
    found: list[StagedAttempt] = []
    for event in events:
        _take(found, event)
    if found:
        first = restarts + (found[-1].ended not in _LEAVES) - len(found) + 1
        for number, attempt in enumerate(found, max(first, 1)):
            attempt.number = number
    return found[-MOST_ATTEMPTS:]


def _take(found: list[StagedAttempt], event: JobEvent) -> None:
    """Take in the next step of a timeline."""
    at = found[-1] if found and found[-1].ended is None else None
    if event.kind in _LEAVES and at is not None and at.begun:
        at.ended, at.ended_at, at = event.kind, event.time, None
    if event.kind == "suspended" and at is not None:
        found.pop()  # it left the queue, and begins to wait anew
    elif event.kind in _QUEUES or (event.kind == "preempted" and at is not None and not at.begun):
        _now_of(found, at).stages = {StartStage.QUEUED: event.time}
    elif event.kind == "resized":
        found.append(StagedAttempt(stages={StartStage.ADMITTED: event.time}))
    elif event.kind in _REACHED:
        # of a long timeline, which has lost its begin, there may be none yet
        _now_of(found, at).stages.setdefault(_REACHED[event.kind], event.time)
    elif at is not None:
        at.begun = at.begun or event.kind == "starting"
        if event.kind in _ENDS:
            at.ended, at.ended_at = event.kind, event.time


def _now_of(found: list[StagedAttempt], at: StagedAttempt | None) -> StagedAttempt:
    if at is None:
        found.append(at := StagedAttempt())
    return at
