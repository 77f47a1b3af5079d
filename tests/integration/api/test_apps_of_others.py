"""Apps of others: who may open one finds it, as its access says; who may not learns nothing, and nobody what it runs with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mlp_hub.api.auth import scopes
from mlp_hub.domain.apps.app import AppPhase
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.service.apps.endpoints import Endpoint
from mlp_hub.store.tx import Tx
from mlp_language.message import msg, verbatim
from support.rigs.api_rig import ApiRig

HIDDEN = "mallory-reads-this"


@pytest.fixture(autouse=True)
def app(rig: ApiRig) -> None:
    """Ann's app, whose command holds what is nobody's business, and a colleague of hers in red, carl."""
    rig.hub.user("carl", "carl-token", held=(scopes.ACCESS, *scopes.USER_SCOPES))
    member = rig.ask("PUT", "/tenants/red/members/carl", {"role": "member"}, token=rig.root_user)
    assert member.status == 200, member.body
    made = {
        "name": "line",
        "model_name": "",
        "command": f"serve --token {HIDDEN}",
        "env": {"KEY": HIDDEN, "SIM_DURATION": "86400"},
    }
    found = rig.ask("GET", "/users/ann/apps/line", token=rig.ann)
    if found.status != 200:
        assert rig.ask("POST", "/users/ann/apps", made, token=rig.ann).status == 201
    opened(rig, "tenant")


def opened(rig: ApiRig, access: str) -> None:
    assert rig.ask("PUT", "/users/ann/apps/line/access", {"access": access}, token=rig.ann).status == 200


def listed(rig: ApiRig, who: str, token: str = "") -> list[str]:
    answer = rig.ask("GET", f"/users/{who}/apps:shared", token=token or f"{who}-token")
    assert answer.status == 200, answer.body
    assert HIDDEN not in str(answer.body)
    return [f"{one['user']}/{one['name']}" for one in answer.json if one["name"] == "line"]


def shown(rig: ApiRig, token: str) -> tuple[int, Any]:
    answer = rig.ask("GET", "/users/ann/apps/line:shared", token=token)
    assert HIDDEN not in str(answer.body)
    return answer.status, answer.json


@pytest.mark.parametrize(
    ("access", "may"),
    [("private", set()), ("tenant", {"carl", "rita"}), ("hub", {"carl", "rita", "bob", "blue"})],
)
def test_an_app_is_found_by_those_alone_who_may_open_it(rig: ApiRig, access: str, may: set[str]) -> None:
    opened(rig, access)
    for who in ("carl", "rita", "bob", "blue"):
        assert listed(rig, who) == (["ann/line"] if who in may else []), who
        status, told = shown(rig, f"{who}-token")
        assert status == (200 if who in may else 403), who
        if who not in may:
            nothing = rig.ask("GET", "/users/ann/apps/nothing:shared", token=f"{who}-token")
            assert told["reason"] == nothing.json["reason"] == "NotFound"
            assert told["msg"] == nothing.json["msg"].replace("nothing", "line")


def test_own_apps_are_not_listed_as_shared_and_nobody_lists_for_somebody_else(rig: ApiRig) -> None:
    opened(rig, "hub")
    assert listed(rig, "ann") == []
    for who in ("bob", "rita", "carl"):
        assert rig.ask("GET", "/users/ann/apps:shared", token=f"{who}-token").status == 403
    assert listed(rig, "bob", rig.root_user) == ["ann/line"]


def test_a_user_who_may_open_an_app_reaches_nothing_else_of_it(rig: ApiRig) -> None:
    opened(rig, "hub")
    for path in ("", "/logs", "/keys", "/usage"):
        for who in ("bob", "carl"):
            answer = rig.ask("GET", f"/users/ann/apps/line{path}", token=f"{who}-token")
            assert (answer.status, answer.json["reason"]) == (403, "NotFound"), path
    for method, path, body in (
        ("POST", "/keys", {"name": "mine"}),
        ("DELETE", "/keys/mine", None),
        ("PUT", "/access", {"access": "hub"}),
        ("DELETE", "", None),
    ):
        answer = rig.ask(method, f"/users/ann/apps/line{path}", body, token="bob-token")
        assert (answer.status, answer.json["reason"]) == (403, "NotFound"), path


def test_a_token_for_ones_own_objects_alone_finds_no_app_of_others(rig: ApiRig) -> None:
    opened(rig, "hub")
    own = rig.hub.user("carl", "carls-own", held=(scopes.ACCESS, f"{scopes.APPS_READ}!user"))
    assert listed(rig, "carl", own) == []
    assert shown(rig, own)[0] == 403


def test_a_user_who_leaves_the_team_no_longer_finds_its_apps(rig: ApiRig) -> None:
    assert listed(rig, "carl") == ["ann/line"]
    assert rig.ask("DELETE", "/tenants/red/members/carl", token=rig.root_user).status == 200
    assert listed(rig, "carl") == []
    assert shown(rig, "carl-token")[0] == 403


def test_attacks_who_may_open_an_app_that_failed_is_not_told_what_its_program_said(rig: ApiRig) -> None:
    opened(rig, "hub")
    key = rig.ask("POST", "/users/ann/apps/line/keys", {"name": "outside"}, token=rig.ann).json["key"]
    said = msg("a replica ended: {why}", why=verbatim(f"OperationalError: no server at db:{HIDDEN}@host"))

    def failed(tx: Tx) -> str:
        found = tx.apps.find(SYSTEM, "ann", "line")
        assert found is not None
        app = replace(found, failures=9, phase=AppPhase.ERROR, message=said, not_before=2e9)
        tx.apps.put(app)
        return app.uid

    uid = rig.run(rig.platform.db.write(failed))
    assert HIDDEN in rig.ask("GET", "/users/ann/apps/line", token=rig.ann).json["message"]
    status, told = shown(rig, "bob-token")
    assert (status, told["message"]) == (
        200,
        "it failed, and is tried again; its owner, ann, can see the reason",
    )
    rig.platform.apps.endpoints.store_endpoint(
        Endpoint(uid, "ann", "line", "red", AppPhase.ERROR.value, 1, ())
    )
    for kind, secret, knows in (
        ("token", "bob-token", False),
        ("key", key, False),
        ("token", rig.ann, True),
    ):
        asked = {"user": "ann", "app": "line", "kind": kind, "secret": secret, "address": "127.0.0.1"}
        answer = rig.ask("PUT", "/gateway:admit", asked, token=rig.gateway)
        assert (answer.status, answer.json["verdict"]) == (200, "may"), answer.body
        assert (HIDDEN in answer.json["reason"]) is knows, kind
