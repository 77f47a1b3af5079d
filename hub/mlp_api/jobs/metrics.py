"""Objects of the REST contract about what jobs report: points, and how they are delivered."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct, field

from mlp_api.jobs.jobs import SOURCE_PATTERN
from mlp_api.types import Request, Response


class MetricPoint(Struct, kw_only=True, forbid_unknown_fields=True):
    """One report of one process: `n` is its number within its source, from 1 on, without gaps.

    `v` holds the numeric values; epoch, step, loss, accuracy and progress have their known meanings.
    """

    n: Annotated[int, Meta(ge=1, le=2**62)]
    t: float
    v: Annotated[dict[Annotated[str, Meta(min_length=1, max_length=100)], float | None], Meta(max_length=100)]


class MetricBatch(Request):
    """Consecutive points of one source (one reporting process)."""

    source: Annotated[str, Meta(pattern=SOURCE_PATTERN)]
    points: Annotated[list[MetricPoint], Meta(max_length=20_000)]


class MetricAck(Response):
    """How far the source's points are stored; send on from the next one."""

    last: int


class JobMetrics(Response):
    """One point as delivered on the `job_metrics` WebSocket; further metrics are in `values`."""

    user: str
    name: str
    seq: int
    rank: int
    time: float
    epoch: float | None = None
    step: float | None = None
    accuracy: float | None = None
    loss: float | None = None
    progress: float | None = None
    values: dict[str, float] = field(default_factory=dict)
