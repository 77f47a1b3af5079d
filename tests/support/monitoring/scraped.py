"""A scrape, taken apart by the library's own parser."""

from __future__ import annotations

from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families as plain

OPEN_METRICS = "application/openmetrics-text; version=1.0.0"
Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


class Scraped:
    """Series of one scrape; `value("mlp_jobs", phase="queued")` is None where there is no such series."""

    def __init__(self, text: str, *, is_open: bool = False) -> None:
        families = list((open_metrics if is_open else plain)(text))
        self.families = {family.name: family for family in families}
        self.series: Series = {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in families
            for sample in family.samples
        }

    def value(self, name: str, **labels: str) -> float | None:
        """Return the value of exactly this series."""
        return self.series.get((name, frozenset(labels.items())))

    def by(self, name: str, label: str) -> dict[str, float]:
        """Return the values of a metric by one of its labels."""
        return {dict(labels)[label]: value for (found, labels), value in self.series.items() if found == name}
