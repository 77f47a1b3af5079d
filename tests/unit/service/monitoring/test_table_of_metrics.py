"""The table of metrics keeps to the conventions of Prometheus, and each row is shown by something."""

from __future__ import annotations

import ast
import inspect
import re

import pytest

from mlp_hub.service.monitoring import events, gauges, operator_files, people, service, table
from mlp_hub.service.monitoring.events import PlatformEvents
from mlp_hub.service.monitoring.table import METRICS, OF_PEOPLE, MetricKind, MetricRow

UNITS = ("_seconds", "_bytes", "_ratio", "_celsius", "_watts")
UNBOUNDED = {"user", "job", "run", "uid", "server", "app", "path", "token", "username", "directory"}

each = pytest.mark.parametrize("row", METRICS, ids=lambda row: row.name)


def test_no_two_rows_have_one_name() -> None:
    assert len({row.name for row in METRICS}) == len(METRICS)


@each
def test_a_name_says_its_kind_and_its_unit(row: MetricRow) -> None:
    assert re.fullmatch(r"mlp_[a-z0-9_]*[a-z0-9]", row.name) or row in OF_PEOPLE
    assert row.name.endswith("_total") is (row.kind is MetricKind.COUNTER)
    bare = row.name.removesuffix("_total")
    if row.unit:
        assert bare.endswith(f"_{row.unit}")
    assert bool(row.unit) is bare.endswith(UNITS)
    assert bool(row.buckets) is (row.kind is MetricKind.HISTOGRAM)
    assert sorted(set(row.buckets)) == list(row.buckets)


@each
def test_no_label_grows_with_work_or_people(row: MetricRow) -> None:
    assert bool(UNBOUNDED & set(row.labels)) is (row in OF_PEOPLE)
    assert "le" not in row.labels
    assert all(re.fullmatch(r"[a-z][a-z_]*", label) for label in row.labels)


@each
def test_a_help_is_one_sentence_or_more(row: MetricRow) -> None:
    assert row.help.endswith(".")
    assert "\n" not in row.help


def test_each_row_is_fed_by_an_instrument_or_read_from_a_cache() -> None:
    fed = {one.row.name for one in PlatformEvents(lambda: 0.0).all()}
    read = {
        getattr(table, node.attr).name
        for module in (gauges, service, events, people, operator_files)
        for node in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "t"
        if isinstance(getattr(table, node.attr, None), MetricRow)
    }
    assert {row.name for row in METRICS} == fed | read | {table.WEBSOCKETS.name}, (
        "a row without values: add an instrument to events.py, or a line of gauges.py"
    )
