"""What jobs report: batches of points in, a stream of points out."""

from __future__ import annotations

from mlp_api.metrics import MetricAck, MetricBatch
from mlp_hub.api.call import Call
from mlp_hub.api.routes import METRICS_BODY_LIMIT, Relation, Route
from mlp_hub.api.scopes import JOBS_WRITE, LEDGER_WRITE


async def report(call: Call) -> MetricAck:
    """Store a batch; sending it again stores nothing twice."""
    return await call.platform.metrics.append(call.user, call.params["job"], call.body)


async def begin(call: Call) -> str:
    """Say that a job is about to report."""
    await call.platform.metrics.begin(call.user, call.params["job"])
    return ""


async def finish(call: Call) -> str:
    """Say that a job reports no more."""
    await call.platform.metrics.finish(call.user, call.params["job"])
    return ""


async def delete(call: Call) -> str:
    """Forget an ended job's points."""
    await call.platform.metrics.delete(call.user, call.params["job"])
    return ""


_METRICS = "/users/{user}/job_metrics/{job}"

ROUTES = (
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
