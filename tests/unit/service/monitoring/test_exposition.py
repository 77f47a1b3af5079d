"""The text of a scrape has the lines that the library writes of the same values, and is as the formats want it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate, product
from math import inf, nan
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.exposition import generate_latest
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.utils import floatToGoString

from mlp_hub.service.monitoring.exposition import Exposition
from mlp_hub.service.monitoring.gauges import Family
from mlp_hub.service.monitoring.table import METRICS, USED, MetricKind, MetricRow

NAMES = ['a"} 1\nmlp_up 0', "\\", 'back\\"slash', "new\nline", "日本語", "{}", "%s", "%", ""]
NUMBERS = [0.0, 1.0, -1.0, 0.1, 1e-9, 123456.0, 1234567.25, 1e15, 1e16, -1e16, 1e300, inf, -inf, nan]
SPREADS = [0, 3, 1_000_000, 2**40]


class _Library:
    """Collector of the same values, for the library."""

    def __init__(self, families: Sequence[Family]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        kinds: dict[MetricKind, Any] = {
            MetricKind.COUNTER: CounterMetricFamily,
            MetricKind.GAUGE: GaugeMetricFamily,
            MetricKind.HISTOGRAM: HistogramMetricFamily,
            MetricKind.SUMMARY: SummaryMetricFamily,
        }
        for row, samples in self._families:
            family = kinds[row.kind](row.name, row.help, labels=row.labels)
            labels: tuple[str, ...]
            value: Any
            for labels, value in samples:
                if row.kind is MetricKind.HISTOGRAM:
                    bounds = [*map(floatToGoString, row.buckets), "+Inf"]
                    family.add_metric(labels, list(zip(bounds, accumulate(value[0]), strict=True)), value[1])
                elif row.kind is MetricKind.SUMMARY:
                    family.add_metric(labels, count_value=sum(value[0]), sum_value=value[1])
                else:
                    family.add_metric(labels, value)
            yield family


def values_of(row: MetricRow) -> list[tuple[tuple[str, ...], Any]]:
    """Return values of a row, with names of all sorts as its labels."""
    several = NAMES if row.labels else NAMES[:1]
    labels = [tuple(f"{name}{at}" if at else name for at, _ in enumerate(row.labels)) for name in several]
    if row.kind in (MetricKind.COUNTER, MetricKind.GAUGE):
        return [(one, NUMBERS[n % len(NUMBERS)]) for n, one in enumerate(labels * 2)]
    found: list[tuple[tuple[str, ...], Any]] = []
    for n, one in enumerate(labels):
        counts = [SPREADS[(n + at) % len(SPREADS)] for at in range(len(row.buckets) + 1)]
        is_without_sum = row.kind is MetricKind.HISTOGRAM and n % 3 == 2
        found.append((one, (counts, None if is_without_sum else 0.25 * n)))
    return found


def with_whole_numbers(text: str) -> str:
    """Return the library's text with whole numbers as ours has them."""

    def whole(match: re.Match[str]) -> str:
        value = float(match[1])
        return f" {int(value)}" if value.is_integer() and abs(value) < 2**53 else match[0]

    return re.sub(r"(?m) (\S+)$", lambda m: whole(m) if re.fullmatch(r"[-+.e0-9]+", m[1]) else m[0], text)


@pytest.mark.parametrize("open_metrics", [False, True])
def test_each_row_is_written_as_by_the_library(open_metrics: bool) -> None:
    for row in METRICS:
        families: list[Family] = [(row, values_of(row))]
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Library(families))
        generate: Any = openmetrics.generate_latest if open_metrics else generate_latest
        wanted = [
            line if line.startswith("#") else with_whole_numbers(line)
            for line in generate(registry).decode().split("\n")
        ]
        text, _ = Exposition().render(families, open_metrics=open_metrics)
        found = text.decode().split("\n")
        end = next((n for n, line in enumerate(found) if line.startswith("# HELP process_")), len(found))
        assert found[:end] == wanted[:end], row.name
        assert len(wanted) - end in (1, 2), "beside these only the end"


@pytest.mark.parametrize("open_metrics", [False, True])
def test_the_processs_own_figures_are_there(open_metrics: bool) -> None:
    text, media = Exposition().render((), open_metrics=open_metrics)
    lines = text.decode().splitlines()
    cpu = "process_cpu_seconds" if open_metrics else "process_cpu_seconds_total"
    assert f"# TYPE {cpu} counter" in lines
    assert any(re.fullmatch(r"process_cpu_seconds_total [0-9.]+", line) for line in lines)
    assert any(re.fullmatch(r"process_resident_memory_bytes [1-9][0-9]+", line) for line in lines)
    assert (lines[-1] == "# EOF") is open_metrics
    assert media.startswith("application/openmetrics-text; version=1.0.0" if open_metrics else "text/plain")


def test_numbers_come_back_as_they_were() -> None:
    row = next(row for row in METRICS if row.kind is MetricKind.GAUGE and not row.labels)
    for number in NUMBERS:
        text, _ = Exposition().render([(row, [((), number)])], open_metrics=False)
        written = text.decode().splitlines()[2].removeprefix(f"{row.name} ")
        assert float(written) == number or number != number  # noqa: PLR0124 - nan
        assert written.startswith("NaN") is (number != number)  # noqa: PLR0124


LABELS = {
    "resource": ("cpu", "gpu", "memory", "storage", "gpu:a100"),
    "state": ("waiting", "running"),
    "direction": ("in", "out"),
    "result": ("finished", "failed", "cancelled"),
}
"""Values of the labels beside a team's."""
RARE = {"mlp_tenant_over_limit", "mlp_tenant_lent", "mlp_tenant_borrowed", "mlp_tenant_request_errors_total"}
"""Metrics that few teams have at a time."""


def test_the_text_of_200_teams_stays_below_half_a_megabyte() -> None:
    """A team with a name of usual length takes at most 2.4 kB; a new series of each team is paid by another one."""
    families: list[Family] = []
    for row in METRICS:
        if "tenant" not in row.labels or row.name in RARE or row.name.startswith("jupyterhub"):
            continue
        known = LABELS | ({"resource": ("cpu", "memory")} if row is USED else {})
        named = [known.get(label, ("team-0-13",)) for label in row.labels]
        counts = ([1] * (len(row.buckets) + 1), 1.5)
        value: Any = counts if row.kind in (MetricKind.HISTOGRAM, MetricKind.SUMMARY) else 12.0
        families.append((row, [(labels, value) for labels in product(*named)]))
    text, _ = Exposition().render(families, open_metrics=True)
    of_team = [line for line in text.decode().splitlines() if not line.startswith(("#", "process_"))]
    assert len(families) >= 14
    assert sum(len(line) + 1 for line in of_team) <= 2400, (
        "the labels of a team have too many values: drop a label or a bucket of the new metric, or another one"
    )
