"""Sweeps: one program with many parameters, one entry for people; its trials, and the one table of its phases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from mlp_hub.domain.jobs import names
from mlp_hub.domain.jobs.job import JobSpec, Param
from mlp_hub.domain.jobs.space import Grid, Space, point_of, shuffled, size_of
from mlp_hub.domain.machine import Machine
from mlp_language.message import NOTHING, Message, msg

MOST_TRIALS = 1000
"""Limit of jobs: trials of one sweep, and members of one array."""
ALL_FAILED = 5
"""Limit of jobs: trials that fail before any other ends well, after which the sweep ends."""


class SweepPhase(StrEnum):
    """State of a sweep."""

    RUNNING = "running"  # trials are made as there is room, until its budget is used up
    ENDING = "ending"  # no more are made; those that are there are being ended
    FINISHED = "finished"  # all its trials have ended, or its budget is used up
    FAILED = "failed"  # its trials fail
    CANCELLED = "cancelled"  # somebody stopped it
    DELETING = "deleting"  # its trials are being deleted


S = SweepPhase
ENDED_SWEEPS = frozenset({S.FINISHED, S.FAILED, S.CANCELLED})
SWEEP_MACHINE = Machine(
    {
        S.RUNNING: frozenset({S.ENDING, *ENDED_SWEEPS}),
        S.ENDING: ENDED_SWEEPS,
        # whose budget is extended goes on
        S.FINISHED: frozenset({S.RUNNING, S.DELETING}),
        S.FAILED: frozenset({S.DELETING}),
        S.CANCELLED: frozenset({S.RUNNING, S.DELETING}),
        S.DELETING: frozenset(),
    },
    msg("sweep {name} is {old} and cannot become {new}"),
)


class TrialState(StrEnum):
    """State of a trial."""

    PLANNED = "planned"  # its parameters are chosen; whether its job is there already, the jobs say
    RUNNING = "running"  # its job waits or runs
    FINISHED = "finished"  # its job ended well, and what is measured was reported
    STOPPED = "stopped"  # ended early: enough others were as good or better
    FAILED = "failed"  # its job failed, or never reported what is measured
    CANCELLED = "cancelled"  # its job was cancelled, by its user or as the sweep ended


LIVE_TRIALS = frozenset({TrialState.PLANNED, TrialState.RUNNING})


@dataclass(frozen=True, slots=True)
class SubmittedFrom:
    """Claims of a client: the git commit, whether files have changed since, the environment's packages.

    They are about the place that it submits from.
    """

    commit: str | None = None
    dirty: bool | None = None
    environment: str | None = None


@dataclass(frozen=True, slots=True)
class SweepSpec:
    """Specification of a sweep: the trials, their choice, and the early stops.

    `job` is the job of each trial, without its parameters.
    """

    job: JobSpec
    grid: Grid = ()
    search: Space = ()
    metric: str = ""  # empty: nothing is compared, as in an array
    maximize: bool = False
    sampler: str = "tpe"  # or random; of what is searched
    stop: str = "none"  # asha, median
    warmup: int = 1  # values of the metric before which no trial is stopped
    parallel: int | None = None  # trials at a time, at most
    seed: int = 0
    array: bool = False  # then the grid is that of its indices
    shuffled: bool = (
        False  # its grid is gone through as chance and `seed` say, not in the order in which it was written
    )
    submitted_from: SubmittedFrom | None = None  # kept with each trial

    @property
    def points(self) -> int | None:
        """How many points there are to try, None where they have no end."""
        return None if self.search else size_of(self.grid)

    def point(self, number: int) -> dict[str, Param]:
        """Return the grid's parameters for the trial of this number."""
        if self.shuffled:
            order = shuffled(size_of(self.grid), self.seed)
            number = order[number % len(order)]
        return point_of(self.grid, number)


@dataclass(frozen=True, slots=True)
class Budget:
    """How much a sweep may take: trials, core-hours of all of them together, and until when."""

    trials: int
    core_hours: float | None = None
    deadline: float | None = None


@dataclass(frozen=True, slots=True)
class SweepTrial:
    """A trial as stored. `rungs` is what the rule of early stopping keeps of it; `curve` are values of the metric by step."""

    number: int
    params: Mapping[str, Param]
    state: TrialState = TrialState.PLANNED
    job: str | None = None  # the uid
    called: str = ""  # what that job is called
    value: float | None = None  # the last one reported
    steps: int = 0  # values that were reported
    rungs: Mapping[str, float] = field(default_factory=dict)
    curve: tuple[tuple[int, float], ...] = ()
    core_s: float = 0.0  # once it has ended
    ended_at: float | None = None
    message: Message = NOTHING

    @property
    def is_live(self) -> bool:
        """Whether the trial is in progress."""
        return self.state in LIVE_TRIALS


@dataclass(frozen=True, slots=True)
class Sweep:
    """Sweep as stored; `outcome` is its state once its last trial has ended, empty: as its trials imply."""

    uid: str
    spec: SweepSpec
    run: int
    phase: SweepPhase
    budget: Budget
    made_at: float
    outcome: str = ""
    ended_at: float | None = None
    not_before: float = 0.0  # when the next trial is tried, where one was refused
    message: Message = NOTHING  # why it is as it is

    @property
    def name(self) -> str:
        """Its name, which it may share with earlier runs."""
        return self.spec.job.name

    @property
    def title(self) -> str:
        """How sentences name it."""
        return names.title(self.name, self.run)

    @property
    def reference(self) -> str:
        """Reference to exactly this run."""
        return names.reference(self.name, self.run)


def label_of(spec: SweepSpec, number: int) -> int:
    """Return what a trial is called by: its index in an array, else its number."""
    return int(spec.point(number)["index"]) if spec.array else number


def trial_name(spec: SweepSpec, number: int) -> str:
    """Return the name of the job that is a trial: `search.7`."""
    return f"{spec.job.name}.{label_of(spec, number)}"


def is_better(spec: SweepSpec, value: float, than: float) -> bool:
    """Return whether one value of the metric is better than another."""
    return value > than if spec.maximize else value < than


def best_of(spec: SweepSpec, trials: list[SweepTrial]) -> SweepTrial | None:
    """Return the best of those trials that have a value and did not fail, the first of equal ones."""
    best: SweepTrial | None = None
    for trial in trials:
        if trial.value is None or trial.state in {TrialState.FAILED, TrialState.CANCELLED}:
            continue
        if best is None or best.value is None or is_better(spec, trial.value, best.value):
            best = trial
    return best


def check_sweep_move(sweep: Sweep, new: SweepPhase) -> None:
    """Raise `IllegalTransition` unless the table allows the move, or it is none."""
    if sweep.phase is not new:
        SWEEP_MACHINE.check(sweep.phase, new, name=sweep.title)
