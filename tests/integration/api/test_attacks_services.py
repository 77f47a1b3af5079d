"""Accounts of tenants: who makes them, what they may, whose they stay, and when their tokens end."""

from __future__ import annotations

import time
from typing import Any

import pytest

from mlp_hub.api.auth import scopes
from mlp_hub.api.auth.recent import COOKIE, sign
from mlp_hub.domain.errors import Unavailable
from mlp_hub.store.repos.audit import Audit
from mlp_language.message import msg
from support.rigs.api_rig import ONE_ID, ApiRig


def make(rig: ApiRig, name: str, tenant: str = "red", token: str = "", **more: Any) -> dict[str, Any]:
    made = rig.ask("POST", f"/tenants/{tenant}/services", {"name": name, **more}, token=token or rig.rita)
    assert made.status == 201, made.body
    return dict(made.json)


def rotate(rig: ApiRig, name: str, **more: Any) -> dict[str, Any]:
    made = rig.ask("PUT", f"/tenants/red/services/{name}:rotate", more, token=rig.rita)
    assert made.status == 200, made.body
    return dict(made.json)


def lets_in(rig: ApiRig, token: str) -> bool:
    """Whether a token is taken, asked as if nothing were remembered of it."""
    rig.service.auth.forget(token)
    return rig.ask("GET", "/auth", token=token).status == 200


def acts(rig: ApiRig, user: str) -> list[tuple[str, str]]:
    answer = rig.ask("GET", f"/audit?object={user}&limit=1000", token=rig.root_user)
    return [(e["actor"], e["action"]) for e in reversed(answer.json)]


def test_an_account_works_for_its_tenant_and_is_nobodys_else(rig: ApiRig) -> None:
    made = make(rig, "build")
    token = made["token"]
    assert made["user"] == "svc-build"
    assert rig.ask("GET", "/auth", token=token).json == "svc-build"
    job = {"name": "nightly", "code": "print(1)", "cpu": 0.1}
    sent = rig.ask("POST", "/users/svc-build/jobs", job, token=token)
    assert (sent.status, sent.json["tenant"]) == (201, "red")
    assert rig.ask("GET", "/users/svc-build/jobs", token=token).status == 200
    assert rig.ask("PUT", "/users/svc-build/jobs/nightly:cancel", token=token).status == 200
    assert [t["name"] for t in rig.ask("GET", "/tenants", token=token).json] == ["red"]
    assert ("rita", "service_account.create") in acts(rig, "svc-build")
    assert ("rita", "user.token") in acts(rig, "svc-build")
    of_objects = {
        f"{scopes.PREFIX}{kind}:{act}"
        for kind in ("jobs", "models", "apps", "data")
        for act in ("read", "write")
    }
    assert sorted(rig.hub.minted[-1]["scopes"]) == sorted({scopes.ACCESS, *of_objects, scopes.TENANTS_READ})
    (told,) = [
        s for s in rig.ask("GET", "/tenants/red/services", token=rig.rita).json if s["name"] == "build"
    ]
    assert (told["made_by"], len(told["tokens"])) == ("rita", 1)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/users/ann/jobs", None),
        ("PUT", "/users/ann/jobs/digits:cancel", None),
        ("POST", "/users/svc-narrow/tokens", {"note": "more"}),
        ("GET", "/users/svc-narrow/token", None),
        ("PUT", "/tenants/red/members/bob", {}),
        ("POST", "/tenants/red/services", {"name": "more"}),
        ("PUT", "/tenants/red/services/narrow:rotate", {}),
        ("GET", "/tenants/red/services", None),
        ("GET", "/tenants/blue", None),
        ("GET", "/nodes", None),
        ("GET", "/audit", None),
    ],
)
def test_it_may_do_nothing_else(rig: ApiRig, method: str, path: str, body: Any) -> None:
    if "narrow" not in rig.__dict__:
        rig.__dict__["narrow"] = make(rig, "narrow")["token"]
    assert rig.ask(method, path, body, token=rig.__dict__["narrow"]).status == 403


@pytest.mark.parametrize(
    ("who", "tenant", "reason"),
    [
        ("ann", "red", "Forbidden"),
        ("rita", "blue", "NotFound"),
        ("bob", "red", "NotFound"),
        ("notebook", "red", "Forbidden"),
    ],
)
def test_only_an_admin_of_the_tenant_makes_one(rig: ApiRig, who: str, tenant: str, reason: str) -> None:
    before = len(rig.hub.minted)
    refused = rig.ask("POST", f"/tenants/{tenant}/services", {"name": "mine"}, token=getattr(rig, who))
    assert (refused.status, refused.json["reason"]) == (403, reason)
    assert len(rig.hub.minted) == before
    assert "svc-mine" not in rig.hub.accounts


