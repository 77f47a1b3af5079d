"""Metric points in the forms of OTLP and MLflow, and what answers mean."""

from __future__ import annotations

import math
import posixpath
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)

from mlp_hub.outbound import mlflow_points, otlp_points
from mlp_hub.outbound.posting import LATER, TargetAnswer

JOB = {"uid": "uid", "name": "digits", "run": 1, "user": "ann", "tenant": "red"}
values = st.floats() | st.integers(-(2**63), 2**64 - 1)
points = st.lists(
    st.tuples(
        st.integers(1, 2**53),
        st.integers(0, 10_000),
        st.floats(),
        st.dictionaries(st.text(min_size=1, max_size=100), values, max_size=5),
    ),
    max_size=5,
)


def metrics_in(body: bytes) -> list[Any]:
    request = ExportMetricsServiceRequest.FromString(body)
    return [m for g in request.resource_metrics for s in g.scope_metrics for m in s.metrics]


@given(points)
def test_whatever_a_program_reports_has_a_form_of_otlp(given_points: list[Any]) -> None:
    (metric,) = metrics_in(otlp_points.encode([{**JOB, "points": given_points}]))
    assert metric.name == otlp_points.METRIC
    assert len(metric.gauge.data_points) == sum(len(p[3]) for p in given_points)
    for point in metric.gauge.data_points:
        assert 0 <= point.time_unix_nano <= otlp_points.nanoseconds(math.inf) or point.time_unix_nano < 2**63


@given(points)
def test_whatever_a_program_reports_has_a_form_that_mlflow_takes(given_points: list[Any]) -> None:
    for one in mlflow_points.metrics_of(given_points):
        key = one["key"]
        assert re.fullmatch(r"[A-Za-z0-9_\-. /]{1,250}", key)
        assert posixpath.normpath(key) == key
        assert key != "."
        assert not key.startswith(("/", ".."))
        assert key.strip()
        assert 0 <= one["timestamp"] <= mlflow_points.LAST_MS
        assert abs(one["step"]) <= 2**53
        assert isinstance(one["value"], str) or math.isfinite(one["value"])


@given(st.sets(st.text(min_size=1, max_size=100), max_size=20))
def test_no_two_names_become_one_in_mlflow(names: set[str]) -> None:
    assert len({mlflow_points.key_of(name) for name in names}) == len(names)


def test_the_step_of_a_point_is_the_step_of_its_values() -> None:
    made = mlflow_points.metrics_of([(7, 0, 1.5, {"step": 30, "loss": 0.5}), (8, 3, 2.0, {"loss": math.nan})])
    assert made == [
        {"key": "loss", "value": 0.5, "timestamp": 1500, "step": 30},
        {"key": "rank-3/loss", "value": "NaN", "timestamp": 2000, "step": 8},
    ]


@pytest.mark.parametrize(
    ("status", "why"),
    [(200, None), (204, None), (302, "later"), (400, "refused"), (401, "later"), (404, "later"), (413, "too-large"), (422, "refused"), (429, "later"), (500, "fault"), (501, "fault"), (503, "later")],
)  # fmt: skip
def test_each_status_decides_whether_points_are_sent_again(status: int, why: str | None) -> None:
    assert TargetAnswer(status, b"").outcome().get("why") == why
    assert (why == "later") is (status in LATER)


def test_mlflows_own_word_about_a_run_that_is_gone_is_a_refusal() -> None:
    gone = TargetAnswer(404, b'{"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "\\u001b[2J"}')
    with pytest.raises(mlflow_points.NotTakenError) as raised:
        mlflow_points._taken(gone)
    assert raised.value.outcome == {"why": "refused", "status": 404, "code": "RESOURCE_DOES_NOT_EXIST"}
    for body in (b"not found", b"[" * 100_000, b'{"error_code": "<script>"}', b"\xff", b'{"error_code": 3}'):
        with pytest.raises(mlflow_points.NotTakenError) as raised:
            mlflow_points._taken(TargetAnswer(404, body))
        assert raised.value.outcome == {"why": "later", "status": 404}
    with pytest.raises(mlflow_points.NotTakenError) as raised:
        mlflow_points._taken(TargetAnswer(401, b'{"error_code": "UNAUTHENTICATED"}'))
    assert raised.value.outcome["why"] == "later"


@pytest.mark.parametrize("found", [None, [], {}, {"run_id": 3}, {"run_id": "../x"}, {"run_id": "a" * 65}])
def test_an_invalid_id_is_not_taken(found: Any) -> None:
    with pytest.raises(mlflow_points.NotTakenError):
        mlflow_points._text(found, "run_id")


def test_left_out_values_are_read_from_an_answer_of_otlp_alone() -> None:
    answer = ExportMetricsServiceResponse()
    answer.partial_success.rejected_data_points = 3
    assert otlp_points.rejected(answer.SerializeToString()) == 3
    answer.partial_success.rejected_data_points = -3
    assert otlp_points.rejected(answer.SerializeToString()) == 0
    assert otlp_points.rejected(b"") == 0
    assert otlp_points.rejected(b"<html>" * 1000) == 0
