"""Runs on the wire: their inputs and results, their thinned-out curves, and actions on many at once."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

from mlp_api.jobs.jobs import JOB_PATTERN, JobState
from mlp_api.localized import Text
from mlp_api.types import LINE_PATTERN, Request, Response

TAG_PATTERN = r"^[^\s,\"\x00-\x1f\x7f]{1,50}$(?!\n)"
Tag = Annotated[str, Meta(pattern=TAG_PATTERN, max_length=50)]
Tags = Annotated[list[Tag], Meta(max_length=20)]
Note = Annotated[str, Meta(max_length=2000)]
RunReference = Annotated[str, Meta(pattern=JOB_PATTERN, max_length=60)]
Search = Annotated[
    str,
    Meta(
        max_length=1000,
        description="terms that must all hold: lr<0.1, best.accuracy>=0.9, tag=baseline, state=finished, name=digits-*, "
        "duration>5m, core_hours>1, or a word of names, tags and notes",
    ),
]
SortBy = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=120,
        description="submitted, finished, name, run, state, duration, core_hours, cpu_peak, ram_peak, note, tenant, user, or a parameter or "
        "metric: lr, param.lr, metric.loss, best.loss; with - before it from the highest down",
    ),
]
MetricName = Annotated[str, Meta(min_length=1, max_length=100, pattern=LINE_PATTERN)]


class RunMetric(Response):
    """A metric of a run: its last value, its lowest and highest, and which of these is best, by its name; null: none was finite."""

    last: float | None
    best: float | None
    low: float | None
    high: float | None


class ListedRun(Response):
    """A run of a job as tables show it.

    `reason` is why it ended as it did, where its job says so: `StoppedEarly` of a trial that its sweep stopped, or a failure's cause;
    null until it has ended. `metrics` are of the lowest rank that reports them. `duration_s` are the seconds that all its attempts ran, null before it
    ran; `core_hours` are these times the cores that its ranks held of the quota, as a sweep counts its trials. `cpu_peak` (cores) and `ram_peak` (MiB) are the most of one rank. `commit`, `dirty` and `environment` (a sha256 of its
    lines) are what its client said. `sweep` and `trial` name the sweep whose trial it is, null of one that is none.
    """

    uid: str
    name: str
    run: int
    user: str
    tenant: str
    state: JobState
    phase: str
    reason: str | None
    progress: int
    params: dict[str, bool | int | float | str]
    metrics: dict[str, RunMetric]
    duration_s: float | None
    core_hours: float | None
    cpu_peak: float | None
    ram_peak: int | None
    tags: list[str]
    note: str
    sweep: str | None
    trial: int | None
    commit: str | None
    dirty: bool | None
    environment: str | None
    submitted_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class RunPage(Response):
    """Some runs of those that were found, `total` in all.

    `params` and `metrics` are the names that these have, the most frequent first; `next` is the cursor of the following page,
    null on the last.
    """

    runs: list[ListedRun]
    total: int
    params: list[str]
    metrics: list[str]
    next: str | None


class RunData(Response):
    """Dataset that a run read: `uid` is exactly that one, `size` its bytes when the run was submitted.

    `digest` is the state of its files when the run first started: a SHA-256 of their paths, lengths and
    checksums. It is null before that, and where there are too many files. Of `files` files, `checked`
    are included with a checksum. The others are included with the time of their last write.
    """

    user: str
    name: str
    uid: str
    size: int
    digest: str | None
    files: int
    checked: int


class RunDetail(Response):
    """All that is kept of a run.

    `program` is its text, of a script as it was when it was submitted, null where that was not kept. `environment` are lines
    NAME==VERSION as its client told them. `env_name` is the environment that its Python was of, `env_lock` the SHA-256 of that one's lock, or
    the digest that its image was named with; `env_image` is that image.
    """

    run: ListedRun
    entry: str | None
    workdir: str | None
    program: str | None
    runtime: str
    workers: int | str
    cpu: float
    gpu: float
    ram: int
    amounts: dict[str, int]
    args: list[str]
    env: dict[str, str]
    environment: str | None
    env_name: str | None
    env_lock: str | None
    env_image: str | None
    data: list[RunData]


class RunUpdate(Request):
    """Notes and tags that users give to a run; fields that are left out keep their value."""

    note: Note | UnsetType = UNSET
    tags: Tags | UnsetType = UNSET


class RunsAct(Request):
    """Action on runs: cancel them, delete those that ended, or add and remove tags."""

    act: Literal["cancel", "delete", "tag", "untag"]
    runs: Annotated[list[RunReference], Meta(min_length=1, max_length=1000)]
    tags: Tags = field(default_factory=list)


class RunOutcome(Response):
    """Outcome of the action for one run.

    `reason` and `msg` are the reason why nothing was done. Both are empty where the action was done.
    """

    run: str
    reason: str
    msg: Text


class Curve(Response):
    """A metric of a run, of one rank, thinned out: of points side by side the lowest and the highest are kept.

    `x` by which it was asked for; `y` has null where the value was not finite.
    """

    metric: str
    rank: int
    x: list[float]
    y: list[float | None]


class RunCurves(Response):
    """Curves of a run.

    `reported` is the number of points that they were made of. `more`: there are further metrics.
    """

    run: ListedRun
    reported: int
    curves: list[Curve]
    more: bool
