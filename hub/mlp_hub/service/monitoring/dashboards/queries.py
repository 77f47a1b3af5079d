"""Queries that several dashboards have."""

from __future__ import annotations

from mlp_hub.service.monitoring.dashboards.model import PanelQuery

RATE = "[$__rate_interval]"
"""Range of rates, which Grafana chooses by the step of a panel and the interval of the scrapes."""


def quantiles(metric: str, where: str = "") -> tuple[PanelQuery, ...]:
    """Return the queries of the median and the 99th percentile of a histogram."""
    return tuple(
        PanelQuery(f"histogram_quantile({part}, sum by (le) (rate({metric}_bucket{where}{RATE})))", legend)
        for part, legend in ((0.5, "median"), (0.99, "p99"))
    )
