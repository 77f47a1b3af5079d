"""Queries and panels that several dashboards have."""

from __future__ import annotations

from functools import partial

from mlp_hub.service.monitoring.dashboards.model import DashboardPanel, PanelKind, PanelQuery, PanelUnit

RATE = "[$__rate_interval]"
"""Range of rates, which Grafana chooses by the step of a panel and the interval of the scrapes."""


def quantiles(metric: str, where: str = "") -> tuple[PanelQuery, ...]:
    """Return the queries of the median and the 99th percentile of a histogram."""
    return tuple(
        PanelQuery(f"histogram_quantile({part}, sum by (le) (rate({metric}_bucket{where}{RATE})))", legend)
        for part, legend in ((0.5, "median"), (0.99, "p99"))
    )


def panel(
    title: str,
    unit: PanelUnit,
    expression: str,
    legend: str = "",
    *,
    kind: PanelKind = PanelKind.CURVES,
    width: int = 8,
    help: str = "",  # noqa: A002 - the word of panels
    stacked: bool = False,
) -> DashboardPanel:
    """Return the panel of one query."""
    return DashboardPanel(title, unit, (PanelQuery(expression, legend),), kind, width, help, stacked)


by_node = partial(panel, legend="{{node}}")
"""Panel with a curve for each node."""
by_team = partial(panel, legend="{{tenant}}")
"""Panel with a curve for each team."""
number = partial(panel, kind=PanelKind.NUMBER)
"""Panel of one number."""
listing = partial(panel, kind=PanelKind.TABLE)
"""Panel with a line for each series, and its labels as columns."""
