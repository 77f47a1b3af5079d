"""A real Alertmanager with the hub's configuration: alerts of a real Prometheus reach mail and webhook, and some inhibit others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from mlp_hub.web.docs import rendered
from support.hubs.live_hub import LiveHub
from support.monitoring.alertmanager import (
    Alertmanager,
    amtool,
    mail_server,
    needs_alertmanager,
    running_alertmanager,
    webhook,
)
from support.monitoring.prometheus import Prometheus, needs_prometheus, running, until_value
from support.monitoring.scraping import scrape, token_of
from support.waiting import wait_for

pytestmark = [needs_prometheus, needs_alertmanager]
FAILURES, ABSENT = "MLPJobFailuresHigh", "MLPHubAbsent"
USER, PASSWORD = "hub", "s3cret of the mail server"


def rules(hub: LiveHub) -> dict[str, Any]:
    """Return two of the rules, without their delay: promtool tests that, minute by minute."""
    found: dict[str, Any] = yaml.safe_load(hub.run("monitor", "rules").stdout)
    group = found["groups"][0]
    group["rules"] = [{**one, "for": "0s"} for one in group["rules"] if one["alert"] in {FAILURES, ABSENT}]
    return found


def configured(hub: LiveHub, *words: str) -> dict[str, Any]:
    """Return the configuration that the command prints, which tells at once instead of waiting for more alerts of a group."""
    found: dict[str, Any] = yaml.safe_load(hub.run("monitor", "alertmanager", *words).stdout)
    found["route"] |= {"group_wait": "0s", "group_interval": "1s"}
    return found


@pytest.fixture
def mail_settings(hub: LiveHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Let the command see a mail server that asks for a login; the hub itself runs without one."""
    secrets = tmp_path / "mail.toml"
    secrets.touch(0o600)
    secrets.write_text(f'user = "{USER}"\npassword = "{PASSWORD}"\n')
    for name, value in (
        ("MLP_MAIL_FROM", "MLP Hub <hub@example.org>"),
        ("MLP_MAIL_SECURITY", "none"),
        ("MLP_MAIL_SECRETS", str(secrets)),
    ):
        monkeypatch.setitem(hub.env, name, value)
    return monkeypatch


def told(of: list[dict[str, Any]], name: str, status: str) -> list[dict[str, Any]]:
    """Return the alerts of a name that came in a status."""
    return [one for one in of if one["labels"]["alertname"] == name and one["status"] == status]


def fail_jobs(hub: LiveHub, prometheus: Prometheus, prefix: str) -> None:
    """Let ten jobs fail, once Prometheus knows the count before them."""
    until_value(prometheus, 'mlp_jobs_ended_total{result="failed"}')
    names = [f"{prefix}{number}" for number in range(10)]
    for name in names:
        hub.submit("ann", name, "raise SystemExit(3)")
    for name in names:
        hub.wait_phase("ann", name, "failed")


