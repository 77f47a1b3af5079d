"""Claims of notebook servers over REST: what their spawner is told, and who may make none."""

from __future__ import annotations

import time
from typing import Any

from api_rig import Answer, ApiRig

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
    deadline = time.monotonic() + 20
    while rig.ask("GET", "/users/tia/jobs/lent", token=tia).json["phase"] != "running":
        assert time.monotonic() < deadline
        time.sleep(0.02)

    for token in (tia, lou, rig.ann, rig.notebook):
        assert try_(rig, token).json["reason"] in ("Forbidden", "NotFound")
    beyond = try_(rig, rig.spawner, cpu=2)
    assert beyond.status == 403
    assert "retry-after" not in beyond.headers
    assert rig.ask("GET", "/users/tia/jobs/lent", token=tia).json["phase"] == "running"

    first = try_(rig, rig.spawner)
    assert (first.status, first.json["reason"]) == (403, "WaitingForPreempted")
    assert first.headers["retry-after"].isdigit()
    assert "tia" not in first.json["msg"]
    early = rig.ask("PUT", "/resource_request:confirm", KEY, token=rig.spawner)
    assert (early.status, early.json["reason"]) == (403, "WrongState")
    while (again := try_(rig, rig.spawner)).status != 200:
        assert again.json["reason"] == "WaitingForPreempted"
        assert time.monotonic() < deadline
        time.sleep(0.02)
    for verb in ("confirm", "confirm"):
        assert rig.ask("PUT", f"/resource_request:{verb}", KEY, token=rig.spawner).status == 200
    events = rig.ask("GET", "/users/tia/jobs/lent/events", token=tia).json
    told = [e["message"] for e in events if e["kind"] == "preempted"]
    assert told[0].startswith(
        "stopped to make room for a notebook server of tenant lender: lender takes back"
    )
    assert "lou" not in str(rig.ask("GET", "/users/tia/jobs/lent/why", token=tia).json)
    decisions = rig.ask("GET", "/users/tia/jobs/lent/decisions", token=tia)
    assert b"lou" not in decisions.body
    assert b"a notebook server of tenant lender" in decisions.body
