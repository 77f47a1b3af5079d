"""Tokens of people over REST: none gets more than its maker has, ends anybody's but one's own, or is told to others."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mlp_hub.api.auth import scopes
from support.rigs.api_rig import ApiRig
from support.waiting import wait_for

FEW = (scopes.ACCESS, scopes.JOBS_READ, scopes.USERS_WRITE, scopes.USERS_READ)


def audit(rig: ApiRig, name: str, action: str) -> list[tuple[str, dict[str, Any]]]:
    answer = rig.ask("GET", f"/audit?object={name}&action={action}&limit=1000", token=rig.root_user)
    return [(e["actor"], e["detail"]) for e in reversed(answer.json)]


def listed(rig: ApiRig, user: str, token: str) -> dict[str, dict[str, Any]]:
    answer = rig.ask("GET", f"/users/{user}/tokens", token=token)
    assert answer.status == 200, answer.body
    return {one["id"]: one for one in answer.json}


def ends_in(rig: ApiRig, token: str, **left: float) -> None:
    rig.hub.tokens[token]["expires_at"] = (datetime.now(UTC) + timedelta(**left)).isoformat()


def test_a_token_is_made_named_scoped_listed_and_ended(rig: ApiRig) -> None:
    asked = {"note": "ci", "scopes": [scopes.JOBS_READ], "expires_in": 3600}
    made = rig.ask("POST", "/users/bob/tokens", asked, token=rig.bob)
    assert made.status == 201, made.body
    assert (made.json["note"], made.json["scopes"]) == ("ci", [scopes.JOBS_READ])
    assert rig.hub.minted[-1] == {**asked, "user": "bob", "scopes": [scopes.ACCESS, scopes.JOBS_READ]}
    token = made.json["token"]
    assert audit(rig, "bob", "user.token")[-1][1]["note"] == "ci"
    mine = listed(rig, "bob", rig.bob)
    one = next(t for t in mine.values() if t["note"] == "ci")
    assert (one["scopes"], one["current"], one["ends_soon"]) == ([scopes.JOBS_READ], False, False)
    assert token not in str({k: v for t in mine.values() for k, v in t.items() if k != "id"})
    assert rig.ask("GET", "/auth", token=token).status == 200
    assert rig.ask("DELETE", f"/users/bob/tokens/{one['id']}", token=rig.bob).status == 200
    assert rig.ask("GET", "/auth", token=token).status == 401
    assert audit(rig, "bob", "user.token_end")[-1] == ("bob", {"note": "ci", "token": one["id"]})
    again = rig.ask("DELETE", f"/users/bob/tokens/{one['id']}", token=rig.bob)
    assert (again.status, again.json["reason"]) == (403, "NotFound")


def test_no_token_is_given_more_than_its_maker_holds(rig: ApiRig) -> None:
    few = rig.hub.user("bob", "few-of-bob", held=FEW)
    before = len(rig.hub.minted)
    for wanted in ([scopes.JOBS_WRITE], [scopes.CLUSTER_READ], [*FEW[1:], scopes.LEDGER_WRITE]):
        refused = rig.ask("POST", "/users/bob/tokens", {"note": "more", "scopes": wanted}, token=few)
        assert (refused.status, refused.json["reason"]) == (403, "Forbidden")
        assert "your own token lacks" in refused.json["msg"]
    for wanted in (["inherit"], ["self"], ["admin:users"], ["tokens!user=bob"], [f"{scopes.JOBS_READ}!user"]):
        refused = rig.ask("POST", "/users/bob/tokens", {"note": "more", "scopes": wanted}, token=few)
        assert (refused.status, refused.json["reason"]) == (403, "Invalid")
    assert len(rig.hub.minted) == before
    assert rig.ask("POST", "/users/bob/tokens", {"note": "same"}, token=few).status == 201
    assert sorted(rig.hub.minted[-1]["scopes"]) == sorted(FEW)


def test_scopes_on_a_users_own_objects_do_not_grow_to_all_objects(rig: ApiRig) -> None:
    own = (scopes.ACCESS, f"{scopes.TENANTS_WRITE}!user=rita", f"{scopes.USERS_WRITE}!user=rita")
    rita = rig.hub.user("rita", "own-of-rita", held=own)
    for method, path, body in (("GET", "token", None), ("POST", "tokens", {"note": "x"})):
        assert rig.ask(method, f"/users/rita/{path}", body, token=rita).status in (200, 201)
        assert sorted(rig.hub.minted[-1]["scopes"]) == sorted(own)


def test_a_token_without_the_scope_for_it_makes_ends_and_lists_none(rig: ApiRig) -> None:
    for method, path, body in (
        ("POST", "tokens", {"note": "x"}),
        ("GET", "tokens", None),
        ("DELETE", "tokens/a-ann-token", None),
    ):
        refused = rig.ask(method, f"/users/ann/{path}", body, token=rig.notebook)
        assert (refused.status, refused.json["reason"]) == (403, "Forbidden")


def test_a_token_does_not_outlive_the_one_that_made_it(rig: ApiRig) -> None:
    short = rig.hub.user("bob", "short-of-bob")
    ends_in(rig, short, hours=1)
    refused = rig.ask("POST", "/users/bob/tokens", {"note": "x", "expires_in": 7200}, token=short)
    assert (refused.status, refused.json["reason"]) == (403, "Invalid")
    assert "cannot outlive" in refused.json["msg"]
    assert rig.ask("POST", "/users/bob/tokens", {"note": "x"}, token=short).status == 201
    assert 3000 < rig.hub.minted[-1]["expires_in"] <= 3600
    assert rig.ask("GET", "/users/bob/token", token=short).status == 200
    assert rig.hub.minted[-1]["expires_in"] <= 3600
    login = rig.hub.user(
        "bob", "login-of-bob"
    )  # of an OAuth client's: it is not listed, and binds all the same
    rig.hub.tokens[login]["oauth_client"] = "JupyterHub service other"
    ends_in(rig, login, hours=1)
    assert rig.ask("POST", "/users/bob/tokens", {"note": "x", "expires_in": 7200}, token=login).status == 403


@pytest.mark.parametrize("who", ["bob", "rita", "root_user"])
def test_nobody_makes_a_token_of_somebody_else(rig: ApiRig, who: str) -> None:
    before = len(rig.hub.minted)
    assert rig.ask("POST", "/users/ann/tokens", {"note": "x"}, token=getattr(rig, who)).status == 403
    assert len(rig.hub.minted) == before


@pytest.mark.parametrize("who", ["bob", "rita"])
def test_nobody_lists_or_ends_somebody_elses_tokens(rig: ApiRig, who: str) -> None:
    for method, path in (("GET", "tokens"), ("DELETE", "tokens/a-ann-token"), ("DELETE", "token")):
        refused = rig.ask(method, f"/users/ann/{path}", token=getattr(rig, who))
        assert (refused.status, refused.json["reason"]) == (403, "NotFound")
    # nor by an id of theirs below one's own name
    own = {"bob": "bob", "rita": "rita"}[who]
    assert rig.ask("DELETE", f"/users/{own}/tokens/a-ann-token", token=getattr(rig, who)).status == 403
    assert rig.ask("GET", "/auth", token=rig.ann).status == 200


def test_a_login_of_a_browser_is_not_among_them(rig: ApiRig) -> None:
    login = rig.hub.user("bob", "bobs-login")
    rig.hub.tokens[login]["oauth_client"] = "JupyterHub service mlp"
    assert f"a-{login}" not in listed(rig, "bob", rig.bob)
    assert rig.ask("DELETE", f"/users/bob/tokens/a-{login}", token=rig.bob).json["reason"] == "NotFound"
    assert login in rig.hub.tokens


def test_every_token_can_revoke_itself(rig: ApiRig) -> None:
    poor = rig.hub.user("bob", "poor-of-bob", held=(scopes.ACCESS,))
    assert rig.ask("DELETE", "/users/ann/token", token=poor).status == 403
    assert rig.ask("DELETE", "/users/bob/token", token=poor).status == 200
    assert poor not in rig.hub.tokens
    assert rig.ask("GET", "/auth", token=poor).status == 401
    assert audit(rig, "bob", "user.token_end")[-1][0] == "bob"


def test_no_page_makes_or_gives_up_a_token(rig: ApiRig) -> None:
    _, browser = rig.session("ann", rig.ann)
    before = len(rig.hub.minted)
    for headers in ({"Cookie": browser["Cookie"]}, {**browser, "Sec-Fetch-Site": "cross-site"}, browser):
        made = rig.ask("POST", "/users/ann/tokens", {"note": "x"}, headers=headers)
        ended = rig.ask("DELETE", "/users/ann/token", headers=headers)
        assert (made.status, ended.status) == (403, 403)
    forged = rig.ask("DELETE", "/users/ann/tokens/a-ann-token", headers={"Cookie": browser["Cookie"]})
    assert (forged.status, forged.json["reason"]) == (403, "Forbidden")
    assert len(rig.hub.minted) == before
    assert rig.ask("GET", "/users/ann/tokens", headers=browser).status == 200


def test_it_is_told_from_where_a_token_came_last(rig: ApiRig) -> None:
    laptop = rig.hub.user("bob", "laptop-of-bob")
    rig.hub.tokens[laptop]["created"] = "2026-01-01T00:00:00Z"
    rig.service.auth.forget(laptop)
    assert (
        rig.ask("GET", "/auth", token=laptop, headers={"X-Forwarded-For": "1.2.3.4, 192.0.2.7"}).status == 200
    )
    one = wait_for(
        lambda: next((t for t in [listed(rig, "bob", rig.bob)[f"a-{laptop}"]] if t["last_from"]), None)
    )
    assert one["last_from"] == "192.0.2.7"
    # a token that was made later has the id of one that is gone
    rig.hub.tokens[laptop]["created"] = datetime.fromtimestamp(time.time() + 60, UTC).isoformat()
    assert listed(rig, "bob", rig.bob)[f"a-{laptop}"]["last_from"] == ""


def test_a_token_that_ends_soon_is_marked(rig: ApiRig) -> None:
    soon = rig.hub.user("bob", "soon-of-bob")
    ends_in(rig, soon, days=2)
    found = listed(rig, "bob", soon)[f"a-{soon}"]
    assert (found["ends_soon"], found["current"]) == (True, True)
