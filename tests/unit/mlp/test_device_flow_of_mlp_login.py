"""The terminal's half of a provider's device flow, against a provider that answers as the test says."""

from __future__ import annotations

import io
import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from mlp import cli
from mlp.cli import device, login
from mlp.client import settings
from mlp.client.settings import StoredLogin
from mlp.errors import Refused, Unreachable

BEGUN = {
    "device_code": "d-code",
    "user_code": "ABCD-EFGH",
    "verification_uri": "https://sso.example/device",
    "verification_uri_complete": "https://sso.example/device?user_code=ABCD-EFGH",
    "expires_in": 600,
    "interval": 5,
}
PENDING = (400, {"error": "authorization_pending"})
DONE = (200, {"access_token": "at", "id_token": "it", "token_type": "Bearer"})


class ProviderStandIn(ThreadingHTTPServer):
    """Answers in the order given, and keeps what it was asked."""

    def __init__(self, *answers: tuple[int, Any]) -> None:
        super().__init__(("127.0.0.1", 0), _Answering)
        self.answers = list(answers)
        self.asked: list[dict[str, str]] = []

    def flow(self) -> dict[str, str]:
        url = f"http://127.0.0.1:{self.server_address[1]}/realm"
        return {
            "title": "Example",
            "client_id": "cli",
            "scope": "openid",
            "begin": f"{url}/device",
            "token": f"{url}/token",
        }


class _Answering(BaseHTTPRequestHandler):
    server: ProviderStandIn

    def do_POST(self) -> None:
        size = int(self.headers["Content-Length"])
        fields = {k: v[0] for k, v in parse_qs(self.rfile.read(size).decode()).items()}
        self.server.asked.append({"path": self.path, **fields})
        status, body = self.server.answers.pop(0)
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Time:
    """A clock that goes on while somebody sleeps, and no further."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def clock(self) -> float:
        return self.now


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def provider(request: pytest.FixtureRequest) -> Iterator[ProviderStandIn]:
    made = ProviderStandIn()
    running = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
    running.start()
    yield made
    made.shutdown()
    running.join()
    made.server_close()


def tokens(provider: ProviderStandIn, time: Time, *answers: tuple[int, Any]) -> tuple[str, str]:
    provider.answers = list(answers)
    return device.tokens(provider.flow(), opens=False, sleep=time.sleep, clock=time.clock)


def test_it_asks_until_the_person_has_typed_the_code_in(
    provider: ProviderStandIn, time: Time, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tokens(provider, time, (200, BEGUN), PENDING, PENDING, DONE) == ("at", "it")
    assert provider.asked[0] == {"path": "/realm/device", "client_id": "cli", "scope": "openid"}
    assert provider.asked[1] == {
        "path": "/realm/token",
        "client_id": "cli",
        "device_code": "d-code",
        "grant_type": "urn:ietf:params:oauth:grant-type:device_code",
    }
    assert time.slept == [5, 5, 5]
    told = capsys.readouterr().err
    assert "ABCD-EFGH" in told
    assert "https://sso.example/device\n" in told


def test_it_asks_less_often_when_it_is_told_to(provider: ProviderStandIn, time: Time) -> None:
    slower = (400, {"error": "slow_down"})
    assert tokens(provider, time, (200, BEGUN), slower, slower, PENDING, DONE) == ("at", "it")
    assert time.slept == [5, 10, 15, 15]


def test_a_provider_that_is_away_for_a_moment_is_asked_again(provider: ProviderStandIn, time: Time) -> None:
    assert tokens(provider, time, (200, BEGUN), (502, b"<html>"), DONE) == ("at", "it")
    assert time.slept == [5, 10]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((400, {"error": "access_denied"}), "refused at Example"),
        ((400, {"error": "expired_token"}), "nobody entered the code"),
        ((400, {"error": "invalid_client", "error_description": "no\x1b[2J such"}), "no\\[2J such"),
    ],
)
def test_each_end_without_a_token_is_told(
    provider: ProviderStandIn, time: Time, answer: tuple[int, Any], said: str
) -> None:
    with pytest.raises(Refused, match=said):
        tokens(provider, time, (200, BEGUN), PENDING, answer)


def test_it_does_not_ask_for_ever(provider: ProviderStandIn, time: Time) -> None:
    with pytest.raises(Refused, match="nobody entered the code"):
        tokens(provider, time, (200, {**BEGUN, "expires_in": 20}), *[PENDING] * 4)
    assert provider.answers == []


@pytest.mark.parametrize(
    "begun", [(401, {"error": "unauthorized_client"}), (200, {}), (200, {**BEGUN, "user_code": 7})]
)
def test_a_provider_that_lets_no_terminal_in_is_told(
    provider: ProviderStandIn, time: Time, begun: tuple[int, Any]
) -> None:
    with pytest.raises(Unreachable, match="does not let a terminal log in"):
        tokens(provider, time, begun)


def test_a_code_of_the_provider_needs_no_terminal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    asked: list[str] = []

    def by_device(url: str, _: object) -> StoredLogin:
        asked.append(url)
        return StoredLogin(url, "t0ken", "ann")

    monkeypatch.setattr(login, "_by_device", by_device)
    assert cli.main(["login", "--no-browser", "http://127.0.0.1:9"]) == cli.DONE
    assert asked
    (kept,) = settings.read_logins()
    assert (kept.user, kept.url) == ("ann", asked[0])
    asked.clear()
    # as from a script, where nobody would see the code
    assert cli.main(["login", "http://127.0.0.1:8"]) != cli.DONE
    assert not asked