def test_an_alert_reaches_mail_and_webhook_and_a_hub_that_is_down_inhibits_it(
    hub: LiveHub, tmp_path: Path, mail_settings: pytest.MonkeyPatch
) -> None:
    token, password = tmp_path / "token", tmp_path / "password"
    token_of(hub, token)
    password.write_text(PASSWORD)
    with mail_server(USER, PASSWORD) as (port, letters), webhook() as (url, alerts):
        mail_settings.setitem(hub.env, "MLP_MAIL_SERVER", f"127.0.0.1:{port}")
        words = ("--mail-to", "ops@example.org", "--mail-to", "night@example.org", "--webhook", url)
        config = configured(hub, *words, "--mail-password-file", str(password))
        assert PASSWORD not in yaml.safe_dump(config)
        with (
            running_alertmanager(tmp_path / "alertmanager", config) as alertmanager,
            running(
                tmp_path / "prometheus", scrape(hub, token) | sends_to(alertmanager), rules(hub)
            ) as prometheus,
        ):
            fail_jobs(hub, prometheus, "unlucky")
            wait_for(lambda: told(alerts, FAILURES, "firing"), message="for the webhook")
            wait_for(lambda: letters, message="for the mail")
            (got, *_), letter = told(alerts, FAILURES, "firing"), letters[0]
            assert got["labels"]["severity"] == "warning"
            assert "% of the jobs that ended within an hour failed" in got["annotations"]["description"]
            assert letter["To"] == "ops@example.org, night@example.org"
            assert letter["From"] == "MLP Hub <hub@example.org>"
            assert letter["Subject"] == f"[FIRING] {FAILURES} Many jobs fail"
            runbook = got["annotations"]["runbook_url"]
            for kind in ("plain", "html"):
                body = letter.get_body((kind,))
                assert body is not None
                assert runbook in body.get_content()
            page, _, place = runbook.removeprefix(f"{hub.url}/services/mlp/docs/").partition("#")
            assert f'id="{place}"' in (rendered(page, "en") or "")

            hub.down()
            try:
                wait_for(
                    lambda: told(alerts, ABSENT, "firing"), message="for the alert of a hub that is down"
                )
                found = wait_for(lambda: inhibited(alertmanager, FAILURES), message="for the inhibition")
                assert found == [alertmanager.alerts()[ABSENT]["fingerprint"]]
                assert prometheus.alerts()[FAILURES] == "firing"  # it still holds, and nobody is told
                assert alertmanager.alerts()[ABSENT]["status"]["state"] == "active"
            finally:
                hub.up()
            wait_for(lambda: told(alerts, ABSENT, "resolved"), message="for the hub to be back")
            wait_for(lambda: not inhibited(alertmanager, FAILURES))


def test_the_hub_does_not_mind_when_those_who_watch_it_end(hub: LiveHub, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token_of(hub, token)
    with webhook() as (url, alerts):
        with running_alertmanager(tmp_path / "alertmanager", configured(hub, "--webhook", url)) as first:
            where = first.address
        with running(
            tmp_path / "prometheus",
            scrape(hub, token)
            | {"alerting": {"alertmanagers": [{"static_configs": [{"targets": [where]}]}]}},
            rules(hub),
        ) as prometheus:
            fail_jobs(hub, prometheus, "unheard")
            wait_for(lambda: prometheus.alerts().get(FAILURES) == "firing")
            until_value(prometheus, "mlp_build_info")
            assert not alerts  # its Alertmanager has ended
    before = hub.pids()
    hub.submit("ann", "unwatched", "print('done')")
    hub.wait_phase("ann", "unwatched", "finished")
    assert hub.pids() == before
    assert hub.ok("GET", "/health")["status"] == "ok"


def test_the_printed_configuration_routes_by_severity(hub: LiveHub, tmp_path: Path) -> None:
    file = tmp_path / "alertmanager.yml"
    file.write_text(hub.run("monitor", "alertmanager", "--webhook", "https://chat.example.org/hook").stdout)
    amtool("check-config", file)

    def route(**labels: str) -> str:
        words = [f"{name}={value}" for name, value in labels.items()]
        return amtool("config", "routes", "test", f"--config.file={file}", *words).strip()

    assert route(alertname="MLPNodeLost", severity="critical") == "mlp-hub"
    assert route(alertname=FAILURES, severity="warning") == "mlp-hub"
    assert route(alertname="MLPGpuIdle", severity="info") == "mlp-hub-quiet"


def sends_to(alertmanager: Alertmanager) -> dict[str, Any]:
    """Return the part of Prometheus's configuration that sends alerts there."""
    return {"alerting": {"alertmanagers": [{"static_configs": [{"targets": [alertmanager.address]}]}]}}


def inhibited(alertmanager: Alertmanager, name: str) -> list[str]:
    """Return the alerts that inhibit one."""
    found = alertmanager.alerts().get(name)
    return [] if found is None else list(found["status"]["inhibitedBy"])
