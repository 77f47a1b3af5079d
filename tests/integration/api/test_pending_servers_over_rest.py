"""Notebook servers that wait, over REST: what their spawner is told, and who may ask for none."""

from __future__ import annotations

from typing import Any

from support.rigs.api_rig import Answer, ApiRig

KEY = {"id": "lou/", "applier": "sp"}


def asked(**change: Any) -> dict[str, Any]:
    one = {**KEY, "request_type": "request", "tenant": "lender", "cpu": 1, "ram": 100, "user": "lou"}
    return one | change


def try_(rig: ApiRig, token: str, **change: Any) -> Answer:
    return rig.ask("PUT", "/resource_request:try", asked(**change), token=token)


def test_a_server_is_told_when_to_ask_again_until_it_has_its_tenants_own(rig: ApiRig) -> None:
    tia = rig.hub.user("tia", "tia-token")
    lou = rig.hub.user("lou", "lou-token")
    rig.tenant("lender", "lou", cpu=1, cohort="lenders")
    rig.tenant("taker", "tia", cpu=1, cohort="lenders")
    rig.job("tia", "lent", tia, workers=2, cpu=1, env={"SIM_STOP": "0.1"})
    rig.until("tia", "lent", "running")

    for token in (tia, lou, rig.ann, rig.notebook):
        assert try_(rig, token).json["reason"] in ("Forbidden", "NotFound")
    never = try_(rig, rig.spawner, cpu=3)
    assert (never.status, never.json["reason"], "retry-after" in never.headers) == (
        403,
        "ExceedsMaxQuota",
        False,
    )
    beyond = try_(rig, rig.spawner, cpu=2)
    assert (beyond.status, beyond.json["reason"]) == (403, "WaitingForQuota")
    assert beyond.headers["retry-after"].isdigit()
    facts = {(f["key"], f["dimension"]): f["number"] for f in beyond.json["facts"]}
    assert (facts["asked", "cpu"], facts["free", "cpu"]) == (2, 0)
    assert "tia" not in beyond.body.decode()
    early = rig.ask("PUT", "/resource_request:confirm", KEY, token=rig.spawner)
    assert (early.status, early.json["reason"]) == (403, "WrongState")
    assert rig.ask("GET", "/users/tia/jobs/lent", token=tia).json["phase"] == "running"

    assert try_(rig, rig.spawner).status == 200  # it takes back its own, for which the answer waits
    for verb in ("confirm", "confirm"):
        assert rig.ask("PUT", f"/resource_request:{verb}", KEY, token=rig.spawner).status == 200
    events = rig.ask("GET", "/users/tia/jobs/lent/events", token=tia).json
    told = [e["message"] for e in events if e["kind"] == "preempted"]
    assert told[0].startswith("Stopped for a notebook server of team lender: lender takes back")
    assert "lou" not in str(rig.ask("GET", "/users/tia/jobs/lent/why", token=tia).json)
    decisions = rig.ask("GET", "/users/tia/jobs/lent/decisions", token=tia)
    assert b"lou" not in decisions.body
    assert b"a notebook server of team lender" in decisions.body


def test_a_user_waiting_for_a_server_learns_of_others_work_only_what_they_may_see(rig: ApiRig) -> None:
    rig.hub.user("mia", "mia-token")
    rig.tenant("small", "mia", cpu=64)
    rig.tenant("secretive", cpu=63, reserved={"cpu": 63})
    mine = {"id": "mia/", "user": "mia", "tenant": "small"}

    waits = try_(rig, rig.spawner, **mine)
    known = try_(rig, rig.spawner, **mine | {"user": ""})

    assert (waits.status, waits.json["reason"]) == (403, "WaitingForQuota")
    assert b"secretive" not in waits.body
    assert b"secretive" in known.body, "the platform's own parts see all where it is for nobody"
