"""WebSockets: a job's stream, its metrics, its log, and hints that the queue changed.

A handler is an asynchronous generator of frames (structs or dicts); the socket around it authenticates, sends
with back-pressure, pings, and ends when the token does.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any

from msgspec import Meta, Struct

from mlp_api.jobs.jobs import LogLine
from mlp_api.jobs.metrics import JobMetrics
from mlp_api.jobs.stream import Frame
from mlp_hub.api.auth.scopes import CLUSTER_READ, JOBS_READ
from mlp_hub.api.edge.call import Call
from mlp_hub.api.resources.jobs.jobs import LogQuery, follow_pages, pin
from mlp_hub.api.resources.jobs.metrics import shown
from mlp_hub.api.routes import Relation, Route


class SinceQuery(Struct, forbid_unknown_fields=True):
    """From which point on; 0 for all."""

    since: Annotated[int, Meta(ge=0, le=2**62)] = 0


class QueueHint(Struct, tag_field="type", tag="changed"):
    """The queue is worth fetching."""


async def stream(call: Call) -> AsyncIterator[Any]:
    """Follow all of a job over one socket: its state, points, events, log and reasons, with replay."""
    async for frame in call.platform.watch(call.context, call.user, call.params["job"], call.query.since):
        yield frame


async def metrics(call: Call) -> AsyncIterator[JobMetrics]:
    """Follow a job's points: all above `since`, then each as it comes."""
    user, job = call.user, call.params["job"]
    name = job.partition("@")[0]
    async for frame in call.platform.watch(call.context, user, job, call.query.since):
        if frame["type"] == "metrics":
            for point in frame["points"]:
                yield shown(user, name, point)


async def logs(call: Call) -> AsyncIterator[LogLine]:
    """Follow a rank's log from `since` on, one line a message."""
    await pin(call)
    async for page in follow_pages(call, call.query):
        for line in page.lines:
            yield line


async def queue(call: Call) -> AsyncIterator[QueueHint]:
    """Hint that the queue changed and is worth fetching."""
    with call.platform.bus.subscribe(("queue",), limit=1) as messages:
        async for _ in messages:
            yield QueueHint()


_JOB = "/users/{user}/jobs/{job}"

ROUTES = (
    Route(
        "GET",
        f"{_JOB}:stream",
        stream,
        "Follow a job",
        Relation.OWNED,
        JOBS_READ,
        query=SinceQuery,
        reply=Frame,
        socket=True,
    ),
    Route(
        "GET",
        "/users/{user}/job_metrics/{job}",
        metrics,
        "Follow a job's metrics",
        Relation.OWNED,
        JOBS_READ,
        query=SinceQuery,
        reply=JobMetrics,
        socket=True,
    ),
    Route(
        "GET",
        f"{_JOB}/logs:stream",
        logs,
        "Follow a rank's log",
        Relation.OWNED,
        JOBS_READ,
        query=LogQuery,
        reply=LogLine,
        socket=True,
    ),
    Route(
        "GET",
        "/queue:stream",
        queue,
        "Hints that the queue changed",
        Relation.PLATFORM,
        CLUSTER_READ,
        reply=QueueHint,
        socket=True,
    ),
)
