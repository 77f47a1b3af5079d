"""Where the doctor connects to when it asks the public address."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from mlp_hub.cli.doctor import gateway as checks_gateway
from mlp_hub.settings import Settings
from mlp_hub.settings.origins import Origins


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_an_address_of_ipv6_is_asked_whole(monkeypatch: pytest.MonkeyPatch, scheme: str) -> None:
    called: list[tuple[str, int]] = []
    here = threading.get_ident()

    def create(address: tuple[str, int], *_: object) -> socket.socket:
        if threading.get_ident() == here:  # a client of another test may still try its address
            called.append(address)
        raise OSError("nobody")

    monkeypatch.setattr(socket, "create_connection", create)
    asked = checks_gateway.Probe(Path("none"), "token", "0" * 32, "")
    checks = checks_gateway.faults(asked, Origins(f"{scheme}://[2001:db8::5]", ""), Settings.load({}))
    assert [check.status for check in checks] == ["warn"]
    assert called == [("2001:db8::5", 443 if scheme == "https" else 80)]


def test_before_the_first_start_nothing_is_asked(tmp_path: Path) -> None:
    environ = {
        "MLP_HOME": str(tmp_path),
        "MLP_PUBLIC_URL": "https://hub.example.org/",
        "MLP_USERS_DOMAIN": "u.example.net",
    }
    (check,) = checks_gateway.gateway(Settings.load(environ))
    assert (check.status, check.found) == ("ok", "not asked: the hub does not run")
