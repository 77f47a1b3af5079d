"""Alertmanager's configuration: what it says of mail, webhooks and severities, and what it never says."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from mlp_hub.cli.commands import monitor
from mlp_hub.cli.commands.monitor_start import scrape_of
from mlp_hub.cli.errors import UsageFailure
from mlp_hub.service.monitoring.alert_delivery import MailRoute, alertmanager_config
from mlp_hub.service.monitoring.rule_files import inhibitions
from mlp_hub.settings import Settings
from support.monitoring.alertmanager import amtool, needs_alertmanager

MAIL = MailRoute(("ops@example.org",), "mail.example.org", 587, "hub@example.org", starttls=True)


def settings(tmp_path: Path, **environ: str) -> Settings:
    return Settings.load({"MLP_HOME": str(tmp_path), "PATH": "/usr/bin", **environ})


def mail(tmp_path: Path, **environ: str) -> dict[str, str]:
    return {"MLP_MAIL_SERVER": "mail.example.org:587", "MLP_MAIL_FROM": "hub@example.org", **environ}


@needs_alertmanager
@pytest.mark.parametrize("route", [None, MAIL, MailRoute(("a@b.c",), "::1", 25, "d@e.f", starttls=False)])
@pytest.mark.parametrize("webhooks", [(), ("http://127.0.0.1:1/a", "https://chat.example.org/b?c=d")])
def test_alertmanager_takes_it_whoever_is_told(
    tmp_path: Path, route: MailRoute | None, webhooks: tuple[str, ...]
) -> None:
    made = alertmanager_config(route, webhooks)
    file = tmp_path / "alertmanager.yml"
    file.write_text(yaml.safe_dump(made))
    amtool("check-config", file)
    assert made["inhibit_rules"] == inhibitions()["inhibit_rules"]
    told, quiet = made["receivers"]
    assert set(quiet) == {"name"}
    assert ("email_configs" in told) is (route is not None)
    assert len(told.get("webhook_configs", ())) == len(webhooks)


def test_a_login_is_a_name_and_a_file_and_never_the_password(tmp_path: Path) -> None:
    secrets = tmp_path / "mail.toml"
    secrets.touch(0o600)
    secrets.write_text('user = "hub"\npassword = "swordfish"\n')
    found = settings(tmp_path, **mail(tmp_path), MLP_MAIL_SECRETS=str(secrets))
    made = monitor.alertmanager_of(found, ["ops@example.org"], [], "/etc/p")
    assert made["global"]["smtp_auth_username"] == "hub"
    assert made["global"]["smtp_auth_password_file"] == "/etc/p"
    assert "swordfish" not in yaml.safe_dump(made)


@pytest.mark.parametrize(
    ("security", "server", "require"),
    [
        ("starttls", "mail.example.org:587", True),
        ("none", "mail.example.org:25", False),
        ("tls", "mail.example.org:465", False),
    ],
)
def test_the_way_to_the_mail_server_is_that_of_the_settings(
    tmp_path: Path, security: str, server: str, require: bool
) -> None:
    environ = mail(tmp_path, MLP_MAIL_SERVER=server, MLP_MAIL_SECURITY=security)
    made = monitor.alertmanager_of(settings(tmp_path, **environ), ["ops@example.org"], [], "/etc/p")
    assert made["global"]["smtp_smarthost"] == server
    assert made["global"]["smtp_require_tls"] is require


@pytest.mark.parametrize(("security", "port"), [("tls", 2465), ("starttls", 465), ("none", 465)])
def test_a_way_that_alertmanager_does_not_know_is_refused(tmp_path: Path, security: str, port: int) -> None:
    environ = mail(tmp_path, MLP_MAIL_SERVER=f"mail.example.org:{port}", MLP_MAIL_SECURITY=security)
    with pytest.raises(UsageFailure, match=f"is at port {port}, with {security}"):
        monitor.alertmanager_of(settings(tmp_path, **environ), ["ops@example.org"], [], "/etc/p")


def test_beside_a_hub_the_public_port_is_scraped_or_each_replicas_own(tmp_path: Path) -> None:
    plain = scrape_of(settings(tmp_path, MLP_PORT="8100", MLP_BIND="::"), Path("/t"))
    ours, hubs = plain["scrape_configs"]
    assert ours["static_configs"] == hubs["static_configs"] == [{"targets": ["[::1]:8100"]}]
    assert ours["metrics_path"] == "/services/mlp/api/v1/metrics"
    both = scrape_of(
        settings(
            tmp_path,
            MLP_PORT="8100",
            MLP_METRICS_LISTEN="9400",
            MLP_REPLICAS="2",
            MLP_DATABASE_URL="postgresql+psycopg://h/d",
        ),
        Path("/t"),
    )
    ours, hubs = both["scrape_configs"]
    assert ours["static_configs"] == [{"targets": ["127.0.0.1:9400", "127.0.0.1:9401"]}]
    assert (ours["scheme"], ours["metrics_path"]) == ("http", "/metrics")
    assert hubs["static_configs"] == [{"targets": ["127.0.0.1:8100"]}]


def test_a_port_with_tls_is_scraped_by_tls_and_needs_no_name(tmp_path: Path) -> None:
    pair = {"MLP_TLS_CERT": str(tmp_path / "cert.pem"), "MLP_TLS_KEY": str(tmp_path / "key.pem")}
    made = scrape_of(settings(tmp_path, MLP_PORT="8443", **pair), Path("/t"))
    for job in made["scrape_configs"]:
        assert (job["scheme"], job["tls_config"]) == ("https", {"insecure_skip_verify": True})
