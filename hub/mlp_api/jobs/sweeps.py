"""Sweeps on the wire: their trials, their budget, and their outcome.

Units and conventions are those of `types`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta, field

from mlp_api.jobs.earlier_runs import RunForecast
from mlp_api.jobs.jobs import PARAM_PATTERN, JobCreate, ParamValue
from mlp_api.localized import Detail, Text
from mlp_api.types import Name, Request, Response

SWEEP_NAME_PATTERN = r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,42}$(?!\n)"
"""Shorter than a job's: its trials are jobs called NAME.NUMBER."""
SweepName = Annotated[
    str,
    Meta(
        pattern=SWEEP_NAME_PATTERN,
        max_length=43,
        description="letters, digits, -, _ and ., not beginning with - or ., 1 to 43 characters",
    ),
]
ParamName = Annotated[str, Meta(pattern=PARAM_PATTERN)]
Trials = Annotated[int, Meta(ge=1, le=1000)]
CoreHours = Annotated[float, Meta(gt=0, le=100_000_000)]
Deadline = Annotated[int, Meta(ge=1, le=365 * 86400, description="seconds from now")]
Goal = Literal["min", "max"]
StopRule = Literal["none", "asha", "median"]
Sampler = Literal["tpe", "random"]
SweepState = Literal["running", "ending", "finished", "failed", "cancelled", "deleting"]
TrialState = Literal["planned", "running", "finished", "stopped", "failed", "cancelled"]


class SweepCreate(JobCreate, kw_only=True):
    """A sweep: one program, run with many parameters, each a trial; all else is what a job says, and of each trial.

    `grid` has values to be tried, each with each. `search` has spaces to choose from: `uniform(0, 1)`, `loguniform(1e-5, 1)`, `int(1, 8)`,
    `logint(1, 1024)`, `choice(a, b, c)`; then a budget is needed: `trials`, `core_hours`, `deadline`, or several of them. `array` is
    `0-31%8` instead: a trial for each index, at most 8 at a time. The program finds what was chosen in `mlp.params`. `metric` is what it
    reports by `mlp.report`, and `goal` which values are better; `stop` ends trials that are worse than others at the same step, from the
    value number `warmup` on. At most `parallel` trials run at a time, otherwise as many as there is room for.
    """

    name: SweepName
    priority: Name = "low"
    grid: Annotated[dict[ParamName, list[ParamValue]], Meta(max_length=50)] = field(default_factory=dict)
    search: Annotated[dict[ParamName, Annotated[str, Meta(max_length=20_000)]], Meta(max_length=50)] = field(
        default_factory=dict
    )
    array: Annotated[str, Meta(max_length=5000)] | None = None
    trials: Trials | None = None
    metric: Annotated[str, Meta(min_length=1, max_length=100)] | None = None
    goal: Goal | None = None
    stop: StopRule = "none"
    warmup: Annotated[int, Meta(ge=1, le=1_000_000)] = 1
    sampler: Sampler = "tpe"
    seed: Annotated[int, Meta(ge=0, le=2**31)] = 0
    parallel: Annotated[int, Meta(ge=1, le=1000)] | None = None
    core_hours: CoreHours | None = None
    deadline: Deadline | None = None


class SweepExtend(Request):
    """Increase of a sweep's budget: trials, core-hours, or seconds from now.

    A sweep that has ended continues.
    """

    trials: Trials | None = None
    core_hours: CoreHours | None = None
    deadline: Deadline | None = None


class SweepTrial(Response):
    """Trial of a sweep.

    `job` is the name of its job, null before the job exists. `value` is the value that it reported
    last. `steps` counts the values that it reported. `core_hours` is the use of the trial, so far while
    it is in progress.
    """

    number: int
    params: dict[str, bool | int | float | str]
    state: TrialState
    job: str | None
    phase: str | None
    value: float | None
    steps: int
    core_hours: float
    ended_at: datetime | None
    message: Text
    detail: Detail


class SweepCounts(Response):
    """Numbers of trials by state; trials in progress are waiting or running."""

    waiting: int
    running: int
    finished: int
    stopped: int
    failed: int
    cancelled: int
    left: int


class Sweep(Response):
    """Sweep with its outcome.

    `best` is the best trial so far, null before any trial has a value. `trials` are the trials that
    were made. A list of sweeps leaves them out. `budget_trials`, `budget_core_hours` and `deadline` are
    the budget, and `core_hours` is the use so far. `array`: the sweep is an array, with the parameter
    `index`.
    """

    name: str
    run: int
    user: str
    tenant: str
    uid: str
    state: SweepState
    message: Text
    detail: Detail
    runtime: str
    entry: str | None
    code: str | None
    args: list[str]
    priority: str
    workers: int | str
    cpu: float
    gpu: float
    ram: int
    amounts: dict[str, int]
    grid: dict[str, list[bool | int | float | str]]
    search: dict[str, str]
    array: bool
    metric: str | None
    goal: Goal | None
    stop: StopRule
    warmup: int
    sampler: Sampler
    parallel: int | None
    budget_trials: int
    budget_core_hours: float | None
    deadline: datetime | None
    core_hours: float
    counts: SweepCounts
    best: SweepTrial | None
    trials: list[SweepTrial]
    submitted_at: datetime
    ended_at: datetime | None


class SweepCurve(Response):
    """Values of the metric of one trial, as [step, value]; of many every n-th."""

    trial: int
    points: list[list[float]]


class SweepPreview(Response):
    """Preview of a sweep and its cost: `at_a_time` trials at once in the present state of the platform.

    `core_hours` and `expected_end` are null where they cannot be known. `because` is the reason for
    that, or the source of the values. `forecast` has the range of the first trial's start by earlier
    runs of the jobs ahead of it, null if too little is known.
    """

    trials: int
    at_a_time: int
    core_hours: float | None
    core_hours_most: float | None
    trial_s: float | None
    expected_start: datetime | None
    expected_end: datetime | None
    because: Text
    tenant: str
    forecast: RunForecast | None = None
