"""What teams and people ask for over the API, and who may decide: more quota, a place in a team, a team's own audit log."""

from __future__ import annotations

from typing import Any

import pytest

from support.rigs.api_rig import ONE_ID, ApiRig

QUOTA = {"cpu": 8.0, "ram": 4096}


@pytest.fixture
def team(rig: ApiRig) -> str:
    """Make a team of its own with a quota, that may be asked; lea is its admin, mia its member."""
    name = f"team{rig.ask('GET', '/tenants', token=rig.root_user).json.__len__()}"
    for user in ("lea", "mia", "nia"):
        rig.hub.user(user, f"{user}-token")
    rig.tenant(name, "lea", members=("mia",), **QUOTA, joining="asked", description="we read digits")
    return name


def ask(rig: ApiRig, team: str, who: str = "lea", **asked: Any) -> Any:
    body = {"reason": "a paper", **asked}
    return rig.ask("POST", f"/tenants/{team}/quota_requests", body, token=f"{who}-token")


def test_a_team_asks_for_more_and_has_it_when_a_platform_admin_says_so(rig: ApiRig, team: str) -> None:
    made = ask(rig, team, cpu=16, ram=8192)
    assert (made.status, made.json["state"]) == (201, "open")
    again = ask(rig, team, cpu=32)
    assert (again.status, again.json["reason"]) == (403, "Conflict")
    [waits] = [r for r in rig.ask("GET", "/quota_requests", token=rig.root_user).json if r["tenant"] == team]
    path = f"/tenants/{team}/quota_requests/{waits['id']}"
    assert rig.ask("PUT", f"{path}:accept", {"word": "till May"}, token="lea-token").status == 403
    done = rig.ask("PUT", f"{path}:accept", {"word": "till May"}, token=rig.root_user)
    assert done.status == 200, done.body
    assert (done.json["state"], done.json["decided_by"]) == ("accepted", "admin")
    tenant = rig.ask("GET", f"/tenants/{team}", token="lea-token").json
    assert (tenant["cpu"], tenant["ram"], tenant["joining"]) == (16.0, 8192, "asked")
    [told] = rig.ask("GET", f"/tenants/{team}/quota_requests", token="lea-token").json
    assert (told["word"], told["cpu"]) == ("till May", 16.0)
    twice = rig.ask("PUT", f"{path}:decline", token=rig.root_user)
    assert (twice.status, twice.json["reason"]) == (403, "WrongState")
    actions = [e["action"] for e in rig.ask("GET", f"/tenants/{team}/audit", token="lea-token").json]
    assert actions[:3] == ["tenant.update", "quota.accept", "quota.ask"]


def test_a_request_for_a_counted_dimension_can_be_accepted(rig: ApiRig, team: str) -> None:
    tenant = {"cpu": 8, "joining": "asked", "amounts": {"shm": 64}}
    assert rig.ask("PUT", f"/tenants/{team}", tenant, token=rig.root_user).status == 200
    made = ask(rig, team, cpu=16, amounts={"shm": 128})
    path = f"/tenants/{team}/quota_requests/{made.json['id']}"
    done = rig.ask("PUT", f"{path}:accept", token=rig.root_user)
    assert done.status == 200, done.body
    found = rig.ask("GET", f"/tenants/{team}", token="lea-token").json
    assert (found["cpu"], found["amounts"]) == (16.0, {"shm": 128})


def test_an_accepted_request_does_not_lower_a_quota_that_was_raised_meanwhile(rig: ApiRig, team: str) -> None:
    made = ask(rig, team, cpu=16)
    tenant = rig.ask("PUT", f"/tenants/{team}", {"cpu": 64, "joining": "asked"}, token=rig.root_user)
    assert tenant.status == 200
    path = f"/tenants/{team}/quota_requests/{made.json['id']}"
    assert rig.ask("PUT", f"{path}:accept", token=rig.root_user).status == 200
    assert rig.ask("GET", f"/tenants/{team}", token="lea-token").json["cpu"] == 64.0


