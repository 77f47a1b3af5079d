"""Runtimes over REST: who may register, approve and see them."""

from __future__ import annotations

from typing import Any

import pytest

from support.rigs.api_rig import ApiRig

MINE: dict[str, Any] = {"title": "Secret launcher", "program": ["{program}"]}


@pytest.fixture(autouse=True)
def removed(rig: ApiRig) -> Any:
    yield
    for tenant in ("red", "blue"):
        for one in rig.ask("GET", f"/tenants/{tenant}/runtimes", token=rig.root_user).json:
            rig.ask("DELETE", f"/tenants/{tenant}/runtimes/{one['name']}", token=rig.root_user)


def test_an_admin_of_the_tenant_registers_and_only_a_platform_admin_approves(rig: ApiRig) -> None:
    made = rig.ask("PUT", "/tenants/red/runtimes/mine", MINE, token=rig.rita)
    assert (made.status, made.json["state"], made.json["changed_by"]) == (200, "submitted", "rita"), made.body
    for token in (rig.rita, rig.ann, rig.bob, rig.blue, rig.notebook, rig.spawner):
        for verb in ("approve", "disable"):
            assert rig.ask("POST", f"/tenants/red/runtimes/mine:{verb}", token=token).status == 403
    approved = rig.ask("POST", "/tenants/red/runtimes/mine:approve", token=rig.root_user)
    assert approved.json["state"] == "approved"
    by_root = rig.ask("PUT", "/tenants/red/runtimes/other", MINE, token=rig.root_user)
    assert by_root.json["state"] == "approved"
    assert rig.ask("DELETE", "/tenants/red/runtimes/mine", token=rig.rita).status == 200


def test_a_member_registers_changes_and_removes_nothing_and_a_stranger_learns_nothing(rig: ApiRig) -> None:
    rig.ask("PUT", "/tenants/red/runtimes/mine", MINE, token=rig.root_user)
    for token in (rig.ann, rig.bob, rig.blue, rig.notebook, rig.spawner):
        for path in ("/tenants/red/runtimes/mine", "/tenants/red/runtimes/new"):
            assert rig.ask("PUT", path, MINE, token=token).status == 403
        assert rig.ask("DELETE", "/tenants/red/runtimes/mine", token=token).status == 403
    assert rig.ask("GET", "/tenants/red/runtimes", token=rig.ann).json[0]["name"] == "mine"
    assert "mine" in [r["name"] for r in rig.ask("GET", "/runtimes", token=rig.ann).json]
    for token in (rig.bob, rig.blue):
        assert b"Secret" not in rig.ask("GET", "/tenants/red/runtimes", token=token).body
        assert b"Secret" not in rig.ask("GET", "/runtimes", token=token).body


def test_one_that_is_not_there_is_answered_as_such(rig: ApiRig) -> None:
    for method, path in (("POST", "mine:approve"), ("POST", "mine:disable"), ("DELETE", "mine")):
        answer = rig.ask(method, f"/tenants/red/runtimes/{path}", token=rig.root_user)
        assert (answer.status, answer.json["reason"]) == (403, "NotFound"), answer.body


def test_the_platforms_own_are_described_in_the_readers_language_and_tenants_as_they_wrote(
    rig: ApiRig,
) -> None:
    mine = {**MINE, "description": "Each rank runs the program on its own; MLP_RANK tells them apart."}
    rig.ask("PUT", "/tenants/red/runtimes/mine", mine, token=rig.root_user)
    shown = rig.ask("GET", "/runtimes", token=rig.ann, headers={"Accept-Language": "zh-CN"}).json
    told = {one["name"]: one["description"] for one in shown}
    assert "进程" in told["plain"]
    assert told["mine"] == mine["description"]


@pytest.mark.parametrize(
    ("path", "body", "says"),
    [
        ("mine", {**MINE, "program": "{program}; rm -rf ~"}, "program is"),
        ("mine", {**MINE, "program": ["{nothing}"]}, "program: {nothing} does not exist"),
        ("mine", {**MINE, "program": ["{program}"] * 1000}, "program"),
        ("mine", {**MINE, "program": ["{program}", "x" * 100_000]}, "program"),
        ("mine", {**MINE, "roles": [{"name": "worker", "count": 10**9}]}, "roles"),
        ("mine", {**MINE, "needs": "../../etc/passwd"}, "needs"),
        ("mine", {**MINE, "state": "approved"}, "field state does not exist"),
        ("mine", {**MINE, "tenant": "blue"}, "field tenant does not exist"),
        ("mine", {**MINE, "image": "evil"}, "image"),
        ("mpi", MINE, "mpi is a runtime of the platform"),
        ("Mine", MINE, ""),
        ("a%2Fb", MINE, ""),
    ],
)
def test_a_description_that_is_wrong_changes_nothing(
    rig: ApiRig, path: str, body: dict[str, Any], says: str
) -> None:
    answer = rig.ask("PUT", f"/tenants/red/runtimes/{path}", body, token=rig.rita)
    assert answer.status in (403, 404)
    assert says in answer.json["msg"]
    assert rig.ask("GET", "/tenants/red/runtimes", token=rig.rita).json == []


@pytest.mark.parametrize(
    "mine",
    [
        {**MINE, "env": {"said": "x"}},
        {"title": "Roles", "roles": [{"name": "said", "program": ["x", "y"]}]},
    ],
)
def test_no_runtime_makes_the_audit_log_unreadable(rig: ApiRig, mine: dict[str, Any]) -> None:
    """A sentence is stored as an object with the one key `said`, and an admin of a team names variables and roles."""
    made = rig.ask("PUT", "/tenants/red/runtimes/mine", mine, token=rig.rita)
    assert made.status == 200, made.body
    wanted = {"env": mine["env"]} if "env" in mine else {"programs": {"said": ["x", "y"]}}
    for path in ("/audit?action=runtime.", "/tenants/red/audit?action=runtime."):
        answer = rig.ask("GET", path, token=rig.root_user)
        assert answer.status == 200, answer.body
        assert wanted.items() <= answer.json[0]["detail"].items()
    for path in ("/audit:lines", "/audit:csv", "/tenants/red/audit:csv", "/tenants/red/audit:lines"):
        answer = rig.ask("GET", path, token=rig.root_user)
        assert answer.status == 200
        assert b"said" in answer.body
