"""Dashboards are what Grafana's published types have, name no id of ours, and ask for metrics that exist."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models import units
from grafana_foundation_sdk.models.dashboard import Dashboard as GrafanaDashboard

from mlp_hub.service.monitoring.dashboards.grafana import COLUMNS, grafana_json, text_of
from mlp_hub.service.monitoring.dashboards.model import Dashboard, PanelQuery
from mlp_hub.service.monitoring.dashboards.table import DASHBOARDS
from mlp_hub.service.monitoring.table import METRICS, MetricKind

each = pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda one: one.name)
SUFFIXES = {MetricKind.HISTOGRAM: ("_bucket", "_count", "_sum"), MetricKind.SUMMARY: ("_count", "_sum")}
NAMES = {row.name + suffix: row for row in METRICS for suffix in SUFFIXES.get(row.kind, ("",))}
"""Rows of the table by the names that queries use."""


@pytest.fixture(scope="module", autouse=True)
def _panels_are_known() -> None:
    register_default_plugins()


def panels(dashboard: Dashboard) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = grafana_json(dashboard)["panels"]
    return found


@each
def test_it_is_what_grafanas_own_types_read_and_write(dashboard: Dashboard) -> None:
    """A field that Grafana does not have would be lost on the way."""
    made = json.loads(text_of(dashboard))
    back = json.loads(JSONEncoder().encode(GrafanaDashboard.from_json(made)))
    assert lost(made, back) == []


def lost(made: Any, back: Any, at: str = "") -> list[str]:
    """Return the places where something did not come back as it was; what the types add is no loss."""
    if isinstance(made, dict) and isinstance(back, dict):
        return [one for key in made for one in lost(made[key], back.get(key), f"{at}.{key}")]
    if isinstance(made, list) and isinstance(back, list) and len(made) == len(back):
        return [
            one
            for number, (a, b) in enumerate(zip(made, back, strict=True))
            for one in lost(a, b, f"{at}[{number}]")
        ]
    return [] if made == back else [f"{at}: {made!r} became {back!r}"]


def test_a_field_that_grafana_does_not_have_is_found() -> None:
    made = grafana_json(DASHBOARDS[0])
    made["panels"][1]["fieldConfig"]["defaults"]["unitt"] = "s"
    back = json.loads(JSONEncoder().encode(GrafanaDashboard.from_json(made)))
    assert lost(made, back) == [".panels[1].fieldConfig.defaults.unitt: 's' became None"]


@each
def test_it_names_no_data_source_and_no_id_of_ours(dashboard: Dashboard) -> None:
    made = grafana_json(dashboard)
    assert not {"id", "uid"} & set(made)
    for panel in made["panels"]:
        sources = [panel.get("datasource"), *(target["datasource"] for target in panel.get("targets", ()))]
        assert all(
            one == {"type": "prometheus", "uid": "${datasource}"} for one in sources if one is not None
        )
    assert made["templating"]["list"][0]["type"] == "datasource"
    assert "mlp-hub" not in re.sub(
        r'"tags": \[\s*"mlp-hub"\s*\]|`mlp-hub (monitor rules|backup)`', "", text_of(dashboard)
    )


@each
def test_panels_fill_rows_and_overlap_nowhere(dashboard: Dashboard) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in panels(dashboard):
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= COLUMNS
        assert not cells & taken
        taken |= cells
    numbers = [panel["id"] for panel in panels(dashboard)]
    assert len(set(numbers)) == len(numbers)
    titles = [(row.title, panel.title) for row in dashboard.rows for panel in row.panels]
    assert len(set(titles)) == len(titles)


@each
def test_its_units_are_grafanas(dashboard: Dashboard) -> None:
    known = {value for name, value in vars(units).items() if isinstance(value, str)}
    assert {panel.unit.value for panel in dashboard.panels()} <= known


@each
def test_it_asks_for_metrics_and_labels_that_exist(dashboard: Dashboard) -> None:
    for panel in dashboard.panels():
        for query in panel.queries:
            for name, labels in re.findall(r"\b((?:mlp|dirsize)_\w+)(?:\{([^}]*)\})?", query.of):
                row = NAMES[name]
                asked = set(re.findall(r"(\w+)(?:=~|!=|=)", labels))
                assert asked - {"le"} <= set(row.labels), (panel.title, name)
            for name in re.findall(r"\{\{(\w+)\}\}", query.legend):
                assert name in query.of or name in {"directory", "gpu", "node"}, (panel.title, name)


@each
def test_each_metric_of_a_hub_is_asked_of_the_chosen_one(dashboard: Dashboard) -> None:
    for panel in dashboard.panels():
        for query in panel.queries:
            of_hub = len(re.findall(r"\b(?:mlp|process)_\w+", query.of))
            assert query.expression.count('job=~"$job"') == of_hub


def test_a_query_gets_the_hub_beside_its_own_labels() -> None:
    text = 'sum by (node) (rate(mlp_a_total{node="n"}[5m])) / mlp_b + jupyterhub_c'
    assert PanelQuery(text).expression == (
        'sum by (node) (rate(mlp_a_total{job=~"$job",node="n"}[5m])) / mlp_b{job=~"$job"} + jupyterhub_c'
    )


def test_all_metrics_but_those_of_joins_are_on_a_dashboard() -> None:
    """A metric that nobody looks at is a cost; one without a panel is named here, with its reason."""
    without = {
        "mlp_lease_epoch": "a number for joins with logs",
        "jupyterhub_user_group_info": "joins people with teams on the dashboards of JupyterHub",
        "mlp_node_info": "values of a variable",
    }
    asked = {
        name
        for dashboard in DASHBOARDS
        for panel in dashboard.panels()
        for query in panel.queries
        for name in re.findall(r"\b(?:mlp|dirsize)_\w+", query.of)
    }
    shown = {NAMES[name].name for name in asked}
    unseen = {row.name for row in METRICS} - shown
    assert unseen <= set(without), (
        "give each a panel in service/monitoring/dashboards, or here the reason for none"
    )
    assert unseen == set(without), "these have a panel, and need no reason here"
