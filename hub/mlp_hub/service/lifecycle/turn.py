"""What is known of a job at one look, and the moves that are made of it."""

from __future__ import annotations

from dataclasses import dataclass

from mlp_hub.domain.changed import changed
from mlp_hub.domain.errors import Reason
from mlp_hub.domain.jobs.job import ALIVE, JOB_MACHINE, Job, Phase, Target, wait_ends
from mlp_hub.domain.jobs.stages import NO_TIMES, SEEN_BY_EXECUTORS, STAGES, StageTimes, StartStage
from mlp_hub.executors.base import AttemptPhase, Observation
from mlp_hub.service.lifecycle.messages import came_to_end, killed_for_memory, lines_lost
from mlp_hub.service.state.moves import Move, Step
from mlp_language.message import Message

KILL_MARGIN_S = 10.0
"""Safety: seconds after its grace or its time limit at which the service kills a job, if the executor has not ended it, and then
the seconds until its attempt is given up: no job outlives its limit for an executor that does not act."""
_TO_CANCELLED = frozenset({Phase.CANCELLING, Phase.CANCELLED})


@dataclass(frozen=True, slots=True)
class Turn:
    """One look at a job: what is stored of it, its attempt as the executor sees it, and the time."""

    job: Job
    seen: Observation
    now: float
    grace_s: float
    stop_sent_at: float | None
    watched_s: float | None = None

    def moved(
        self, phase: Phase, kind: str, message: Message, reason: str | None = None, **changes: object
    ) -> Move:
        """Return the move to a phase, with what is known at this look."""
        job = self.job
        if phase is Phase.QUEUED:
            changes["waiting_since"] = self.now
        elif job.phase is Phase.QUEUED:
            changes |= wait_ends(job, self.now)
        before = self.passed
        if phase not in ALIVE:
            changes.setdefault("stages", NO_TIMES)
            before = (*before, *self.of_its_end)
        elif before:
            changes["stages"] = self.stages
        new = _moved(job, phase, message, reason, **changes)
        return Move(job, new, Step(kind, message, reason), before)

    @property
    def was_killed(self) -> bool:
        """Whether this process killed the attempt, as it did not end when it was asked to."""
        sent = self.stop_sent_at
        return sent is not None and self.now >= sent + self.grace_s + KILL_MARGIN_S

    @property
    def stages(self) -> StageTimes:
        """Known stages of the ranks: if the executor forgets one, it stays."""
        return self.job.stages.then(self.seen.stages)

    @property
    def passed(self) -> tuple[Step, ...]:
        """Stages that the attempt came to and its timeline does not have yet."""
        seen, job = self.seen, self.job
        steps = [] if seen.stages == job.stages else _stages(job, seen)
        over = seen.phase not in (AttemptPhase.ABSENT, AttemptPhase.STARTING, AttemptPhase.RUNNING)
        if over and job.phase is Phase.STARTING and seen.started_at is not None:
            # nobody saw it run: what says so elsewhere is the move to that phase
            steps.append(Step(StartStage.STARTED.value, STAGES[StartStage.STARTED], at=seen.started_at))
            steps.sort(key=lambda step: step.kind == StartStage.FIRST_LINE.value)
        return tuple(steps)

    @property
    def of_its_end(self) -> tuple[Step, ...]:
        """Steps of which nothing is known any more once the attempt is forgotten."""
        seen, steps = self.seen, []
        if seen.lost_lines:
            steps.append(Step("output-lost", lines_lost(seen.lost_lines), once=True))
        if seen.ending is not None:
            at = seen.finished_at if seen.finished_at is not None else self.now
            said = came_to_end(seen.ending, at, saves=self.job.spec.replica is None)
            steps.append(Step("asked-to-end", said, at=at, once=True))
        if seen.memory_kills:
            steps.append(Step("memory-killed", killed_for_memory(seen.memory_kills), once=True))
        return tuple(steps)

    @property
    def ran(self) -> float:
        """Run time of the present attempt, which is over."""
        began = self.job.started_at if self.job.started_at is not None else self.seen.started_at
        ends = (self.job.finished_at, self.seen.finished_at, self.now)
        end = next(at for at in ends if at is not None)
        return 0.0 if began is None else max(end - began, 0.0)

    def next_attempt(self) -> dict[str, object]:
        """Changes of a job that loses its attempt and can have another."""
        job = self.job
        return {
            "restarts": job.restarts + 1,
            "ran": job.ran + self.ran,
            "progress": 0,
            "progress_from": None,
            "progress_since": None,
            "placement": (),
            "admitted_at": None,
            "started_at": None,
            "finished_at": None,
            "failure": None,
            "ranks": (),
            "resize_to": (),
            "stages": NO_TIMES,
            "ran_before": 0.0,
            "target": Target.RUN if job.target in (Target.PREEMPT, Target.RESIZE) else job.target,
        }


def move_job(
    job: Job, phase: Phase, kind: str, message: Message, reason: str | None = None, **changes: object
) -> Move:
    """Return the move of a job to a phase with its step of the timeline; `changes` are of its fields."""
    return Move(job, _moved(job, phase, message, reason, **changes), Step(kind, message, reason))


def _moved(job: Job, phase: Phase, message: Message, reason: str | None, **changes: object) -> Job:
    JOB_MACHINE.check(job.phase, phase, name=job.title)
    if _was_told_why(job, phase):
        reason, message = job.reason, job.message  # whoever asked for its end said why
    if phase is not Phase.RUNNING and job.idle is not None:
        changes["idle"] = None
    return changed(job, phase=phase, reason=reason, message=message, **changes)


def _was_told_why(job: Job, phase: Phase) -> bool:
    """Return whether a job comes to a phase by the reason that it has: that of the platform, which asked for its end."""
    if job.reason == Reason.STOPPED_EARLY or (job.reason == Reason.IDLE_GPUS and job.spec.trial is not None):
        return phase in _TO_CANCELLED
    return job.reason == Reason.IDLE_GPUS and phase is Phase.SUSPENDING


def _stages(job: Job, seen: Observation) -> list[Step]:
    """List the steps of stages that are new."""
    return [
        Step(stage.value, STAGES[stage], at=at)
        for stage in SEEN_BY_EXECUTORS
        if (at := seen.stages.time_of(stage)) is not None and job.stages.time_of(stage) is None
    ]
