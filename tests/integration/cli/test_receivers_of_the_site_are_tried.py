"""The doctor tries the receivers of the audit log and of metric points, sends them nothing, and says what to do for each fault."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from mlp_hub.app import audit_of
from mlp_hub.cli.doctor.checks import FAIL, OK, WARN
from mlp_hub.cli.doctor.site_receivers import audit_receivers, exporters
from mlp_hub.cli.lifecycle.up import up
from mlp_hub.settings import Settings, SettingsError
from support.certificates import certificate
from support.monitoring.receivers import Receiver
from support.monitoring.syslog_server import SyslogServer
from support.ports import free_port


def settings(tmp_path: Path, **given: object) -> Settings:
    return Settings.load({"MLP_HOME": str(tmp_path / "home"), **{k: str(v) for k, v in given.items()}})


@pytest.fixture
def servers() -> Iterator[list[SyslogServer]]:
    made: list[SyslogServer] = []
    yield made
    for one in made:
        one.kill()


def test_without_receivers_nothing_is_said(tmp_path: Path) -> None:
    assert audit_receivers(settings(tmp_path)) == exporters(settings(tmp_path)) == []


@pytest.mark.parametrize("transport", ["tcp", "tls", "udp", "unix", "unix-stream"])
def test_a_syslog_is_reached_over_each_transport_and_gets_no_entry(
    tmp_path: Path, servers: list[SyslogServer], transport: str
) -> None:
    path = certificate(tmp_path, "127.0.0.1") if transport == "tls" else None
    place = str(tmp_path / "log.sock") if transport.startswith("unix") else "0"
    server = SyslogServer(transport, tmp_path / "received", place, path)
    servers.append(server)
    at = server.place if transport.startswith("unix") else f"{transport}://127.0.0.1:{server.place}"
    more = {"MLP_AUDIT_SHIP_CA": path} if path else {}
    (check,) = audit_receivers(settings(tmp_path, MLP_AUDIT_SHIP_SYSLOG=at, **more))
    assert check.status == (WARN if transport == "udp" else OK)
    assert at in check.found
    server.kill()
    servers.clear()
    assert server.messages == []
    if transport != "udp":
        (check,) = audit_receivers(settings(tmp_path, MLP_AUDIT_SHIP_SYSLOG=at, **more))
        assert check.status == FAIL
        assert "MLP_AUDIT_SHIP_SYSLOG" in check.remedy


def test_a_syslog_with_a_certificate_of_somebody_else_names_the_setting(
    tmp_path: Path, servers: list[SyslogServer]
) -> None:
    (tmp_path / "other").mkdir()
    server = SyslogServer("tls", tmp_path / "got", certificate=certificate(tmp_path / "other", "127.0.0.1"))
    servers.append(server)
    given = {"MLP_AUDIT_SHIP_SYSLOG": f"tls://127.0.0.1:{server.place}"}
    for more in ({}, {"MLP_AUDIT_SHIP_CA": certificate(tmp_path, "127.0.0.1")}):
        (check,) = audit_receivers(settings(tmp_path, **given, **more))
        assert check.status == FAIL
        assert "MLP_AUDIT_SHIP_CA" in check.remedy


def test_a_missing_file_of_authorities_is_a_finding_and_no_crash(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as open_port:
        at = f"tls://127.0.0.1:{open_port.getsockname()[1]}"
        found = settings(tmp_path, MLP_AUDIT_SHIP_SYSLOG=at, MLP_AUDIT_SHIP_CA=tmp_path / "none.pem")
        (check,) = audit_receivers(found)
    assert check.status == FAIL


def test_the_file_of_entries_is_opened_and_neither_made_nor_changed(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    found = settings(tmp_path, MLP_AUDIT_SHIP_FILE=path)
    (check,) = audit_receivers(found)
    assert (check.status, path.exists()) == (OK, False)
    path.write_bytes(b'{"torn": ')
    (check,) = audit_receivers(found)
    assert (check.status, path.read_bytes()) == (OK, b'{"torn": ')


@pytest.mark.parametrize("kind", ["directory", "link", "dangling", "pipe", "nowhere", "below a file"])
def test_a_file_that_cannot_be_appended_to_says_what_to_do(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "audit.jsonl"
    if kind == "directory":
        path.mkdir()
    elif kind == "link":
        (tmp_path / "else").write_text("")
        path.symlink_to(tmp_path / "else")
    elif kind == "dangling":
        path.symlink_to(tmp_path / "else")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "nowhere":
        path = tmp_path / "none" / "audit.jsonl"
    else:
        (tmp_path / "file").write_text("")
        path = tmp_path / "file" / "audit.jsonl"
    (check,) = audit_receivers(settings(tmp_path, MLP_AUDIT_SHIP_FILE=path))
    assert check.status == FAIL
    assert "MLP_AUDIT_SHIP_FILE" in check.remedy


def otlp(tmp_path: Path, url: str, **more: object) -> Settings:
    return settings(tmp_path, MLP_METRICS_OTLP_ENDPOINT=url, **more)


def test_a_receiver_of_points_is_asked_without_a_point_and_its_answer_is_named(tmp_path: Path) -> None:
    with Receiver() as receiver:
        (check,) = exporters(otlp(tmp_path, receiver.url))
        assert check.status == OK
        assert [len(request.resource_metrics) for request in receiver.requests] == [0]
        for status, setting in (
            (401, "MLP_METRICS_OTLP_SECRETS"),
            (404, "MLP_METRICS_OTLP_ENDPOINT"),
            (415, "MLP_METRICS_OTLP_COMPRESSION"),
            (302, "MLP_METRICS_OTLP_ENDPOINT"),
        ):
            receiver.statuses = [status]
            (check,) = exporters(otlp(tmp_path, receiver.url, MLP_METRICS_OTLP_COMPRESSION="gzip"))
            assert (check.status, setting in check.remedy, str(status) in check.found) == (FAIL, True, True)
        receiver.shutdown()


def test_a_target_that_is_away_or_shows_a_certificate_of_somebody_else_is_named(tmp_path: Path) -> None:
    away = f"http://127.0.0.1:{free_port()}"
    (check,) = exporters(settings(tmp_path, MLP_METRICS_MLFLOW_URL=away))
    assert check.status == FAIL
    assert "MLP_METRICS_MLFLOW_URL" in check.remedy
    assert "refused" in check.found
    ca = certificate(tmp_path, "127.0.0.1")
    with Receiver(certificate=ca) as receiver:
        (check,) = exporters(otlp(tmp_path, receiver.url))
        assert (check.status, "MLP_METRICS_OTLP_CA" in check.remedy) == (FAIL, True)
        assert not receiver.tried
        (check,) = exporters(otlp(tmp_path, receiver.url, MLP_METRICS_OTLP_CA=ca))
        assert check.status == OK
        receiver.shutdown()


class Metrics(BaseHTTPRequestHandler):
    """Alertmanager's metrics for who has the token, and another page at another path."""

    def do_GET(self) -> None:
        known = self.headers.get("Authorization") == "Bearer t0p-secret"
        self.send_response(200 if known else 401)
        self.end_headers()
        if self.path == "/metrics":
            self.wfile.write(b'alertmanager_notifications_failed_total{integration="email"} 3\n')

    def log_message(self, *args: object) -> None:
        """Print nothing."""


