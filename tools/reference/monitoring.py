"""Pages of the metrics and of the alerts, from their tables."""

from __future__ import annotations

from mlp_hub.service.monitoring.alert_rule import AlertRule
from mlp_hub.service.monitoring.alert_rules import RULES
from mlp_hub.service.monitoring.table import METRICS
from reference.rest import markdown_table

_METRICS = """# Metrics

`GET /metrics` shows these metrics to a token with the scope `read:metrics`. [Monitor a hub](../how-to/monitor.md) sets Prometheus up. Metrics *of*
the leader are about the whole platform, so only the replica that leads shows them. Each replica shows the others about itself. Counters and
histograms begin at 0 when a replica starts. Metrics of the process have the usual names, as `process_resident_memory_bytes`.

Amounts by `resource` are in base units: `cpu` in cores, `gpu` in devices, `memory`, `storage` and `shm` in bytes.

"""
_ALERTS = """# Alerts

`mlp-hub monitor rules` writes these rules for Prometheus. [Monitor a hub](../how-to/monitor.md) describes how to use them. Each alert has a link to its
section here.

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
    return _METRICS + markdown_table(("metric", "type", "labels", "unit", "of", "meaning"), rows)


def alerts_page() -> str:
    """Return the page of all alerts, which has the runbooks."""
    rows = (
        (f"[{rule.name}](#{rule.name.lower()})", rule.severity, _for(rule), rule.summary) for rule in RULES
    )
    page = _ALERTS + markdown_table(("alert", "severity", "after", "summary"), rows)
    return page + "".join(map(_section, RULES))


def _section(rule: AlertRule) -> str:
    return f"\n## {rule.name}\n\n{rule.meaning}\n\n{rule.remedy}\n\n    {rule.expression}\n"


def _for(rule: AlertRule) -> str:
    return f"{rule.for_s // 60} min"
