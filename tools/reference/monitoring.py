"""Pages of the metrics, of the alerts and of the dashboards, from their tables."""

from __future__ import annotations

from mlp_hub.domain.dimensions import COUNTED, TABLE
from mlp_hub.service.monitoring.alert_rule import AlertRule
from mlp_hub.service.monitoring.alert_rules import ALL_RULES
from mlp_hub.service.monitoring.dashboards.model import Dashboard
from mlp_hub.service.monitoring.dashboards.table import DASHBOARDS
from mlp_hub.service.monitoring.gauges import title_of
from mlp_hub.service.monitoring.table import METRICS
from reference.rest import markdown_table

_METRICS = """# Metrics

`GET /metrics` shows these metrics to a token with the scope `read:metrics`. [Watch it](../how-to/monitor.md) sets Prometheus up. Metrics *of*
the leader are about the whole platform, so only the replica that leads shows them. Each replica shows the others about itself. Counters and
histograms begin at 0 when a replica starts. Metrics of the process have the usual names, as `process_resident_memory_bytes`.

Amounts by `resource` are in base units: `cpu` in cores, `gpu` in devices, {in_bytes} in bytes{others}.

"""
_ALERTS = """# Alerts

`mlp-hub monitor rules` writes these rules for Prometheus. [Watch it](../how-to/monitor.md) describes how to use them. Each alert has a link to its
section here.

"""
_DASHBOARDS = """# Dashboards

`mlp-hub monitor dashboards DIR` writes these dashboards as JSON that Grafana imports. [Watch it](../how-to/monitor.md#dashboards) describes how. In the
files, each query is restricted to the chosen hub by the variable `job`. `$__rate_interval` is Grafana's.
"""


def metrics_page() -> str:
    """Return the page of all metrics."""
    rows = (
        (
            f"`{row.name}`",
            row.kind.value,
            ", ".join(f"`{label}`" for label in row.labels),
            row.unit,
            row.of.value,
            row.help,
        )
        for row in METRICS
    )
    in_bytes = [row.name for row in TABLE if row.unit.startswith(("MiB", "GiB"))]
    *first, last = [f"`{title_of(name)}`" for name in in_bytes]
    others = "".join(f", `{name}` in units" for name in COUNTED if name not in in_bytes)
    head = _METRICS.format(in_bytes=f"{', '.join(first)} and {last}", others=others)
    return head + markdown_table(("metric", "type", "labels", "unit", "of", "meaning"), rows)


def alerts_page() -> str:
    """Return the page of all alerts, which has the runbooks."""
    rows = (
        (f"[{rule.name}](#{rule.name.lower()})", rule.severity, _for(rule), rule.summary)
        for rule in ALL_RULES
    )
    page = _ALERTS + markdown_table(("alert", "severity", "after", "summary"), rows)
    return page + "".join(map(_section, ALL_RULES))


def dashboards_page() -> str:
    """Return the page of all dashboards with their queries."""
    return _DASHBOARDS + "".join(map(_dashboard, DASHBOARDS))


def _dashboard(dashboard: Dashboard) -> str:
    rows = (
        (row.title, panel.title, panel.unit.value, ", ".join(f"`{query.of}`" for query in panel.queries))
        for row in dashboard.rows
        for panel in row.panels
    )
    head = f"\n## {dashboard.title.removeprefix('MLP Hub / ')}\n\n{dashboard.description}\n\n"
    return head + markdown_table(("row", "panel", "unit", "queries"), rows)


def _section(rule: AlertRule) -> str:
    return f"\n## {rule.name}\n\n{rule.meaning}\n\n{rule.remedy}\n\n    {rule.expression}\n"


def _for(rule: AlertRule) -> str:
    return f"{rule.for_s // 60} min"
