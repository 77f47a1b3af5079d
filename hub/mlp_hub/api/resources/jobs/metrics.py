"""Reports of jobs: batches of points in, a stream of points out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta, Struct

from mlp_api.jobs.metrics import JobMetrics, MetricAck, MetricBatch
from mlp_hub.api.auth.scopes import JOBS_READ, JOBS_WRITE, LEDGER_WRITE
from mlp_hub.api.edge.call import Call
from mlp_hub.api.routes import METRICS_BODY_LIMIT, Relation, Route

KNOWN = ("epoch", "step", "accuracy", "loss", "progress")
COUNTS = ("epoch", "step", "progress")
"""Of these the ones that are written as whole numbers where they are: clients of the contract know no others."""


class PointsQuery(Struct, forbid_unknown_fields=True):
    """Selection of points: those above the number `since`, in order, at most `limit` of them."""

    since: Annotated[int, Meta(ge=0, le=2**62)] = 0
    limit: Annotated[int, Meta(ge=1, le=10_000)] = 1000


async def points(call: Call) -> list[JobMetrics]:
    """Return the points that a job reported so far; pass the last `seq` back as `since` to continue.

    The WebSocket of the job's metrics continues by itself.
    """
    user, job, query = call.user, call.params["job"], call.query
    found = await call.platform.metrics.some(call.context, user, job, query.since, query.limit)
    return [shown(user, job.partition("@")[0], point._asdict()) for point in found]


def shown(user: str, name: str, point: Mapping[str, Any]) -> JobMetrics:
    """Return a point as on the wire."""
    values = dict(point["values"])
    known = {k: values.pop(k, None) for k in KNOWN}
    for count in COUNTS:
        value = known[count]  # an int where a program reported one
        if isinstance(value, float) and value.is_integer():
            known[count] = int(value)
    return JobMetrics(
        user=user, name=name, seq=point["seq"], rank=point["rank"], time=point["time"], values=values, **known
    )


async def report(call: Call) -> MetricAck:
    """Store a batch; sending it again stores nothing twice."""
    return await call.platform.metrics.append(call.context, call.user, call.params["job"], call.body)


async def begin(call: Call) -> str:
    """Say that a job is about to report."""
    await call.platform.metrics.begin(call.context, call.user, call.params["job"])
    return ""


async def finish(call: Call) -> str:
    """Say that a job reports no more."""
    await call.platform.metrics.finish(call.context, call.user, call.params["job"])
    return ""


async def delete(call: Call) -> str:
    """Forget an ended job's points."""
    await call.platform.metrics.delete(call.context, call.user, call.params["job"])
    return ""


_METRICS = "/users/{user}/job_metrics/{job}"

ROUTES = (
    Route(
        "GET",
        "/users/{user}/jobs/{job}/metrics",
        points,
        "What a job reported",
        Relation.OWNED,
        JOBS_READ,
        query=PointsQuery,
        reply=list[JobMetrics],
    ),
    Route(
        "POST",
        _METRICS,
        report,
        "Report metrics",
        Relation.SELF,
        JOBS_WRITE,
        body=MetricBatch,
        reply=MetricAck,
        body_limit=METRICS_BODY_LIMIT,
        job_token=True,
        bucket="metrics",
    ),
    Route("PUT", f"{_METRICS}:begin", begin, "Metrics begin", Relation.PLATFORM, LEDGER_WRITE),
    Route("PUT", f"{_METRICS}:finish", finish, "Metrics end", Relation.PLATFORM, LEDGER_WRITE),
    Route("PUT", f"{_METRICS}:delete", delete, "Delete metrics", Relation.PLATFORM, LEDGER_WRITE),
)
