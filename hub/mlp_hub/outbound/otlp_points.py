"""Metric points of jobs, posted to a receiver of OTLP over HTTP, in protobuf. Needs the extra otlp.

All values are points of one gauge, `METRIC`; the name that the program gave is an attribute. So no program makes names of metrics
in the site's monitoring, or writes to those of others.
"""

from __future__ import annotations

import math
from functools import cache
from importlib.metadata import version
from typing import Any

from mlp_hub.outbound.posting import ExportTarget

METRIC = "mlp.job.value"
"""Contract: name of the metric; Prometheus has it as `mlp_job_value`."""
SERVICE = "mlp-hub-jobs"
"""Contract: `service.name` of the resource, which is the label `job` in Prometheus."""
TEXT_MOST = 1024
"""Safety: characters of an attribute's text."""
LAST_S = 9_223_372_036.0
"""Given: seconds since the epoch whose nanoseconds fit into 64 bits: programs set the times of their points."""


def prepare() -> None:
    """Load the library, which is not in sight later."""
    _version()
    import opentelemetry.proto.collector.metrics.v1.metrics_service_pb2  # noqa: F401, PLC0415 - an optional extra


def encode(jobs: list[dict[str, Any]]) -> bytes:
    """Return the body of a request with the points of these jobs; each job is a resource."""
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (  # noqa: PLC0415
        ExportMetricsServiceRequest,
    )

    request = ExportMetricsServiceRequest()
    for job in jobs:
        group = request.resource_metrics.add()
        for key, value in (
            ("service.name", SERVICE),
            ("service.instance.id", job["uid"]),
            ("service.version", _version()),
            ("mlp.job.uid", job["uid"]),
            ("mlp.job.name", job["name"]),
            ("mlp.job.run", str(job["run"])),
            ("mlp.user", job["user"]),
            ("mlp.tenant", job["tenant"]),
        ):
            _put(group.resource.attributes, key, value)
        scope = group.scope_metrics.add()
        scope.scope.name = "mlp_hub"
        metric = scope.metrics.add()
        metric.name, metric.description = METRIC, "Values that programs of jobs report, by their names."
        for _, rank, time, values in job["points"]:
            at = nanoseconds(time)
            for name, value in values.items():
                point = metric.gauge.data_points.add()
                point.time_unix_nano, point.as_double = at, float(value)
                _put(point.attributes, "metric", name)
                _put(point.attributes, "rank", str(rank))
    return bytes(request.SerializeToString())


def send(asked: dict[str, Any]) -> dict[str, Any]:
    """Post points; return what becomes of them, with the number of values that the receiver left out as `rejected`."""
    data = asked["data"]
    answer = ExportTarget(data["headers"], data["ca"]).ask(
        "POST", asked["address"], encode(data["jobs"]), "application/x-protobuf", packed=data["packed"]
    )
    found = answer.outcome()
    return found or {"rejected": rejected(answer.body)}


def rejected(body: bytes) -> int:
    """Return how many values an answer says were left out; 0 if it is not an answer of OTLP."""
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # noqa: PLC0415 - an optional extra
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (  # noqa: PLC0415
        ExportMetricsServiceResponse,
    )

    try:
        found = ExportMetricsServiceResponse.FromString(body)
    except DecodeError:
        return 0
    return max(0, int(found.partial_success.rejected_data_points))


def nanoseconds(time: float) -> int:
    """Return a time of a program within what the receiver can have."""
    if not math.isfinite(time):
        return 0
    return int(min(max(time, 0.0), LAST_S) * 1_000_000) * 1000


@cache
def _version() -> str:
    return version("mlp-hub")


def _put(where: Any, key: str, value: str) -> None:
    found = where.add()
    found.key = key
    found.value.string_value = value[:TEXT_MOST].encode("utf-8", "replace").decode()
