"""Spans of runs, posted to a collector by OTLP over HTTP, in protobuf. Needs the extra otlp."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version
from typing import Any
from urllib.parse import urlsplit

import certifi
import urllib3

SILENT_S = 10.0
"""Safety: seconds for which a connection is waited for, and an answer's first line."""
TEXT_MOST = 1024
"""Safety: characters of an attribute's text."""
_PASSES = frozenset({408, 429, 502, 503, 504})
"""Given: statuses after which OTLP sends the same again; 408 passes too."""


def prepare() -> None:
    """Load the library, which is not in sight later."""
    _version()
    import opentelemetry.proto.collector.trace.v1.trace_service_pb2  # noqa: F401, PLC0415 - an optional extra


def encode(spans: list[dict[str, Any]]) -> bytes:
    """Return the body of a request with these spans."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (  # noqa: PLC0415
        ExportTraceServiceRequest,
    )
    from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status  # noqa: PLC0415

    request = ExportTraceServiceRequest()
    group = request.resource_spans.add()
    _put(group.resource.attributes, {"service.name": "mlp-hub", "service.version": _version()})
    scope = group.scope_spans.add()
    scope.scope.name = "mlp_hub"
    for one in spans:
        span = scope.spans.add()
        span.trace_id = bytes.fromhex(one["trace"])
        span.span_id = bytes.fromhex(one["span"])
        span.parent_span_id = bytes.fromhex(one["parent"])
        span.name = one["name"][:TEXT_MOST]
        span.kind = Span.SPAN_KIND_INTERNAL if one["parent"] else Span.SPAN_KIND_SERVER
        span.start_time_unix_nano = int(one["start"] * 1_000_000) * 1000
        span.end_time_unix_nano = int(one["end"] * 1_000_000) * 1000
        _put(span.attributes, one["attributes"])
        if one["error"]:
            span.status.code = Status.STATUS_CODE_ERROR
        if one["link"]:
            link = span.links.add()
            link.trace_id, link.span_id = (bytes.fromhex(part) for part in one["link"])
    return bytes(request.SerializeToString())


def send(asked: dict[str, Any]) -> dict[str, Any]:
    """Post spans; only the status of the answer is read, and no redirect is followed."""
    pool = urllib3.PoolManager(
        timeout=urllib3.Timeout(connect=SILENT_S, read=SILENT_S),
        retries=False,
        cert_reqs="CERT_REQUIRED",
        ca_certs=certifi.where(),
    )
    try:
        answer = pool.request(
            "POST",
            asked["address"],
            body=encode(asked["data"]["spans"]),
            headers={"Content-Type": "application/x-protobuf", "User-Agent": "mlp-hub"},
            redirect=False,
            preload_content=False,
        )
    except urllib3.exceptions.TimeoutError:
        return {"why": "silent"}
    status = answer.status
    answer.close()
    if 200 <= status < 300:
        return {}
    return {"why": "silent"} if status in _PASSES else {"why": "status", "status": status}


def place_of(address: str) -> str:
    """Return HOST:PORT of the collector, which is the only place that its process connects to."""
    parts = urlsplit(address)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{host}:{parts.port or (443 if parts.scheme == 'https' else 80)}"


@cache
def _version() -> str:
    return version("mlp-hub")


def _put(where: Any, attributes: dict[str, str | int]) -> None:
    for key, value in attributes.items():
        found = where.add()
        found.key = key
        if isinstance(value, int):
            found.value.int_value = value
        else:
            found.value.string_value = value[:TEXT_MOST]
