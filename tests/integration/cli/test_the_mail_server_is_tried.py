"""A mail server that cannot be used is named with what to set, without a mail: for the doctor and for `make watch`."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlp_hub.cli.doctor.checks import FAIL, OK
from mlp_hub.cli.doctor.mail import mail
from mlp_hub.cli.mail_server import mail_trouble
from mlp_hub.outbound import mail as outbound
from mlp_hub.settings import Settings
from support.monitoring.alertmanager import mail_server
from support.ports import free_port


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    path = tmp_path / "mail.toml"
    path.write_text('user = "hub"\npassword = "right"\n')
    path.chmod(0o600)
    return path


def settings(tmp_path: Path, port: int, **more: object) -> Settings:
    given = {f"MLP_MAIL_{name.upper()}": str(value) for name, value in more.items()}
    place = {"MLP_MAIL_SERVER": f"127.0.0.1:{port}", "MLP_MAIL_FROM": "hub@example.org"}
    return Settings.load({"MLP_HOME": str(tmp_path / "home"), **place, **given})


def remedy(found: Settings) -> str:
    trouble = mail_trouble(found)
    assert trouble is not None
    return trouble[1]


def test_a_server_without_starttls_says_what_to_set_and_gets_no_mail(tmp_path: Path, secrets: Path) -> None:
    with mail_server("hub", "right") as (port, letters):
        (check,) = mail(settings(tmp_path, port))
        assert (check.status, "MLP_MAIL_SECURITY=none" in check.remedy) == (FAIL, True)
        (check,) = mail(settings(tmp_path, port, security="none"))
        assert check.status == OK
        assert mail_trouble(settings(tmp_path, port, security="none", secrets=secrets)) is None
        secrets.write_text('user = "hub"\npassword = "wrong"\n')
        assert "MLP_MAIL_SECRETS" in remedy(settings(tmp_path, port, security="none", secrets=secrets))
        assert "MLP_MAIL_SECURITY=starttls" in remedy(settings(tmp_path, port, security="tls"))
    assert letters == []


def test_a_server_that_is_away_is_named(tmp_path: Path) -> None:
    assert "Check MLP_MAIL_SERVER" in remedy(settings(tmp_path, free_port()))


@pytest.fixture
def silent() -> Iterator[int]:
    """A port that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        held: list[socket.socket] = []
        thread = threading.Thread(target=lambda: held.append(server.accept()[0]))
        thread.start()
        yield server.getsockname()[1]
        thread.join()
        held[0].close()


def test_a_server_that_hangs_is_given_up(
    tmp_path: Path, silent: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbound, "SILENT_S", 0.2)
    trouble = mail_trouble(settings(tmp_path, silent))
    assert trouble is not None
    assert "timed out" in trouble[0]
