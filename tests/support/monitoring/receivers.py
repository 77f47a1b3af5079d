"""Receiver of metric points by OTLP, which answers as it is told to, and may hang."""

from __future__ import annotations

import contextlib
import gzip
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)


class Receiver(ThreadingHTTPServer):
    """Decodes what is posted. Answers with the first of `statuses`, or 200; while `answers` is not set, with nothing."""

    daemon_threads = True

    def __init__(self, port: int = 0, certificate: Path | None = None) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self._scheme = "http"
        if certificate is not None:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(certificate)
            self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
            self._scheme = "https"
        self.requests: list[ExportMetricsServiceRequest] = []
        self.headers: list[dict[str, str]] = []
        self.statuses: list[int] = []
        self.refuses = ""  # a request with a metric of this name is answered with 400
        self.forbids = ""  # with 403, as a filter of requests in front of a receiver does
        self.breaks_at = ""  # with 500
        self.most = 0  # bytes of a request that is not too large; 0: any
        self.rejected = 0  # values that it says it left out
        self.location = ""
        self.endless = False  # bodies of answers do not end
        self.tried = 0
        self.answers = threading.Event()
        self.answers.set()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self.server_address[1]}/v1/metrics"

    def points(self, uid: str) -> list[tuple[str, str, int, float]]:
        """Return name, rank, time in nanoseconds and value of all that came of a job."""
        return [
            (*_named(point), point.time_unix_nano, point.as_double)
            for request in list(self.requests)
            for group in request.resource_metrics
            if _attributes(group.resource)["mlp.job.uid"] == uid
            for scope in group.scope_metrics
            for metric in scope.metrics
            for point in metric.gauge.data_points
        ]

    def resource(self, uid: str) -> dict[str, str]:
        """Return the attributes that a job's points came with."""
        found = [_attributes(group.resource) for r in list(self.requests) for group in r.resource_metrics]
        return next(one for one in found if one["mlp.job.uid"] == uid)


def _attributes(of: Any) -> dict[str, str]:
    return {a.key: a.value.string_value for a in of.attributes}


def _named(point: Any) -> tuple[str, str]:
    found = _attributes(point)
    return found["metric"], found["rank"]


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        receiver = self.server
        body = self.rfile.read(int(self.headers["Content-Length"]))
        receiver.tried += 1
        receiver.answers.wait()
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        status = receiver.statuses.pop(0) if receiver.statuses else 200
        request = ExportMetricsServiceRequest.FromString(body)
        if receiver.most and len(body) > receiver.most:
            status = 413
        elif receiver.refuses and receiver.refuses.encode() in body:
            status = 400
        elif receiver.forbids and receiver.forbids.encode() in body:
            status = 403
        elif receiver.breaks_at and receiver.breaks_at.encode() in body:
            status = 500
        if status == 200:
            assert self.path == "/v1/metrics"
            assert self.headers["Content-Type"] == "application/x-protobuf"
            receiver.requests.append(request)
            receiver.headers.append(dict(self.headers))
        with contextlib.suppress(OSError):  # the exporter may be gone
            self._answer(status)

    def _answer(self, status: int) -> None:
        receiver = self.server
        self.send_response(status)
        if receiver.location:
            self.send_header("Location", receiver.location)
        if receiver.endless:
            self.send_header("Content-Length", str(2**30))
        self.end_headers()
        answer = ExportMetricsServiceResponse()
        answer.partial_success.rejected_data_points = receiver.rejected
        self.wfile.write(answer.SerializeToString())
        while receiver.endless:
            self.wfile.write(bytes(2**16))

    def log_message(self, *args: object) -> None:
        """Print nothing."""