@pytest.mark.parametrize(
    "body",
    [
        {"name": "x", "scopes": ["admin:users"]},
        {"name": "Root"},
        {"name": ""},
        {"name": "a" * 29},
        {"name": "x", "expires_in": 10**9},
    ],
)
def test_nothing_but_a_name_and_a_time_is_asked_for(rig: ApiRig, body: dict[str, Any]) -> None:
    refused = rig.ask("POST", "/tenants/red/services", body, token=rig.rita)
    assert (refused.status, refused.json["reason"]) == (403, "Invalid")


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "", {"name": "page"}, 201),
        ("PUT", "/page:rotate", {"grace": 60}, 200),
        ("DELETE", "/page", None, 200),
    ],
)
def test_a_page_does_it_with_a_password_that_was_entered_lately(
    rig: ApiRig, method: str, path: str, body: Any, status: int
) -> None:
    _, browser = rig.session("rita", rig.rita)
    before = len(rig.hub.minted)
    refused = rig.ask(method, f"/tenants/red/services{path}", body, headers=browser)
    assert (refused.status, refused.json["reason"]) == (403, "LoginTooOld")
    assert len(rig.hub.minted) == before
    recent = f"{COOKIE}={sign(b's' * 32, 'rita', time.time() - 60)}"
    lately = {**browser, "Cookie": f"{browser['Cookie']}; {recent}"}
    assert rig.ask(method, f"/tenants/red/services{path}", body, headers=lately).status == status


def test_a_token_that_cannot_be_audited_is_not_issued(rig: ApiRig, monkeypatch: pytest.MonkeyPatch) -> None:
    first = make(rig, "written")["token"]
    before = set(rig.hub.tokens)
    add = Audit.add

    def full(repo: Audit, at: float, actor: str, action: str, *rest: Any, **more: Any) -> Any:
        if action == "user.token":
            raise OSError("the disk is full")
        return add(repo, at, actor, action, *rest, **more)

    monkeypatch.setattr(Audit, "add", full)
    asked = rig.ask("PUT", "/tenants/red/services/written:rotate", {"grace": 0}, token=rig.rita)
    assert asked.status >= 500
    monkeypatch.undo()
    assert set(rig.hub.tokens) == before  # the hub does not keep it either
    assert lets_in(rig, first)  # and the old one is not rotated out by what did not happen
    assert ("rita", "service_account.rotate") not in acts(rig, "svc-written")
    assert lets_in(rig, rotate(rig, "written")["token"])


def test_a_token_that_the_service_died_over_is_neither_taken_nor_listed(rig: ApiRig) -> None:
    make(rig, "died")
    lost = rig.hub.user(
        "svc-died", "made-and-not-noted"
    )  # the hub made it, the service did not come to note it
    (told,) = [s for s in rig.ask("GET", "/tenants/red/services", token=rig.rita).json if s["name"] == "died"]
    assert len(told["tokens"]) == 1
    assert not lets_in(rig, lost)


def test_an_end_that_the_hub_did_not_hear_of_is_asked_for_again(rig: ApiRig) -> None:
    token = make(rig, "half")["token"]
    assert lets_in(rig, token)
    deauthorize = rig.service.hub.deauthorize
    asked: list[str] = []

    async def down(name: str) -> None:
        asked.append(name)
        raise Unavailable(msg("the hub does not answer"))

    rig.service.hub.deauthorize = down  # type: ignore[method-assign]
    try:
        assert rig.ask("DELETE", "/tenants/red/services/half", token=rig.rita).status == 503
    finally:
        rig.service.hub.deauthorize = deauthorize  # type: ignore[method-assign]
    assert asked == ["svc-half"]
    assert not lets_in(rig, token)  # whatever the hub heard
    turned = rig.ask("PUT", "/tenants/red/services/half:rotate", {}, token=rig.rita)
    assert (turned.status, turned.json["reason"]) == (403, "WrongState")
    assert "no longer a member of red" in turned.json["msg"]
    assert rig.ask("DELETE", "/tenants/red/services/half", token=rig.rita).status == 200
    assert rig.ask("DELETE", "/tenants/red/services/half", token=rig.rita).json["reason"] == "NotFound"
    assert lets_in(rig, make(rig, "half")["token"])


def test_actions_of_a_service_account_are_recorded_as_its_own(rig: ApiRig) -> None:
    token = make(rig, "acts")["token"]
    rig.job("svc-acts", "nightly", token)
    assert rig.ask("PUT", "/users/svc-acts/jobs/nightly:cancel", token=token).status == 200
    rig.until("svc-acts", "nightly", "cancelled")
    told = rig.ask("GET", "/users/svc-acts/jobs/nightly", token=rig.rita).json
    assert (told["user"], told["tenant"]) == ("svc-acts", "red")
    # what others did with it stands under their names, and that it is theirs with its tenant
    found = rig.ask("GET", "/audit?object=svc-acts&limit=1000", token=rig.root_user).json
    assert {e["actor"] for e in found} <= {"rita", "svc-acts", "system"}
    assert {e["tenant"] for e in found if e["action"].startswith(("service_account.", "user.token"))} == {
        "red"
    }