def test_a_request_is_declined_with_a_word_or_taken_back(rig: ApiRig, team: str) -> None:
    first = ask(rig, team, cpu=16).json["id"]
    path = f"/tenants/{team}/quota_requests"
    assert rig.ask("DELETE", f"{path}/{first}", token="mia-token").status == 403
    assert rig.ask("DELETE", f"{path}/{first}", token="lea-token").json["state"] == "withdrawn"
    second = ask(rig, team, cpu=16).json["id"]
    said = rig.ask("PUT", f"{path}/{second}:decline", {"word": "not now"}, token=rig.root_user)
    assert (said.json["state"], said.json["word"]) == ("declined", "not now")
    assert rig.ask("GET", f"/tenants/{team}", token="lea-token").json["cpu"] == 8.0
    assert rig.ask("PUT", f"{path}/nope:accept", token=rig.root_user).json["reason"] == "NotFound"


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"cpu": -4}, "cpu"),
        ({"cpu": 1e30}, "cpu"),
        ({"ram": 10**19}, "ram"),
        ({"cpu": 4}, "already has 8 cpu, which is not less than 4 cpu"),
        ({}, "ask for something"),
        ({"gpu": 2}, "no limit of gpu"),
        ({"rom": 2}, "no limit of storage"),
        ({"cpu": 16, "reason": ""}, "reason"),
        ({"cpu": 16, "reason": "x" * 501}, "reason"),
        ({"cpu": 16, "reason": "a\nb"}, "reason"),
        ({"cpu": 16, "weight": 9}, "weight"),
    ],
)
def test_an_invalid_quota_request_is_refused_with_the_reason(
    rig: ApiRig, team: str, asked: dict[str, Any], says: str
) -> None:
    refused = ask(rig, team, **asked)
    assert refused.status == 403
    assert says in refused.json["msg"]


def test_a_resource_without_a_limit_is_named_in_the_readers_words(rig: ApiRig, team: str) -> None:
    body = {"reason": "a paper", "rom": 2}
    path, chinese = f"/tenants/{team}/quota_requests", {"Accept-Language": "zh-CN"}
    refused = rig.ask("POST", path, body, token="lea-token", headers=chinese)
    assert refused.status == 403
    assert "存储" in refused.json["msg"]
    assert "storage" not in refused.json["msg"]


def test_a_user_who_does_not_lead_a_team_cannot_request_quota_or_see_requests_there(
    rig: ApiRig, team: str
) -> None:
    made = ask(rig, team, cpu=16).json["id"]
    for who in ("mia-token", "nia-token", rig.rita, rig.blue):
        assert (
            rig.ask("POST", f"/tenants/{team}/quota_requests", {"cpu": 32, "reason": "x"}, token=who).status
            == 403
        )
        assert rig.ask("DELETE", f"/tenants/{team}/quota_requests/{made}", token=who).status == 403
        for what in ("quota_requests", "joins", "audit", "runs"):
            assert rig.ask("GET", f"/tenants/{team}/{what}", token=who).status == 403, (who, what)
    assert rig.ask("GET", "/quota_requests", token="lea-token").status == 403
    # of another tenant's request its own path says nothing
    assert (
        rig.ask("DELETE", f"/tenants/red/quota_requests/{made}", token=rig.rita).json["reason"] == "NotFound"
    )


