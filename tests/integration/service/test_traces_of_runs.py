"""Traces of runs reach a real receiver of OTLP, once each, whatever is killed and however the collector behaves."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from mlp_hub.domain.jobs.tracing import span_id, trace_id, traceparent
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.service.monitoring import traces
from support.ports import free_port
from support.rigs.platform_rig import FAST, Rig
from support.waiting import until


class Collector(ThreadingHTTPServer):
    """Decodes what is posted, and answers with its status; while `hangs` is not set, it does not answer."""

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.requests: list[ExportTraceServiceRequest] = []
        self.statuses: list[int] = []
        self.tried = 0
        self.answers = threading.Event()
        self.answers.set()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1/traces"

    @property
    def spans(self) -> list[Any]:
        return [
            span
            for request in list(self.requests)
            for group in request.resource_spans
            for scope in group.scope_spans
            for span in scope.spans
        ]

    def of(self, uid: str) -> dict[str, Any]:
        """Return the spans of a run by their names; one that comes again is the same span."""
        return {s.name: s for s in self.spans if s.trace_id.hex() == trace_id(uid)}


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        assert self.path == "/v1/traces"
        assert self.headers["Content-Type"] == "application/x-protobuf"
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.tried += 1
        self.server.answers.wait()
        status = self.server.statuses.pop(0) if self.server.statuses else 200
        if status == 200:
            self.server.requests.append(ExportTraceServiceRequest.FromString(body))
        with contextlib.suppress(OSError):  # the exporter may be gone
            self.send_response(status)
            self.end_headers()

    def log_message(self, *args: object) -> None:
        """Print nothing."""


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as made:
        yield made
        made.answers.set()
        made.shutdown()


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    defaults = {"gather_s": 0.01, "retry_s": 0.01}
    monkeypatch.setattr(traces, "RETRY_MOST_S", 0.05)
    monkeypatch.setattr(traces.TraceExport.__init__, "__kwdefaults__", defaults)


@contextlib.asynccontextmanager
async def rig_of(root: Path, endpoint: str) -> AsyncIterator[Rig]:
    rig = Rig(root, policy=replace(FAST, traces_endpoint=endpoint))
    await rig.start()
    try:
        yield rig
    finally:
        await rig.close()


def attributes(span: Any) -> dict[str, Any]:
    return {a.key: a.value.string_value or a.value.int_value for a in span.attributes}


def counts(rig: Rig) -> dict[str, float]:
    return {labels[0]: n for labels, n in rig.platform.monitoring.events.traces.samples()}


async def ended(rig: Rig, name: str, phase: str = "finished", **more: Any) -> str:
    """Run a job to its end; return its uid."""
    await rig.submit(name, **{"sim": {"DURATION": 0.05}, **more})
    await rig.until(name, phase)
    job = await rig.db.read(lambda tx: tx.jobs.find(SYSTEM, "ann", name))
    assert job is not None
    return job.uid


async def arrived(collector: Collector, uid: str) -> dict[str, Any]:
    async def look() -> dict[str, Any]:
        return collector.of(uid)

    found: dict[str, Any] = await until(look, what="a trace to arrive")
    return found


async def test_a_run_is_one_trace_with_a_span_for_each_stage(tmp_path: Path, collector: Collector) -> None:
    async with rig_of(tmp_path, collector.url) as rig:
        uid = await ended(rig, "digits")
        found = await arrived(collector, uid)
        root = found.pop("RUN digits")
        assert {"queued", "admitted", "running"} <= set(found)
        assert traceparent(uid) == f"00-{root.trace_id.hex()}-{root.span_id.hex()}-01"
        assert (root.parent_span_id, root.kind, root.status.code) == (b"", root.SPAN_KIND_SERVER, 0)
        assert {span.parent_span_id for span in found.values()} == {root.span_id}
        assert found["queued"].span_id.hex() == span_id(uid, "queued-1")
        assert all(root.start_time_unix_nano <= s.start_time_unix_nano for s in found.values())
        assert all(
            s.start_time_unix_nano <= s.end_time_unix_nano <= root.end_time_unix_nano for s in found.values()
        )
        assert found["queued"].end_time_unix_nano == found["admitted"].start_time_unix_nano
        told = attributes(root)
        assert (told["cicd.pipeline.name"], told["cicd.pipeline.result"]) == ("digits", "success")
        assert (told["cicd.pipeline.run.id"], told["mlp.user"], told["mlp.tenant"]) == (uid, "ann", "default")
        assert attributes(found["running"])["cicd.pipeline.task.name"] == "running"
        (resource,) = {
            attributes(g.resource)["service.name"] for r in collector.requests for g in r.resource_spans
        }
        assert resource == "mlp-hub"


async def test_a_failed_run_has_its_attempts_and_is_an_error(tmp_path: Path, collector: Collector) -> None:
    async with rig_of(tmp_path, collector.url) as rig:
        given = f"00-{'a' * 32}-{'b' * 16}-01"
        sim = {"SIM_DURATION": "0.05", "SIM_EXIT": "3", "TRACEPARENT": given}
        uid = await ended(rig, "bad", "failed", retries=1, env=sim)
        await arrived(collector, uid)
        spans = {s.span_id.hex(): s for s in collector.spans}
        root = spans[span_id(uid, "run")]
        assert root.status.code == root.status.STATUS_CODE_ERROR
        assert (attributes(root)["cicd.pipeline.result"], attributes(root)["mlp.attempts"]) == ("failure", 2)
        assert attributes(root)["error.type"] == "program-error"
        assert {span_id(uid, f"running-{n}") for n in (1, 2)} <= spans.keys()
        # the trace that a user names is not written to: it may be another user's
        assert [link.trace_id.hex() for link in root.links] == ["a" * 32]
        assert {s.trace_id.hex() for s in spans.values()} == {trace_id(uid)}


async def test_a_kill_loses_no_trace_and_doubles_no_span(tmp_path: Path, collector: Collector) -> None:
    collector.answers.clear()
    async with rig_of(tmp_path, collector.url) as rig:
        uid = await ended(rig, "digits")

        async def asked() -> bool:
            return collector.tried > 0

        await until(asked, what="the first request")
        dead = rig.platform.traces
        rig.crash()
        await dead._sender.stop()
        collector.answers.set()
        await rig.start()
        await arrived(collector, uid)
        first = {s.span_id for s in collector.spans}
        await rig.restart()
        again = len(collector.requests)

        async def more() -> bool:
            return len(collector.requests) > again

        await until(more, what="the second export")
        assert {s.span_id for s in collector.spans} == first


async def test_a_leader_exports_again_after_another_one(tmp_path: Path, collector: Collector) -> None:
    async with rig_of(tmp_path, collector.url) as rig:
        traces, board = rig.platform.traces, rig.platform.board
        await traces.stop()
        board._listeners.remove(traces._changed)  # as the board does when another leads
        traces.start()
        await arrived(collector, await ended(rig, "digits"))


async def test_a_collector_that_hangs_or_is_away_holds_nobody_up(tmp_path: Path) -> None:
    port = free_port()
    async with rig_of(tmp_path, f"http://127.0.0.1:{port}/v1/traces") as rig:
        uids = [await ended(rig, f"away{n}") for n in range(3)]
        with Collector(port) as collector:
            collector.answers.clear()
            uids.append(await ended(rig, "hangs"))
            collector.statuses = [503, 429]
            collector.answers.set()
            for uid in uids:
                await arrived(collector, uid)

            async def counted() -> bool:
                return counts(rig) == {"exported": 4.0, "dropped": 0.0}

            await until(counted, what="the count")
            collector.shutdown()


async def test_refused_spans_are_dropped_and_counted(tmp_path: Path, collector: Collector) -> None:
    collector.statuses = [400]
    async with rig_of(tmp_path, collector.url) as rig:
        await ended(rig, "refused")

        async def dropped() -> bool:
            return counts(rig)["dropped"] == 1.0

        await until(dropped, what="the refusal")
        uid = await ended(rig, "taken")
        await arrived(collector, uid)


async def test_runs_beyond_the_bound_are_dropped_and_counted(
    tmp_path: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traces, "MOST_WAITING", 1)
    collector.answers.clear()
    async with rig_of(tmp_path, collector.url) as rig:
        await ended(rig, "first")
        await ended(rig, "second")
        await ended(rig, "third")

        async def dropped() -> bool:
            return counts(rig)["dropped"] == 2.0

        await until(dropped, what="two dropped runs")
        assert len(rig.platform.traces._waiting) == 1
        collector.answers.set()


async def test_without_a_collector_nothing_runs_and_nothing_is_loaded(tmp_path: Path) -> None:
    async with rig_of(tmp_path, "") as rig:
        await ended(rig, "digits")
        assert not rig.platform.traces._task.is_started
        assert rig.platform.traces._sender._process is None
        assert counts(rig) == {}
    code = "import sys, mlp_hub.app; sys.exit(any(m.startswith('opentelemetry') for m in sys.modules))"
    done = await asyncio.to_thread(subprocess.run, [sys.executable, "-c", code], check=False)
    assert done.returncode == 0
