"""What cannot be taken back asks a browser for a password that was entered lately; programs show a token."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from mlp_hub.api.auth.recent import COOKIE, RECENT_S, sign
from support.rigs.api_rig import ApiRig, started

SECRET = b"s" * 32
GUARDED = [
    ("PUT", "/users/bob", None),
    ("PUT", "/users/bob:password", {}),
    ("PUT", "/users/bob:admin", {"admin": True}),
    ("DELETE", "/users/newcomer", None),
    ("PUT", "/tenants/spare", {"cpu": 1}),
    ("DELETE", "/tenants/spare", None),
]


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiRig]:
    for made in started(tmp_path_factory.mktemp("old")):
        made.tenant("spare")
        body = {"username": "newcomer", "password": "correct horse battery"}
        assert made.ask("POST", "/users", body).status == 201
        yield made


def with_login(headers: dict[str, str], value: str) -> dict[str, str]:
    return {**headers, "Cookie": f"{headers['Cookie']}; {COOKIE}={value}"}


@pytest.mark.parametrize(("method", "path", "body"), GUARDED)
def test_an_old_login_is_refused_and_told_where_to_renew_it(
    rig: ApiRig, method: str, path: str, body: dict[str, int] | None
) -> None:
    _, browser = rig.session("admin", rig.root_user)
    now = time.time()
    for value in (
        "",
        "x",
        "0",
        "0.",
        sign(SECRET, "admin", now - RECENT_S - 60),
        sign(SECRET, "admin", now + 3600),
        sign(SECRET, "ann", now),
        sign(b"another secret", "admin", now),
        sign(SECRET, "admin", now) + "0",
        f"{int(now)}.{sign(SECRET, 'admin', now - RECENT_S - 60).partition('.')[2]}",
        f"{int(now)}.\u00e9",
        "\u00b2.0",
    ):
        answer = rig.ask(method, path, body, headers=with_login(browser, value))
        assert (answer.status, answer.json["reason"]) == (403, "LoginTooOld"), value
        assert "/hub/confirm" in answer.json["msg"]


def test_an_unauthorized_caller_gets_the_same_answer_as_before(rig: ApiRig) -> None:
    _, browser = rig.session("ann", rig.ann)
    assert rig.ask("DELETE", "/tenants/spare", headers=browser).json["reason"] == "NotFound"


@pytest.mark.parametrize(("method", "path", "body"), GUARDED)
def test_with_a_recent_login_it_is_done(
    rig: ApiRig, method: str, path: str, body: dict[str, int] | None
) -> None:
    _, browser = rig.session("admin", rig.root_user)
    answer = rig.ask(method, path, body, headers=with_login(browser, sign(SECRET, "admin", time.time() - 60)))
    assert answer.status == 200, answer.body


def test_a_program_with_a_token_is_asked_for_nothing(rig: ApiRig) -> None:
    rig.tenant("another")
    assert rig.ask("PUT", "/tenants/another", {"cpu": 2}, token=rig.root_user).status == 200
    assert rig.ask("DELETE", "/tenants/another", token=rig.root_user).status == 200