def test_alertmanager_is_asked_with_its_token_and_another_program_is_none(tmp_path: Path) -> None:
    secrets = tmp_path / "secrets.toml"
    secrets.write_text('token = "t0p-secret"')
    secrets.chmod(0o600)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Metrics)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_port}"
        (check,) = exporters(settings(tmp_path, MLP_ALERTMANAGER_URL=url, MLP_ALERTMANAGER_SECRETS=secrets))
        assert check.status == OK
        (check,) = exporters(settings(tmp_path, MLP_ALERTMANAGER_URL=url))
        assert (check.status, "401" in check.found) == (FAIL, True)
        wrong = {"MLP_ALERTMANAGER_URL": f"{url}/other", "MLP_ALERTMANAGER_SECRETS": secrets}
        (check,) = exporters(settings(tmp_path, **wrong))
        assert check.status == FAIL
    finally:
        server.shutdown()
        server.server_close()
    (check,) = exporters(settings(tmp_path, MLP_ALERTMANAGER_URL=url))
    assert (check.status, "MLP_ALERTMANAGER_URL" in check.remedy) == (FAIL, True)


def test_the_token_of_a_target_is_in_no_finding(tmp_path: Path) -> None:
    secrets = tmp_path / "secrets.toml"
    secrets.write_text('token = "t0p-secret"')
    secrets.chmod(0o600)
    with Receiver() as receiver:
        receiver.statuses = [401]
        found = exporters(otlp(tmp_path, receiver.url, MLP_METRICS_OTLP_SECRETS=secrets))
        receiver.shutdown()
    assert "t0p-secret" not in repr(found)


