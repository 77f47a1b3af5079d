"""Each alert fires when it is meant to and not before, as Prometheus's own tool evaluates it; and each has its runbook."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from mlp_hub.domain.errors import Reason
from mlp_hub.domain.notices.alert import Alert, AlertState
from mlp_hub.service.alerts.wire import description_of
from mlp_hub.service.monitoring.alert_rule import AlertRule
from mlp_hub.service.monitoring.alert_rules import ABSENT, ALL_RULES, PROMETHEUS_RULES, RULES
from mlp_hub.service.monitoring.rule_files import PAGE, anchor, inhibitions, rules_file
from mlp_hub.service.monitoring.table import METRICS, MetricKind
from support.monitoring.alert_cases import CASES, CORES_OF_A_CLUSTER, FEW_FAILED, Series
from support.monitoring.prometheus import needs_prometheus, promtool

PAGES = "https://hub.example.org/services/mlp/docs/"
DOCS = Path(__file__).parents[4] / "docs"
each = pytest.mark.parametrize("rule", ALL_RULES, ids=lambda rule: rule.name)


def test_each_alert_has_its_cases() -> None:
    assert set(CASES) == {rule.name for rule in ALL_RULES}, "CASES of tests/support/monitoring/alert_cases.py"


@needs_prometheus
def test_each_alert_fires_when_it_is_meant_to_and_not_before(tmp_path: Path) -> None:
    (tmp_path / "rules.yml").write_text(yaml.safe_dump(rules_file(PAGES)))
    promtool("check", "rules", tmp_path / "rules.yml")
    tests = [one for rule in ALL_RULES for one in cases_of(rule)]
    (tmp_path / "tests.yml").write_text(
        yaml.safe_dump({"rule_files": ["rules.yml"], "evaluation_interval": "1m", "tests": tests})
    )
    assert "SUCCESS" in promtool("test", "rules", tmp_path / "tests.yml")


def cases_of(rule: AlertRule) -> list[dict[str, Any]]:
    """Return the cases of one alert: it fires, it is not told early, and it does not fire."""
    fires, calm = CASES[rule.name]
    count = f'count(ALERTS{{alertname="{rule.name}",alertstate="firing"}}) or vector(0)'

    def case(series: Series, at: str, firing: int) -> dict[str, Any]:
        return {
            "interval": "1m",
            "name": f"{rule.name} at {at}",
            "input_series": [{"series": name, "values": values} for name, values in series.items()],
            "promql_expr_test": [
                {"expr": count, "eval_time": at, "exp_samples": [{"labels": "{}", "value": firing}]}
            ],
        }

    early = f"{max(rule.for_s // 60 - 1, 0)}m"
    return [case(fires, "150m", 1), case(fires, early, 0), case(calm, "150m", 0)]


@needs_prometheus
def test_processors_of_a_cluster_are_judged_by_the_cores_that_its_metrics_api_has(tmp_path: Path) -> None:
    (tmp_path / "rules.yml").write_text(yaml.safe_dump(rules_file(PAGES)))
    firing = 'ALERTS{alertname="MLPNodeCpuHigh",alertstate="firing"}'
    labels = 'ALERTS{alertname="MLPNodeCpuHigh",alertstate="firing",node="n1",severity="warning"}'
    test = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in CORES_OF_A_CLUSTER.items()],
        "promql_expr_test": [
            {"expr": firing, "eval_time": "60m", "exp_samples": [{"labels": labels, "value": 1}]}
        ],
    }
    (tmp_path / "tests.yml").write_text(
        yaml.safe_dump({"rule_files": ["rules.yml"], "evaluation_interval": "1m", "tests": [test]})
    )
    assert "SUCCESS" in promtool("test", "rules", tmp_path / "tests.yml")


FAILURES = ("MLPJobFailuresHigh", "MLPTenantJobFailuresHigh")


@needs_prometheus
def test_a_share_of_few_jobs_fires_no_alert_of_failures(tmp_path: Path) -> None:
    (tmp_path / "rules.yml").write_text(yaml.safe_dump(rules_file(PAGES)))
    series = [{"series": name, "values": values} for name, values in FEW_FAILED.items()]
    found = 'count(ALERTS{alertname=~"MLP(Tenant)?JobFailuresHigh"}) or vector(0)'
    tests = [
        {
            "interval": "1m",
            "input_series": series,
            "promql_expr_test": [
                {"expr": found, "eval_time": at, "exp_samples": [{"labels": "{}", "value": 0}]}
            ],
        }
        for at in ("3m", "10m", "30m")
    ]
    (tmp_path / "tests.yml").write_text(
        yaml.safe_dump({"rule_files": ["rules.yml"], "evaluation_interval": "1m", "tests": tests})
    )
    assert "SUCCESS" in promtool("test", "rules", tmp_path / "tests.yml")


@pytest.mark.parametrize("name", FAILURES)
def test_both_rules_of_failures_have_the_share_and_the_least_count(name: str) -> None:
    (rule,) = (one for one in ALL_RULES if one.name == name)
    assert (rule.op, rule.threshold) == (">", 0.1)
    assert rule.guard is not None
    assert rule.guard.promql.endswith(">= 9.5)")


@each
def test_it_tells_what_a_person_needs(rule: AlertRule) -> None:
    assert re.fullmatch(r"MLP[A-Z][A-Za-z]+", rule.name)
    assert rule.severity in {"critical", "warning", "info"}
    # takeovers are counted over 15 minutes, and a replica that leads for less than `for` would never fire
    assert rule.for_s >= 60 or rule.name == "MLPLeaseFlapping"
    assert rule.for_s % 60 == 0
    (made,) = [one for one in rules_file(PAGES)["groups"][0]["rules"] if one["alert"] == rule.name]
    annotations = made["annotations"]
    assert "{" not in re.sub(r"\{\{.*?\}\}", "", annotations["summary"] + annotations["description"])
    assert "$value" in annotations["description"] or rule.name in {
        ABSENT,
        "MLPNodeLost",
        "MLPPlatformProblem",
    }
    assert annotations["runbook_url"] == f"{PAGES}{PAGE}#{anchor(rule)}"


@each
def test_its_runbook_is_in_the_documentation(rule: AlertRule) -> None:
    page = (DOCS / f"{PAGE}.md").read_text()
    assert f"\n## {rule.name}\n" in page, "run `make docs`"
    assert rule.meaning in page
    assert rule.remedy in page
    assert f"    {rule.expression}\n" in page


@each
def test_it_asks_for_metrics_and_labels_that_exist(rule: AlertRule) -> None:
    rows = {row.name: row for row in METRICS}
    asked = set(re.findall(r"\bmlp_[a-z_]+", rule.expression))
    for name in asked:
        bare = re.sub(r"_(bucket|count|sum)$", "", name)
        row = rows.get(name) or rows[bare]
        assert (name == row.name) is (row.kind is not MetricKind.HISTOGRAM)
        for found in re.findall(rf"{name}\{{([^}}]*)\}}", rule.expression):
            assert set(re.findall(r"(\w+)(?:=|!=)", found)) <= set(row.labels)
    assert asked or "DCGM_" in rule.expression or rule in PROMETHEUS_RULES
    reasons = {reason.value for reason in Reason}
    for found in re.findall(r'reason[=!]~"([^"]+)"', rule.expression):
        assert set(found.split("|")) <= reasons


def test_counted_things_have_no_fraction() -> None:
    rules = {rule.name: rule for rule in ALL_RULES}
    for name in ("MLPNotificationsFail", "MLPLeaseFlapping"):
        alert = Alert(1, name, (("integration", "email"),), "", AlertState.FIRING, 2.001, 0.0)
        said = str(description_of(rules[name], alert))
        assert re.search(r"\b2\b", said), said
        assert "2.0" not in said
    (group,) = (
        one
        for one in rules_file(PAGES)["groups"]
        if any(r["alert"] == "MLPNotificationsFail" for r in one["rules"])
    )
    (written,) = (r for r in group["rules"] if r["alert"] == "MLPNotificationsFail")
    assert '{{ printf "%.0f" $value }} notifications' in written["annotations"]["description"]


def test_the_first_five_are_those_that_every_site_wants() -> None:
    assert [(rule.op, rule.threshold) for rule in RULES[:5]] == [
        (">", 0.8), (">", 0.9), (">", 0.95), (">", 0.1), (">", 0),
    ]  # fmt: skip


def test_all_others_are_inhibited_while_the_hub_is_away() -> None:
    (one,) = inhibitions()["inhibit_rules"]
    source, target = one["source_matchers"], one["target_matchers"]
    assert source == [f'alertname="{ABSENT}"']
    inhibited = [rule.name for rule in RULES if re.fullmatch("MLP.+", rule.name) and rule.name != ABSENT]
    assert target == ['alertname=~"MLP.+"', f'alertname!="{ABSENT}"']
    assert len(inhibited) == len(RULES) - 1
