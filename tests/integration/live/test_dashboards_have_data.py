"""Each query of each dashboard gives data: a real Prometheus runs it, after a small load on a real hub."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
import yaml

from mlp_hub.service.monitoring.dashboards.grafana import grafana_json
from mlp_hub.service.monitoring.dashboards.table import DASHBOARDS
from support.hubs.live_hub import LiveHub, live_hub
from support.hubs.notebooks import start_notebook, stop_notebook
from support.monitoring.alertmanager import webhook
from support.monitoring.prometheus import Prometheus, needs_prometheus, running, until_value
from support.monitoring.scraping import scrape, token_of
from support.waiting import wait_for

pytestmark = needs_prometheus

EMPTY_HERE = {
    "GPUs held": "this machine has no GPU",
    "GPUs busy": "this machine has no GPU",
    "GPU memory used": "this machine has no GPU",
    "GPU temperature": "this machine has no GPU",
    "GPU power": "this machine has no GPU",
    "GPUs held and idle": "this machine has no GPU",
    "Problems": "all parts of the hub work",
    "Time until the certificate ends": "the hub does not speak TLS",
    "Messages that wait in Kafka": "metric points do not go through Kafka",
    "Requests to the cluster's API": "the hub runs jobs on its own machine",
    "Exported traces by result, per hour": "no collector of traces is set",
    "Exported metric points by exporter and result, per hour": "no exporter is set",
    "Metric points that wait for export": "no exporter is set",
    "Failed requests of exporters, per hour": "no exporter is set",
}
"""Panels whose queries are only parsed here, and why they have no data."""
CHOSEN = {"$__rate_interval": "5m", "$job": ".+", "$tenant": ".+", "$node": ".+"}
ASKS = {"cpu": 0.25, "ram": 128}
LONG = "import time; time.sleep(3600)"
REPORTS = "import mlp, time\nfor n in range(100000):\n    mlp.report(loss=1 / (n + 1))\n    time.sleep(0.5)\n"
SERVES = "python3 -m http.server $PORT --bind 127.0.0.1"


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveHub]:
    """Run a hub of its own: it takes a node out of service, shows the sizes of homes, ships its audit log, and has a backup."""
    root: Path = tmp_path_factory.mktemp("hub")
    home = root / "home"
    environ = {"MLP_METRICS_PEOPLE": "10", "MLP_NOTICE_PRIVATE": "127.0.0.1", "MLP_CHARGE_FILES": "1"}
    environ["MLP_AUDIT_SHIP_FILE"] = str(root / "audit.jsonl")
    with live_hub(home, **environ) as hub:
        for user in ("ann", "bob"):
            hub.add_user(user)
        hub.run("backup", "--without-files", str(home.parent / "backup.tar"))
        yield hub


def queries() -> dict[str, str]:
    """Return all queries as Grafana would send them, by dashboard, panel and letter."""
    found = {}
    for dashboard in DASHBOARDS:
        for panel in grafana_json(dashboard)["panels"]:
            for target in panel.get("targets", ()):
                text = target["expr"]
                for name, value in CHOSEN.items():
                    text = text.replace(name, value)
                found[f"{dashboard.name}: {panel['title']}: {target['refId']}"] = text
    return found


def has_data(prometheus: Prometheus, query: str) -> bool:
    """Tell whether a query gives numbers; raise `HTTPError` where it is none."""
    return any(not math.isnan(value) for _, value in prometheus.query(query))


class Load:
    """A small load on a hub: teams, jobs that end, fail, wait, borrow and are stopped, an app, a notebook."""

    def __init__(self, hub: LiveHub, hook: str) -> None:
        self._hub = hub
        for team, user in (("warm", "ann"), ("cold", "bob")):
            body = {"name": team, "cpu": 0.5, "gpu": 0, "ram": 1024, "rom": 2**31, "cohort": "seasons"}
            hub.ok("POST", "/tenants", body=body)
            hub.ok("PUT", f"/tenants/{team}/members/{user}", body={"role": "member"})
        hub.ok("POST", "/tenants", body={"name": "plenty", "ram": 4096})
        hub.ok("PUT", "/tenants/plenty/members/ann", body={"role": "member"})
        channel = {"name": "hook", "address": hook, "events": ["failed"]}
        hub.ok("PUT", "/users/ann/notifications", "ann", {"channels": [channel]})

    def begin(self) -> None:
        """Start what goes on."""
        hub = self._hub
        hub.submit("ann", "reports", REPORTS, tenant="plenty", **ASKS)
        body = {"name": "site", "model_name": "", "command": SERVES, "tenant": "plenty", **ASKS}
        hub.ok("POST", "/users/ann/apps", "ann", body)
        self._key = hub.ok("POST", "/users/ann/apps/site/keys", "ann", {"name": "load"})["key"]
        for number in range(2):
            hub.submit("ann", f"fails{number}", "raise SystemExit(3)", tenant="plenty", **ASKS)
            hub.wait_phase("ann", f"fails{number}", "failed")
        hub.submit("ann", "retried", "raise SystemExit(3)", tenant="plenty", retries=1, **ASKS)
        for name in ("own", "owns-too", "guest"):
            hub.submit("ann", name, LONG, tenant="warm", **ASKS)
            hub.wait_phase("ann", name, "running")
        start_notebook(hub, "bob")
        hub.wait_phase("ann", "reports", "running")
        wait_for(lambda: self.visit() == 200, message="for the app")

    def visit(self) -> int:
        """Send the app a request."""
        headers = {"Authorization": f"Bearer {self._key}"}
        answer: httpx.Response = self._hub.http.get("/services/mlp/apps/ann/site/", headers=headers)
        return answer.status_code

    def take_back(self) -> None:
        """Let a team take back its quota, so that a job of the other is stopped and waits; and leave one above its limit."""
        hub = self._hub
        stop_notebook(hub, "bob")
        for name in ("claim", "claims-too"):
            hub.submit("bob", name, LONG, tenant="cold", **ASKS)
            hub.wait_phase("bob", name, "running")
        hub.ok("PUT", "/tenants/warm", body={"cpu": 0.25, "ram": 1024, "rom": 2**31, "cohort": "seasons"})
        (node,) = hub.ok("GET", "/nodes")
        hub.run("node", "drain", node["name"], "--reason", "a test")


def test_each_query_gives_data_after_a_small_load(hub: LiveHub, tmp_path: Path) -> None:
    token, rules = tmp_path / "token", yaml.safe_load(hub.run("monitor", "rules").stdout)
    token_of(hub, token)
    for rule in rules["groups"][0]["rules"]:
        rule["for"] = "0s"
    titles = {name.split(": ")[1] for name in queries()}
    assert set(EMPTY_HERE) <= titles
    waiting = {name: text for name, text in queries().items() if name.split(": ")[1] not in EMPTY_HERE}
    assert len(waiting) > 100

    def look() -> bool:
        for name, text in list(waiting.items()):
            if has_data(prometheus, text):
                del waiting[name]
        return not waiting

    with ExitStack() as stack:
        hook, _ = stack.enter_context(webhook())
        load = Load(hub, hook)
        prometheus = stack.enter_context(running(tmp_path / "prometheus", scrape(hub, token), rules))
        until_value(prometheus, "mlp_build_info")
        load.begin()
        until_value(prometheus, "mlp_tenant_borrowed and on (resource) mlp_tenant_lent")
        look()
        load.take_back()

        def visited_and_looked() -> bool:
            load.visit()
            return look()

        try:
            wait_for(visited_and_looked, every=0.5)
        except AssertionError as error:
            queries_left = "\n".join(f"{name}: {text}" for name, text in waiting.items())
            raise AssertionError(
                f"no data; extend `Load`, or give the reason in EMPTY_HERE:\n{queries_left}"
            ) from error
        for name, text in queries().items():
            if name.split(": ")[1] in EMPTY_HERE:
                prometheus.query(text)  # raises where it does not parse
        for dashboard in DASHBOARDS:
            for variable in grafana_json(dashboard)["templating"]["list"][1:]:
                metric, label = variable["query"]["query"][len("label_values(") : -1].rsplit(", ", 1)
                found = prometheus.query(metric.replace("$job", ".+"))
                assert all(labels[label] for labels, _ in found)
                assert found