def test_a_person_asks_for_a_place_and_the_teams_admin_takes_them_in(rig: ApiRig, team: str) -> None:
    teams = rig.ask("GET", "/users/nia/teams", token="nia-token").json
    assert [(t["description"], t["asked_at"]) for t in teams["teams"] if t["tenant"] == team] == [
        ("we read digits", None)
    ]
    asked = {"tenant": team, "note": "I read too"}
    first = rig.ask("POST", "/users/nia/teams", asked, token="nia-token")
    assert first.status == 201
    second = rig.ask("POST", "/users/nia/teams", {**asked, "note": "please"}, token="nia-token")
    assert second.json == first.json
    [waits] = rig.ask("GET", f"/tenants/{team}/joins", token="lea-token").json
    assert (waits["user"], waits["note"]) == ("nia", "I read too")
    join = f"/tenants/{team}/joins/nia"
    for who in ("nia-token", "mia-token", rig.rita, rig.blue):
        assert rig.ask("PUT", f"{join}:approve", token=who).status == 403, who
    made = rig.ask("PUT", f"{join}:approve", token="lea-token")
    assert (made.status, made.json["role"]) == (200, "member")
    assert rig.ask("PUT", f"{join}:approve", token="lea-token").json["reason"] == "NotFound"
    assert rig.ask("POST", "/users/nia/teams", asked, token="nia-token").json["reason"] == "Conflict"
    assert team not in [
        t["tenant"] for t in rig.ask("GET", "/users/nia/teams", token="nia-token").json["teams"]
    ]


def test_a_request_for_a_place_is_declined_or_taken_back_and_may_be_made_again(
    rig: ApiRig, team: str
) -> None:
    body = {"tenant": team}
    assert rig.ask("POST", "/users/nia/teams", body, token="nia-token").status == 201
    assert rig.ask("PUT", f"/tenants/{team}/joins/nia:decline", token="lea-token").status == 200
    assert rig.ask("POST", "/users/nia/teams", body, token="nia-token").status == 201
    assert rig.ask("DELETE", f"/users/nia/teams/{team}", token="nia-token").status == 200
    assert rig.ask("DELETE", f"/users/nia/teams/{team}", token="nia-token").json["reason"] == "NotFound"
    assert rig.ask("GET", f"/tenants/{team}/joins", token="lea-token").json == []


def test_a_closed_team_looks_missing_to_a_user_who_asks_to_join(rig: ApiRig) -> None:
    rig.hub.user("nia", "nia-token")
    closed = rig.ask("POST", "/users/nia/teams", {"tenant": "red"}, token="nia-token", headers=ONE_ID)
    missing = rig.ask("POST", "/users/nia/teams", {"tenant": "rex"}, token="nia-token", headers=ONE_ID)
    assert (closed.status, closed.json["reason"]) == (403, "NotFound")
    assert closed.body == missing.body.replace(b"rex", b"red")
    assert rig.ask("POST", "/users/nia/teams", {"tenant": "default"}, token="nia-token").status == 403
    assert rig.ask("POST", "/users/ann/teams", {"tenant": "red"}, token="nia-token").status == 403


def test_a_user_who_was_shut_out_meanwhile_cannot_be_approved_into_a_team(rig: ApiRig, team: str) -> None:
    rig.hub.user("gone", "gone-token")
    assert rig.ask("POST", "/users/gone/teams", {"tenant": team}, token="gone-token").status == 201
    rig.hub.accounts["gone"]["authorized"] = False
    refused = rig.ask("PUT", f"/tenants/{team}/joins/gone:approve", token="lea-token")
    assert (refused.status, refused.json["reason"]) == (403, "NotFound")
    assert rig.ask("GET", f"/tenants/{team}/joins", token="lea-token").json == []


def test_a_team_sees_nothing_of_one_that_had_its_name_before(rig: ApiRig) -> None:
    rig.hub.user("lea", "lea-token")
    rig.tenant("phoenix", "rita", members=("ann",))
    for user in ("rita", "ann"):
        assert rig.ask("DELETE", f"/tenants/phoenix/members/{user}", token=rig.root_user).status == 200
    assert rig.ask("DELETE", "/tenants/phoenix", token=rig.root_user).status == 200
    rig.tenant("phoenix", "lea")
    entries = rig.ask("GET", "/tenants/phoenix/audit", token="lea-token").json
    assert {e["object"] for e in entries} <= {"phoenix", "lea"}
