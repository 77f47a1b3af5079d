"""Text of a scrape, in the format that the scraper asks for. It loads the library, and so only the first scrape loads this."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.utils import floatToGoString

from mlp_hub.service.monitoring.gauges import Family
from mlp_hub.service.monitoring.table import MetricKind, MetricRow

_FAMILIES: dict[MetricKind, Any] = {
    MetricKind.COUNTER: CounterMetricFamily,
    MetricKind.GAUGE: GaugeMetricFamily,
    MetricKind.HISTOGRAM: HistogramMetricFamily,
    MetricKind.SUMMARY: SummaryMetricFamily,
}


class _FoundMetrics:
    """Collector of values that were found already."""

    def __init__(self, families: Sequence[Family]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of the table that have values."""
        for row, samples in self._families:
            family = _FAMILIES[row.kind](row.name, row.help, labels=row.labels)
            for labels, value in samples:
                _add(family, row, labels, value)
            yield family


class Exposition:
    """Renderer of scrapes, with a registry of its own that has nothing but the process's own figures."""

    def __init__(self) -> None:
        self._process = ProcessCollector(registry=None)

    def render(self, families: Sequence[Family], *, open_metrics: bool) -> tuple[bytes, str]:
        """Return the text and its type; for a thread, because it reads /proc."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_FoundMetrics(families))
        registry.register(self._process)
        if open_metrics:
            made: bytes = openmetrics.generate_latest(registry)  # type: ignore[no-untyped-call]
            return made, openmetrics.CONTENT_TYPE_LATEST
        return generate_latest(registry), CONTENT_TYPE_PLAIN_0_0_4


def _add(family: Any, row: MetricRow, labels: Sequence[str], value: Any) -> None:
    if row.kind is MetricKind.HISTOGRAM:
        counts, total = value
        bounds = [*map(floatToGoString, row.buckets), "+Inf"]
        family.add_metric(labels, list(zip(bounds, accumulate(counts), strict=True)), total)
    elif row.kind is MetricKind.SUMMARY:
        counts, total = value
        family.add_metric(labels, count_value=sum(counts), sum_value=total)
    else:
        family.add_metric(labels, value)
