"""What `mlp login` keeps of each hub, and the port that a browser brings the code to."""

from __future__ import annotations

import json
import stat
import threading
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlencode

import pytest

from mlp.cli import browser
from mlp.client import settings
from mlp.client.settings import StoredLogin
from mlp.errors import Unauthorized, UsageError
from mlp.grammar.parsing import parse
from mlp.grammar.verbs import COMMAND

A, B = "http://a:8000/services/mlp/api/v1", "https://b/services/mlp/api/v1"


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path)}


def test_the_hub_that_was_logged_in_to_last_is_the_current_one(env: dict[str, str]) -> None:
    settings.write_login(StoredLogin(A, "t-a", "ann", 2e9), env)
    settings.write_login(StoredLogin(B, "t-b", "ann"), env)
    assert settings.load(env) == settings.ClientSettings(B, "t-b", "ann")
    settings.write_login(StoredLogin(A, "t-a2", "ann", 2e9), env)
    assert settings.load(env) == settings.ClientSettings(A, "t-a2", "ann", 2e9)
    assert [login.url for login in settings.read_logins(env)] == [A, B]


def test_each_hub_gets_its_own_token(env: dict[str, str]) -> None:
    settings.write_login(StoredLogin(A, "t-a", "ann"), env)
    settings.write_login(StoredLogin(B, "t-b", "bea"), env)
    assert settings.load({**env, "MLP_API_URL": A}) == settings.ClientSettings(A, "t-a", "ann")
    with pytest.raises(Unauthorized):
        settings.load({**env, "MLP_API_URL": "http://c/api/v1"})


def test_a_token_of_the_environment_goes_before_a_stored_one(env: dict[str, str]) -> None:
    settings.write_login(StoredLogin(A, "t-a", "ann", 2e9), env)
    found = settings.load({**env, "MLP_TOKEN": "given"})
    assert (found.token, found.user, found.expires) == ("given", None, 0.0)


def test_a_logout_leaves_the_logins_at_other_hubs(env: dict[str, str]) -> None:
    settings.write_login(StoredLogin(A, "t-a", "ann"), env)
    settings.write_login(StoredLogin(B, "t-b", "ann"), env)
    settings.drop_login(B, env)
    assert [login.url for login in settings.read_logins(env)] == [A]
    settings.drop_login(A, env)
    assert settings.read_login("", env) is None
    assert stat.S_IMODE(settings.login_file(env).stat().st_mode) == 0o600


def test_a_login_of_an_earlier_version_is_read(env: dict[str, str]) -> None:
    path = settings.login_file(env)
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"url": A, "token": "t", "user": "ann"}))
    assert settings.load(env) == settings.ClientSettings(A, "t", "ann")
    settings.write_login(StoredLogin(B, "t-b", "ann"), env)
    assert [login.url for login in settings.read_logins(env)] == [B, A]


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"hubs": []}', '{"hubs": {"x": 1}}', '{"url": 1, "token": "t"}']
)
def test_a_broken_file_counts_as_not_being_there(env: dict[str, str], text: str) -> None:
    path = settings.login_file(env)
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert settings.read_logins(env) == []


def test_where_the_pages_of_a_hub_are() -> None:
    assert settings.hub_of(settings.normalise_url("hub.example")) == "http://hub.example/hub"
    assert settings.hub_of(settings.normalise_url("https://h/base/")) == "https://h/base/hub"
    assert settings.hub_of("http://h/api/v1") == "http://h/hub"


def test_the_hubs_address_is_enough_for_a_program_too(env: dict[str, str]) -> None:
    given = {**env, "MLP_TOKEN": "t", "MLP_API_URL": "https://hub.example/"}
    assert settings.load(given).url == "https://hub.example/services/mlp/api/v1"
    socket = "http+unix://%2Frun%2Fmlp.sock/x"
    assert settings.load({**given, "MLP_API_URL": socket}).url == socket


def ask(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url) as answer:  # noqa: S310 - our own port
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_a_code_with_a_foreign_state_is_not_accepted() -> None:
    with browser.CodeListener() as listener:
        assert listener.url.startswith("http://127.0.0.1:")
        found: list[str] = []
        waiting = threading.Thread(target=lambda: found.append(listener.code()))
        waiting.start()
        for state in ("", "x" * 43, listener.state[:-1], "é"):
            assert ask(f"{listener.url}?{urlencode({'code': 'theirs', 'state': state})}")[0] == 400
        assert ask(f"{listener.url}favicon.ico")[0] == 400
        assert ask(f"{listener.url}?{urlencode({'state': listener.state})}")[0] == 400
        status, text = ask(f"{listener.url}?{urlencode({'code': 'ours', 'state': listener.state})}")
        waiting.join()
    assert (status, found) == (200, ["ours"])
    assert "can close this window" in text


def test_two_simultaneous_logins_have_separate_ports_and_states() -> None:
    with browser.CodeListener() as one, browser.CodeListener() as other:
        assert one.url != other.url
        assert one.state != other.state


def test_no_browser_is_looked_for_over_ssh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BROWSER", raising=False)
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setenv("SSH_CONNECTION", "192.0.2.1 1 192.0.2.2 22")
    assert not browser.is_there()


@pytest.mark.parametrize(
    ("host", "name"), [("ann's laptop", "ann-s-laptop"), ("...", "terminal"), ("a" * 80, "a" * 60)]
)
def test_the_machine_is_named_as_the_hub_takes_it(
    monkeypatch: pytest.MonkeyPatch, host: str, name: str
) -> None:
    monkeypatch.setattr(browser.socket, "gethostname", lambda: host)
    assert browser.machine() == name


@pytest.mark.parametrize(
    "line",
    [
        "token",
        "token list",
        "token create ci",
        "token revoke a1 a2",
        "token list --tenant red",
        "token create --service ci --tenant red --expires 90d",
        "token rotate ci --tenant red --grace 1h",
        "token revoke --service ci --tenant red",
    ],
)
def test_a_valid_token_command_is_parsed(line: str) -> None:
    assert parse(line.split(), COMMAND).verb.name == "token"


@pytest.mark.parametrize(
    "line", ["token list x", "token create", "token create a b", "token revoke", "token frob", "whoami x"]
)
def test_an_invalid_token_command_is_a_usage_error(line: str) -> None:
    with pytest.raises(UsageError, match="Usage: mlp"):
        parse(line.split(), COMMAND)


@pytest.mark.parametrize(
    "line", ["token rotate ci", "token create --service ci", "token revoke --service ci"]
)
def test_a_token_of_a_program_requires_its_tenant(line: str) -> None:
    with pytest.raises(UsageError, match="--tenant NAME"):
        parse(line.split(), COMMAND)


@pytest.mark.parametrize("scope", ["", "jobs", "jobs:read ", "custom:mlp:jobs:read", "inherit"])
def test_a_scope_is_written_in_two_words(scope: str) -> None:
    with pytest.raises(UsageError, match="is not a scope"):
        parse(["token", "create", "ci", "--scope", scope], COMMAND)