def test_a_token_that_was_rotated_out_is_taken_for_its_grace_only(rig: ApiRig) -> None:
    first = make(rig, "turns")["token"]
    second = rotate(rig, "turns", grace=3600)
    assert second["old_until"] is not None
    (told,) = [
        s for s in rig.ask("GET", "/tenants/red/services", token=rig.rita).json if s["name"] == "turns"
    ]
    assert [one["expires"] for one in told["tokens"]] == [
        second["old_until"],
        None,
    ]  # as this hub's hold for ever
    assert lets_in(rig, first)
    assert lets_in(rig, second["token"])
    third = rotate(rig, "turns", grace=0)["token"]
    assert not lets_in(rig, second["token"])
    assert lets_in(rig, third)
    assert not lets_in(rig, first), "one that was lost may be any before it"
    assert second["token"] not in rig.hub.tokens  # it is ended at the hub too
    assert ("rita", "service_account.rotate") in acts(rig, "svc-turns")


def test_one_that_is_ended_does_nothing_more(rig: ApiRig) -> None:
    token = make(rig, "ends")["token"]
    assert rig.ask("DELETE", "/tenants/red/services/ends", token=rig.rita).status == 200
    assert not lets_in(rig, token)
    assert not rig.hub.accounts["svc-ends"]["authorized"]
    again = rig.ask("PUT", "/tenants/red/services/ends:rotate", {}, token=rig.rita)
    assert (again.status, again.json["reason"]) == (403, "NotFound")
    assert ("rita", "service_account.end") in acts(rig, "svc-ends")


def test_a_name_stays_its_tenants_for_its_files_do(rig: ApiRig) -> None:
    make(rig, "kept")
    for tenant, who in (("red", rig.rita), ("blue", rig.blue)):
        taken = rig.ask("POST", f"/tenants/{tenant}/services", {"name": "kept"}, token=who)
        assert (taken.status, taken.json["reason"]) == (403, "Conflict")
    assert rig.ask("DELETE", "/tenants/red/services/kept", token=rig.rita).status == 200
    taken = rig.ask("POST", "/tenants/blue/services", {"name": "kept"}, token=rig.blue)
    assert (taken.status, taken.json["reason"]) == (403, "Conflict")
    assert lets_in(rig, make(rig, "kept")["token"])


def test_a_tenant_that_is_made_again_has_nothing_of_the_one_before(rig: ApiRig) -> None:
    rig.tenant("once", "rita")
    token = make(rig, "ghost", "once")["token"]
    for member in ("svc-ghost", "rita"):
        assert rig.ask("DELETE", f"/tenants/once/members/{member}", token=rig.root_user).status == 200
    assert rig.ask("DELETE", "/tenants/once", token=rig.root_user).status == 200
    assert acts(rig, "svc-ghost")[-1] == ("admin", "service_account.end")
    rig.tenant("once", "rita")
    assert rig.ask("GET", "/tenants/once/services", token=rig.rita).json == []
    taken = rig.ask("POST", "/tenants/once/services", {"name": "ghost"}, token=rig.rita)
    assert (taken.status, taken.json["reason"]) == (403, "Conflict"), "its files are of others"
    assert rig.ask("PUT", "/tenants/once/members/svc-ghost", token=rig.root_user).status == 403
    assert not lets_in(rig, token)


def test_another_tenants_is_as_one_that_is_not_there(rig: ApiRig) -> None:
    make(rig, "hidden")
    for method, path, body in (("PUT", ":rotate", {}), ("DELETE", "", None)):
        there = rig.ask(method, f"/tenants/blue/services/hidden{path}", body, token=rig.blue, headers=ONE_ID)
        missing = rig.ask(
            method, f"/tenants/blue/services/hiddex{path}", body, token=rig.blue, headers=ONE_ID
        )
        assert there.status == missing.status == 403
        assert there.body == missing.body.replace(b"hiddex", b"hidden")


def test_it_joins_no_other_tenant_and_administers_none(rig: ApiRig) -> None:
    token = make(rig, "only")["token"]
    for tenant, role, who in (("red", "admin", rig.rita), ("blue", "member", rig.root_user)):
        refused = rig.ask("PUT", f"/tenants/{tenant}/members/svc-only", {"role": role}, token=who)
        assert (refused.status, refused.json["reason"]) == (403, "Forbidden")
    assert lets_in(rig, token)
    # however it lost its place, it does not work for whoever is in no tenant
    assert rig.ask("DELETE", "/tenants/red/members/svc-only", token=rig.rita).status == 200
    assert not lets_in(rig, token)


def test_a_token_that_somebody_else_made_for_its_user_is_not_taken(rig: ApiRig) -> None:
    make(rig, "strange")
    assert not lets_in(rig, rig.hub.user("svc-strange", "made-elsewhere"))
    assert not lets_in(rig, rig.hub.user("svc-nowhere", "made-nowhere"))


def test_it_stays_when_who_made_it_leaves(rig: ApiRig) -> None:
    rig.hub.user("rolf", "rolf-token")
    assert rig.ask("PUT", "/tenants/red/members/rolf", {"role": "admin"}, token=rig.root_user).status == 200
    token = make(rig, "stays", token="rolf-token")["token"]
    assert rig.ask("PUT", "/users/rolf", token=rig.root_user).status == 200
    assert lets_in(rig, token)
