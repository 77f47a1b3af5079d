"""A real Prometheus scrapes a real hub with a token of the command, the platform and JupyterHub, and its alerts fire."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from support.hubs.live_hub import LiveHub
from support.monitoring.prometheus import needs_prometheus, promtool, running, until_value
from support.monitoring.scraping import as_the_operator_writes, scrape, token_of
from support.waiting import wait_for

pytestmark = needs_prometheus


def test_one_token_scrapes_the_platform_and_jupyterhub(hub: LiveHub, tmp_path: Path) -> None:
    file = tmp_path / "token"
    token_of(hub, file)
    with running(tmp_path / "prometheus", scrape(hub, file)) as prometheus:
        ((labels, _),) = until_value(prometheus, "mlp_build_info")
        assert labels["executor"] == "local"
        until_value(prometheus, "jupyterhub_total_users")
        wait_for(lambda: set(prometheus.targets().values()) == {"up"})
        for query in (
            'mlp_tenant_held{tenant="default",resource="cpu"}',
            'rate(mlp_node_cpu_seconds_total{mode="user"}[1m])',
            'mlp_node_memory_bytes{state="available"}',
            'mlp_node_disk_bytes{state="available"} / ignoring (state) mlp_node_disk_bytes{state="total"}',
            "histogram_quantile(0.9, sum by (le) (rate(mlp_store_commit_duration_seconds_bucket[1m])))",
            "sum by (code) (rate(mlp_http_requests_total[1m]))",
            "process_resident_memory_bytes",
            'mlp_replica_info{replica_role="standalone"}',
        ):
            until_value(prometheus, query)


def test_a_token_that_is_not_a_scrapers_is_refused_and_the_target_is_down(
    hub: LiveHub, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text(hub.token("ann"))
    refused = hub.run("token", "--user", "ann", "--scope", "read:metrics", check=False)
    assert refused.returncode != 0
    with running(tmp_path / "prometheus", scrape(hub, file)) as prometheus:
        wait_for(lambda: all("403" in health for health in prometheus.targets().values()))
        assert not prometheus.query("mlp_build_info")


def test_failures_of_a_team_become_an_alert(hub: LiveHub, tmp_path: Path) -> None:
    file, rules = tmp_path / "token", tmp_path / "rules.yml"
    token_of(hub, file)
    rules.write_text(hub.run("monitor", "rules").stdout)
    promtool("check", "rules", rules)
    found = yaml.safe_load(rules.read_text())
    wanted = {"MLPJobFailuresHigh", "MLPHubAbsent"}
    found["groups"][0]["rules"] = [one for one in found["groups"][0]["rules"] if one["alert"] in wanted]
    for rule in found["groups"][0]["rules"]:
        rule["for"] = "0s"  # what it says is tested by promtool, minute by minute
    with running(tmp_path / "prometheus", scrape(hub, file), found) as prometheus:
        before = until_value(prometheus, 'mlp_jobs_ended_total{result="failed"}')[0][1]
        names = [f"fails{number}" for number in range(10)]
        for name in names:
            hub.submit("ann", name, "raise SystemExit(3)")
        for name in names:
            hub.wait_phase("ann", name, "failed")
        until_value(prometheus, f'mlp_jobs_ended_total{{result="failed"}} >= {before + 10}')
        until_value(prometheus, 'mlp_jobs_failed_total{cause="program-error"} >= 10')
        wait_for(lambda: prometheus.alerts().get("MLPJobFailuresHigh") == "firing")
        assert "MLPHubAbsent" not in prometheus.alerts()


@pytest.mark.parametrize("what", ["rules", "scrape", "inhibitions", "alertmanager"])
def test_the_command_prints_yaml(hub: LiveHub, what: str) -> None:
    assert isinstance(yaml.safe_load(hub.run("monitor", what).stdout), dict)


def test_objects_of_the_operator_scrape_the_hub_as_the_operator_writes_them(
    hub: LiveHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = hub.run("monitor", "operator", check=False)
    assert refused.returncode == 2
    assert "is not an address that pods reach" in refused.stderr
    monkeypatch.setitem(hub.env, "MLP_PUBLIC_URL", "https://hub.example.org")
    monkeypatch.setitem(hub.env, "MLP_USERS_DOMAIN", "none")
    refused = hub.run("monitor", "operator", "--label", "release", check=False)
    assert refused.returncode == 2
    assert "is not KEY=VALUE" in refused.stderr
    printed = hub.run("monitor", "operator", "--namespace", "watch", "--label", "release=prometheus").stdout
    *configs, rule = yaml.safe_load_all(printed)
    assert [one["kind"] for one in (*configs, rule)] == ["ScrapeConfig", "ScrapeConfig", "PrometheusRule"]
    for made in (*configs, rule):
        assert made["metadata"]["namespace"] == "watch"
        assert made["metadata"]["labels"] == {"release": "prometheus"}
    for one in configs:
        spec = one["spec"]
        assert (spec["scheme"], spec["staticConfigs"]) == ("HTTPS", [{"targets": ["hub.example.org"]}])
        assert spec["authorization"]["credentials"] == {"name": "mlp-hub-metrics", "key": "token"}
    file = tmp_path / "token"  # the Secret, as the operator mounts it
    token_of(hub, file)
    written = as_the_operator_writes(configs, file, f"127.0.0.1:{hub.port}", "watch")
    with running(tmp_path / "prometheus", written, rule["spec"]) as prometheus:
        until_value(prometheus, 'mlp_build_info{job="mlp-hub"}')
        until_value(prometheus, 'jupyterhub_total_users{job="jupyterhub"}')
