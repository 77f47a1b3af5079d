"""JSON of dashboards as Grafana imports it, without ids: each Grafana gives its own, and no file names a data source."""

from __future__ import annotations

import json
from collections.abc import Iterator
from string import ascii_uppercase
from typing import Any

from mlp_hub.service.monitoring.dashboards.model import (
    JOB,
    Dashboard,
    DashboardPanel,
    DashboardVariable,
    PanelKind,
    PanelQuery,
)

SCHEMA = 39
"""Given: version of the schema, that of Grafana 10.4; newer ones read it."""
COLUMNS = 24
"""Given: columns of a dashboard."""
_HEIGHTS = {PanelKind.NUMBER: 4, PanelKind.CURVES: 8, PanelKind.TABLE: 8}
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
TAG = "mlp-hub"
"""Tag of all dashboards, by which each links to the others."""


def text_of(dashboard: Dashboard) -> str:
    """Return the content of a dashboard's file."""
    return json.dumps(grafana_json(dashboard), indent=2, ensure_ascii=False) + "\n"


def grafana_json(dashboard: Dashboard) -> dict[str, Any]:
    """Return a dashboard as Grafana has it."""
    return {
        "title": dashboard.title,
        "description": dashboard.description,
        "tags": [TAG],
        "timezone": "browser",
        "editable": True,
        "graphTooltip": 1,
        "schemaVersion": SCHEMA,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "links": [
            {
                "title": "MLP Hub",
                "type": "dashboards",
                "icon": "external link",
                "tooltip": "",
                "tags": [TAG],
                "asDropdown": True,
                "targetBlank": False,
                "includeVars": True,
                "keepTime": True,
            }
        ],
        "templating": {"list": [_data_source(), *map(_variable, (_JOBS, *dashboard.variables))]},
        "annotations": {"list": []},
        "panels": list(_panels(dashboard)),
    }


_JOBS = DashboardVariable(JOB, "Hub", "mlp_build_info")


def _data_source() -> dict[str, Any]:
    return {
        "name": "datasource",
        "label": "Data source",
        "type": "datasource",
        "query": "prometheus",
        "hide": 0,
        "skipUrlSync": False,
        "multi": False,
        "includeAll": False,
        "refresh": 1,
    }


def _variable(variable: DashboardVariable) -> dict[str, Any]:
    metric = PanelQuery(variable.metric).expression if variable is not _JOBS else variable.metric
    return {
        "name": variable.name,
        "label": variable.title,
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": f"label_values({metric}, {variable.name})", "refId": variable.name},
        "hide": 0,
        "skipUrlSync": False,
        "multi": True,
        "includeAll": True,
        "allValue": ".+",
        "current": {"text": ["All"], "value": ["$__all"]},
        "refresh": 2,
        "sort": 1,
    }


def _panels(dashboard: Dashboard) -> Iterator[dict[str, Any]]:
    """Yield the rows and their panels, from left to right and from top to bottom."""
    number, top = 0, 0
    for row in dashboard.rows:
        number += 1
        yield {
            "id": number,
            "type": "row",
            "title": row.title,
            "collapsed": False,
            "gridPos": {"x": 0, "y": top, "w": COLUMNS, "h": 1},
            "panels": [],
        }
        top, left, height = top + 1, 0, 0
        for panel in row.panels:
            if left + panel.width > COLUMNS:
                top, left, height = top + height, 0, 0
            number += 1
            tall = _HEIGHTS[panel.kind]
            yield _panel(panel, number, {"x": left, "y": top, "w": panel.width, "h": tall})
            left, height = left + panel.width, max(height, tall)
        top += height


def _panel(panel: DashboardPanel, number: int, at: dict[str, int]) -> dict[str, Any]:
    return {
        "id": number,
        "type": panel.kind.value,
        "title": panel.title,
        "description": panel.help,
        "datasource": _SOURCE,
        "gridPos": at,
        "targets": [
            _target(panel, query, letter)
            for query, letter in zip(panel.queries, ascii_uppercase, strict=False)
        ],
        **_LOOKS[panel.kind](panel),
    }


def _target(panel: DashboardPanel, query: PanelQuery, letter: str) -> dict[str, Any]:
    curves = panel.kind is not PanelKind.TABLE
    return {
        "refId": letter,
        "datasource": _SOURCE,
        "expr": query.expression,
        "editorMode": "code",
        "legendFormat": query.legend or "__auto",
        "format": "time_series" if curves else "table",
        "range": curves,
        "instant": not curves,
    }


def _curves(panel: DashboardPanel) -> dict[str, Any]:
    return {
        "fieldConfig": {
            "defaults": {
                "unit": panel.unit.value,
                "min": 0,
                "custom": {
                    "drawStyle": "line",
                    "lineWidth": 1,
                    "fillOpacity": 30 if panel.stacked else 10,
                    "showPoints": "never",
                    "spanNulls": False,
                    "stacking": {"mode": "normal" if panel.stacked else "none", "group": "A"},
                },
            },
            "overrides": [],
        },
        "options": {
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []},
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
    }


def _number(panel: DashboardPanel) -> dict[str, Any]:
    return {
        "fieldConfig": {"defaults": {"unit": panel.unit.value}, "overrides": []},
        "options": {
            "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
            "colorMode": "none",
            "graphMode": "area",
            "justifyMode": "auto",
            "textMode": "auto",
            "orientation": "auto",
        },
    }


def _table(panel: DashboardPanel) -> dict[str, Any]:
    return {
        "fieldConfig": {"defaults": {"unit": panel.unit.value}, "overrides": []},
        "options": {"showHeader": True, "cellHeight": "sm"},
        "transformations": [{"id": "organize", "options": {"excludeByName": {"Time": True}}}],
    }


_LOOKS = {PanelKind.CURVES: _curves, PanelKind.NUMBER: _number, PanelKind.TABLE: _table}