PRIVATE = "this address is private; give a public one, or ask the hub's operator to allow its host in MLP_NOTICE_PRIVATE"
HEADS = (
    "http://127.0.0.1:9/secret",
    "http://10.1.2.3/secret",
    "http://169.254.169.254/secret",
    "https://[::1]:8443/secret",
    "https://[::ffff:10.1.2.3]/secret",
    "http://localhost:9/secret",
)


@pytest.mark.parametrize("address", HEADS)
def test_a_private_receiver_of_heads_is_refused_in_the_words_of_peoples_webhooks(
    tmp_path: Path, address: str
) -> None:
    given = settings(tmp_path, MLP_AUDIT_WEBHOOK=address)
    (check,) = audit_receivers(given)
    assert check.status == FAIL
    assert PRIVATE in check.found
    assert "secret" not in check.found, "the path of a webhook is often its password"
    with pytest.raises(SettingsError, match="allow its host in MLP_NOTICE_PRIVATE"):
        up(given, {})
    assert not (tmp_path / "home").exists(), "nothing is made or started"


@pytest.mark.parametrize("address", HEADS)
def test_a_service_refuses_a_private_number_and_asks_for_no_name(tmp_path: Path, address: str) -> None:
    given = settings(tmp_path, MLP_AUDIT_WEBHOOK=address)
    if "localhost" in address:
        assert audit_of(given).heads_webhook == address, (
            "each request checks it, so a name cannot stop a restart"
        )
    else:
        with pytest.raises(SettingsError, match="this address is private"):
            audit_of(given)


@pytest.mark.parametrize(
    ("address", "allowed"),
    [
        ("http://127.0.0.1:9/heads", "127.0.0.1"),
        ("http://127.0.0.1:9/heads", "127.0.0.1:9"),
        ("http://localhost:9/heads", "LOCALHOST:9"),
        ("https://[::1]:8443/heads", "[::1]:8443"),
        ("https://93.184.216.34/heads", ""),
        ("https://nobody.invalid/heads", ""),  # it may have an address later
    ],
)
def test_a_public_or_named_receiver_of_heads_is_taken(tmp_path: Path, address: str, allowed: str) -> None:
    given = settings(tmp_path, MLP_AUDIT_WEBHOOK=address, MLP_NOTICE_PRIVATE=allowed)
    (check,) = audit_receivers(given)
    assert check.status == OK, check.found
    assert audit_of(given).heads_webhook == address


def test_a_host_that_is_named_with_another_port_is_refused(tmp_path: Path) -> None:
    (check,) = audit_receivers(
        settings(
            tmp_path, MLP_AUDIT_WEBHOOK="http://127.0.0.1:9/h", MLP_NOTICE_PRIVATE="127.0.0.1:10,localhost"
        )
    )
    assert check.status == FAIL
