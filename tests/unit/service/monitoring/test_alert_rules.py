"""Each alert fires when it is meant to and not before, as Prometheus's own tool evaluates it; and each has its runbook."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from mlp_hub.domain.errors import Reason
from mlp_hub.service.monitoring.alert_rules import (
    ABSENT,
    PAGE,
    RULES,
    AlertRule,
    anchor,
    inhibitions,
    rules_file,
)
from mlp_hub.service.monitoring.table import METRICS, MetricKind
from support.monitoring.prometheus import needs_prometheus, promtool

PAGES = "https://hub.example.org/services/mlp/docs/"
DOCS = Path(__file__).parents[4] / "docs"
Series = dict[str, str]

_CPU = 'mlp_node_cpu_seconds_total{node="n1",mode="%s"}'
_MEMORY = 'mlp_node_memory_bytes{node="n1",state="%s"}'
_DISK = 'mlp_node_disk_bytes{node="n1",state="%s"}'
_ENDED = 'mlp_jobs_ended_total{tenant="%s",result="%s"}'
_COMMITS = 'mlp_store_commit_duration_seconds_bucket{le="%s",result="committed"}'
_DELAYS = 'mlp_points_delay_seconds_bucket{le="%s"}'
_BUSY = {_CPU % "user": "0+57x200", _CPU % "idle": "0+2x200", _CPU % "iowait": "0+1x200"}
_CALM = {_CPU % "user": "0+6x200", _CPU % "idle": "0+50x200", _CPU % "iowait": "0+4x200"}


def memory(available: int) -> Series:
    return {_MEMORY % "total": "100x200", _MEMORY % "available": f"{available}x200"}


def disk(available: int) -> Series:
    return {_DISK % "total": "100x200", _DISK % "available": f"{available}x200"}


def ended(tenant: str, failed: str, finished: str) -> Series:
    return {_ENDED % (tenant, "failed"): failed, _ENDED % (tenant, "finished"): finished}


CASES: dict[str, tuple[Series, Series]] = {
    "MLPNodeCpuHigh": (_BUSY, _CALM),
    "MLPNodeGpuHigh": (
        {'mlp_node_gpu_utilization_ratio{node="n1",gpu="0"}': "0.95x200"},
        {'mlp_node_gpu_utilization_ratio{node="n1",gpu="0"}': "0.95x200", 'mlp_node_gpu_utilization_ratio{node="n1",gpu="1"}': "0.5x200"},
    ),
    "MLPNodeMemoryHigh": (memory(4), memory(6)),
    "MLPJobFailuresHigh": (ended("red", "0+1x200", "0+5x200"), ended("red", "0+1x200", "0+10x200")),
    "MLPTenantOverQuota": (
        {'mlp_tenant_over_limit{tenant="red",resource="storage"}': "5e9x200"},
        {'mlp_tenant_held{tenant="red",resource="cpu"}': "8x200", 'mlp_tenant_quota{tenant="red",resource="cpu"}': "4x200"},
    ),
    # the one job of a team that failed is no rate
    "MLPTenantJobFailuresHigh": (
        ended("red", "0+1x200", "0x200") | ended("blue", "0x200", "0+100x200"),
        ended("red", "0 0 1x200", "0x200") | ended("blue", "0x200", "0+100x200"),
    ),
    ABSENT: ({}, {'mlp_build_info{version="1",executor="local"}': "1x200"}),
    "MLPNoLeader": (
        {'mlp_lease_held{instance="a"}': "0x200", 'mlp_lease_held{instance="b"}': "0x200"},
        {'mlp_lease_held{instance="a"}': "0x200", 'mlp_lease_held{instance="b"}': "1x200"},
    ),
    "MLPLeaseFlapping": (
        {'mlp_lease_transitions_total{event="acquired"}': "0+1x200"},
        {'mlp_lease_transitions_total{event="acquired"}': "0 1x200"},
    ),
    "MLPNoCycle": (
        {"mlp_scheduler_last_cycle_timestamp_seconds": "0x200"},
        {"mlp_scheduler_last_cycle_timestamp_seconds": "0+60x200"},
    ),
    "MLPQueueStuck": (
        {'mlp_queue_oldest_age_seconds{reason="WaitingForQuota"}': "90000x200"},
        {'mlp_queue_oldest_age_seconds{reason="Suspended"}': "90000x200", 'mlp_queue_oldest_age_seconds{reason="WaitingForQuota"}': "9000x200"},
    ),
    "MLPGangNeverFits": (
        {'mlp_queue_jobs{reason="NoMatchingFlavor"}': "1x200"},
        {'mlp_queue_jobs{reason="WaitingForResources"}': "100x200", 'mlp_queue_jobs{reason="NoMatchingFlavor"}': "0x200"},
    ),
    "MLPPlatformProblem": ({'mlp_problem{component="hub",reason="HubUnavailable"}': "1x200"}, {"up": "1x200"}),
    "MLPNodeLost": ({'mlp_node_ready{node="n1"}': "0x200"}, {'mlp_node_ready{node="n1"}': "1 0 0 1x200"}),
    "MLPGpuErrors": (
        {'DCGM_FI_DEV_XID_ERRORS{hostname="n1",gpu="0"}': "79x200"},
        {'DCGM_FI_DEV_XID_ERRORS{Hostname="n1",gpu="0"}': "0x200"},
    ),
    # idle GPUs that nobody holds are nobody's
    "MLPGpuIdle": (
        {'mlp_node_gpu_utilization_ratio{node="n1",gpu="0"}': "0.01x200", 'mlp_node_held{node="n1",resource="gpu"}': "1x200"},
        {'mlp_node_gpu_utilization_ratio{node="n1",gpu="0"}': "0.01x200", 'mlp_node_held{node="n1",resource="gpu"}': "0x200"},
    ),
    "MLPDiskFull": (disk(9), disk(11)),
    "MLPDatabaseSlow": (
        {_COMMITS % "1.0": "0+1x200", _COMMITS % "5.0": "0+10x200", _COMMITS % "+Inf": "0+10x200"},
        {_COMMITS % "0.01": "0+10x200", _COMMITS % "1.0": "0+10x200", _COMMITS % "+Inf": "0+10x200"},
    ),
    "MLPRequestsFail": (
        {'mlp_http_requests_total{route_group="jobs",code="5xx"}': "0+3x200", 'mlp_http_requests_total{route_group="jobs",code="2xx"}': "0+97x200"},
        {'mlp_http_requests_total{route_group="jobs",code="5xx"}': "0+1x200", 'mlp_http_requests_total{route_group="jobs",code="2xx"}': "0+99x200"},
    ),
    "MLPPointsBehind": (
        {_DELAYS % "60.0": "0+1x200", _DELAYS % "300.0": "0+10x200", _DELAYS % "+Inf": "0+10x200"},
        {_DELAYS % "1.0": "0+10x200", _DELAYS % "60.0": "0+10x200", _DELAYS % "+Inf": "0+10x200"},
    ),
    # the clock of these tests begins in 1970
    "MLPCertificateEnds": (
        {"mlp_certificate_expiry_timestamp_seconds": "1200000x200"},
        {"mlp_certificate_expiry_timestamp_seconds": "1300000x200"},
    ),
    "MLPBackupOld": (
        {"mlp_backup_last_timestamp_seconds": "-700000x200"},
        {"mlp_backup_last_timestamp_seconds": "-600000x200"},
    ),
    "MLPPointsLag": ({"mlp_points_lag_messages": "20000x200"}, {"mlp_points_lag_messages": "100x200"}),
    "MLPNoticesBehind": ({"mlp_notices_oldest_age_seconds": "95000x200"}, {"mlp_notices_oldest_age_seconds": "80000x200"}),
}  # fmt: skip
"""For each alert series, one value a minute, with which it fires, and others with which it does not."""

each = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)


@needs_prometheus
def test_each_alert_fires_when_it_is_meant_to_and_not_before(tmp_path: Path) -> None:
    (tmp_path / "rules.yml").write_text(yaml.safe_dump(rules_file(PAGES)))
    promtool("check", "rules", tmp_path / "rules.yml")
    assert set(CASES) == {rule.name for rule in RULES}
    tests = [one for rule in RULES for one in cases_of(rule)]
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
    series: Series = {}
    for node, used in (("n1", 3.5), ("n2", 3.0)):
        series[f'mlp_node_cpu_used_cores{{node="{node}"}}'] = f"{used}x200"
        series[f'mlp_node_capacity{{node="{node}",resource="cpu"}}'] = "4x200"
    firing = 'ALERTS{alertname="MLPNodeCpuHigh",alertstate="firing"}'
    labels = 'ALERTS{alertname="MLPNodeCpuHigh",alertstate="firing",node="n1",severity="warning"}'
    test = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [
            {"expr": firing, "eval_time": "60m", "exp_samples": [{"labels": labels, "value": 1}]}
        ],
    }
    (tmp_path / "tests.yml").write_text(
        yaml.safe_dump({"rule_files": ["rules.yml"], "evaluation_interval": "1m", "tests": [test]})
    )
    assert "SUCCESS" in promtool("test", "rules", tmp_path / "tests.yml")


@each
def test_it_tells_what_a_person_needs(rule: AlertRule) -> None:
    assert re.fullmatch(r"MLP[A-Z][A-Za-z]+", rule.name)
    assert rule.severity in {"critical", "warning", "info"}
    assert rule.for_s >= 60
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
    assert f"\n## {rule.name}\n" in page
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
    assert asked or "DCGM_" in rule.expression
    reasons = {reason.value for reason in Reason}
    for found in re.findall(r'reason[=!]~"([^"]+)"', rule.expression):
        assert set(found.split("|")) <= reasons


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
