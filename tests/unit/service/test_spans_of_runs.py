"""Spans of a run from its stored timeline, and their form on the wire."""

from __future__ import annotations

from dataclasses import replace

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from mlp_hub.domain.jobs.job import Cause, Failure, Job, JobSpec, Phase, Target
from mlp_hub.domain.jobs.tracing import span_id, trace_id
from mlp_hub.domain.resources import Resources
from mlp_hub.outbound import posting, traces
from mlp_hub.service.monitoring.trace_spans import spans_of
from mlp_hub.settings.values import SettingsError, check_http
from mlp_hub.store.records import JobEvent
from mlp_language.message import NOTHING

SPEC = JobSpec("digits", "ann", "red", "plain", Resources(1000, 0, 100), code="x")
JOB = Job("uid", SPEC, Phase.FINISHED, Target.RUN, 10.0, finished_at=60.0, restarts=1)


def steps(*told: tuple[str, float]) -> list[JobEvent]:
    return [JobEvent(seq, at, kind, NOTHING) for seq, (kind, at) in enumerate(told, 1)]


TWO = steps(
    ("submitted", 10.0),
    ("admitted", 12.0),
    ("starting", 12.5),
    ("running", 15.0),
    ("requeued", 30.0),
    ("admitted", 40.0),
    ("starting", 40.5),
    ("running", 44.0),
    ("first-line", 45.0),
    ("ended", 58.0),
)


def test_each_attempt_has_a_span_for_each_stage_and_stages_follow_each_other() -> None:
    root, *stages = spans_of(JOB, TWO)
    assert (root["start"], root["end"], root["attributes"]["mlp.attempts"]) == (10.0, 60.0, 2)
    shown = [(s["name"], s["attributes"]["mlp.attempt"], s["start"], s["end"]) for s in stages]
    assert shown == [
        ("queued", 1, 10.0, 12.0),
        ("admitted", 1, 12.0, 15.0),
        ("running", 1, 15.0, 30.0),
        ("queued", 2, 30.0, 40.0),
        ("admitted", 2, 40.0, 44.0),
        ("running", 2, 44.0, 58.0),
    ]
    assert len({s["span"] for s in (root, *stages)}) == 7
    assert [s["span"] for s in spans_of(JOB, TWO)[1:]] == [s["span"] for s in stages]
    assert stages[0]["span"] == span_id("uid", "queued-1")


@pytest.mark.parametrize(
    ("phase", "cause", "result", "error"),
    [
        (Phase.FINISHED, None, "success", False),
        (Phase.CANCELLED, None, "cancellation", False),
        (Phase.FAILED, Cause.PROGRAM_ERROR, "failure", True),
        (Phase.FAILED, Cause.TIME_LIMIT, "timeout", True),
        (Phase.FAILED, Cause.NODE_LOST, "error", True),
        (Phase.FAILED, None, "error", True),
    ],
)
def test_the_result_is_a_word_of_the_conventions(
    phase: Phase, cause: Cause | None, result: str, error: bool
) -> None:
    failure = None if cause is None else Failure(cause)
    (root,) = spans_of(replace(JOB, phase=phase, failure=failure), ())
    assert (root["attributes"]["cicd.pipeline.result"], root["error"]) == (result, error)


def test_clocks_that_jump_give_no_span_that_ends_before_it_begins() -> None:
    jumping = steps(("submitted", 10.0), ("admitted", 5.0), ("running", 70.0), ("ended", 1.0))
    for span in spans_of(replace(JOB, restarts=0, finished_at=2.0), jumping):
        assert span["start"] <= span["end"]


@pytest.mark.parametrize(
    "given",
    ["", "x" * 10_000, f"00-{'0' * 32}-{'b' * 16}-01", f"00-{'a' * 32}-{'0' * 16}-01", f"00-{'A' * 32}-{'b' * 16}-01\r\nX: y"],
    ids=["empty", "10 kB", "zero trace", "zero span", "line ends"],
)  # fmt: skip
def test_an_impossible_traceparent_makes_no_link(given: str) -> None:
    (root,) = spans_of(replace(JOB, spec=replace(SPEC, env={"TRACEPARENT": given})), ())
    assert root["link"] is None
    assert root["trace"] == trace_id("uid")


def test_hostile_texts_are_bounded_attributes_on_the_wire() -> None:
    evil = "a\r\n\x1b[2J\u202e" * 10_000
    spans = spans_of(replace(JOB, spec=replace(SPEC, name=evil, user="é" * 5000)), TWO)
    found = ExportTraceServiceRequest.FromString(traces.encode(spans))
    root = found.resource_spans[0].scope_spans[0].spans[0]
    assert len(root.name) == traces.TEXT_MOST
    assert all(len(a.value.string_value) <= traces.TEXT_MOST for a in root.attributes)
    assert root.start_time_unix_nano == 10 * 10**9
    assert (len(root.trace_id), len(root.span_id), root.parent_span_id) == (16, 8, b"")


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("http://collector:4318/v1/traces", "collector:4318"),
        ("https://otel.example.org/v1/traces", "otel.example.org:443"),
        ("http://[::1]:4318/v1/traces", "[::1]:4318"),
        ("http://user:secret@collector/v1", "collector:80"),
    ],
)
def test_the_exporter_connects_to_the_collector_alone(address: str, place: str) -> None:
    assert posting.place_of(address) == place


@pytest.mark.parametrize(
    "address", ["collector:4318", "ftp://collector", "http://", "http://a:99999/", "file:///etc/passwd", "http://[::1"]
)  # fmt: skip
def test_an_address_that_is_none_is_refused_at_the_start(address: str) -> None:
    with pytest.raises(SettingsError, match="MLP_TRACES_ENDPOINT is"):
        check_http("MLP_TRACES_ENDPOINT", address)


def test_an_empty_address_starts_no_collector() -> None:
    check_http("MLP_TRACES_ENDPOINT", "")
