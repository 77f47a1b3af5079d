"""Spans of runs, posted to a collector by OTLP over HTTP, in protobuf. Needs the extra otlp."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version
from typing import Any

from mlp_hub.outbound.posting import post

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
    """Post spans; return what becomes of them."""
    data = asked["data"]
    status = post(asked["address"], encode(data["spans"]), "application/x-protobuf", data["ca"])
    if 200 <= status < 300:
        return {}
    return {"why": "silent"} if status in _PASSES else {"why": "status", "status": status}


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
