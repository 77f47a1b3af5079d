"""Alerts and silences over REST: who sees and silences what, bad input, what is written down, and hostile text."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mlp_hub.service.support import limits
from support.rigs.api_rig import ApiRig, a_silence

OVER = "MLPTenantOverQuota"


@pytest.fixture(autouse=True)
def _no_silence_stays(rig: ApiRig) -> Any:
    yield
    for one in rig.ask("GET", "/alerts", token=rig.root_user).json["silences"]:
        assert rig.ask("DELETE", f"/silences/{one['id']}", token=rig.root_user).status == 200


def silenced(rig: ApiRig, path: str = "/alerts", token: str = "") -> list[dict[str, Any]]:
    answer = rig.ask("GET", path, token=token or rig.root_user)
    assert answer.status == 200, answer.body
    found: list[dict[str, Any]] = answer.json["silences"]
    return found


def in_days(days: float) -> str:
    return (datetime.now(UTC) + timedelta(days=days)).isoformat()


@pytest.mark.parametrize("who", ["ann", "rita", "blue"])
def test_only_the_platforms_admins_see_and_silence_everything(rig: ApiRig, who: str) -> None:
    token = getattr(rig, who)
    assert rig.ask("GET", "/alerts", token=token).status == 403
    assert rig.ask("POST", "/silences", a_silence(rule=OVER), token=token).status == 403
    assert rig.ask("POST", "/silences", a_silence(tenant="red"), token=token).status == 403
    made = rig.ask("POST", "/silences", a_silence(rule=OVER), token=rig.root_user)
    assert made.status == 201, made.body
    assert rig.ask("DELETE", f"/silences/{made.json['id']}", token=token).status == 403
    assert len(silenced(rig)) == 1


def test_an_admin_of_a_team_silences_that_team_alone(rig: ApiRig) -> None:
    made = rig.ask("POST", "/tenants/red/silences", a_silence(rule=OVER), token=rig.rita)
    assert made.status == 201, made.body
    assert (made.json["tenant"], made.json["of_team"], made.json["made_by"]) == ("red", True, "rita")
    number = made.json["id"]
    for path, token in (
        ("/tenants/red/silences", rig.blue),
        ("/tenants/red/silences", rig.ann),
        ("/tenants/blue/silences", rig.rita),
        ("/tenants/nothing/silences", rig.rita),
    ):
        assert rig.ask("POST", path, a_silence(), token=token).status == 403, path
        assert rig.ask("DELETE", f"{path}/{number}", token=token).status == 403, path
    assert rig.ask("DELETE", f"/tenants/blue/silences/{number}", token=rig.blue).status == 403
    assert rig.ask("GET", "/tenants/red/alerts", token=rig.blue).status == 403
    assert rig.ask("GET", "/tenants/red/alerts", token=rig.ann).status == 403
    assert silenced(rig, "/tenants/blue/alerts", rig.blue) == []
    assert [one["id"] for one in silenced(rig, "/tenants/red/alerts", rig.rita)] == [number]
    assert rig.ask("DELETE", f"/tenants/red/silences/{number}", token=rig.rita).status == 200


def test_a_body_cannot_name_another_team(rig: ApiRig) -> None:
    asked = a_silence(tenant="blue")
    answer = rig.ask("POST", "/tenants/red/silences", asked, token=rig.rita)
    assert (answer.status, answer.json["reason"]) == (403, "Invalid")
    assert silenced(rig) == []


def test_an_admin_of_a_team_does_not_end_what_the_platform_silenced(rig: ApiRig) -> None:
    of_red = rig.ask("POST", "/tenants/red/silences", a_silence(), token=rig.root_user).json
    of_all = rig.ask("POST", "/silences", a_silence(rule=OVER), token=rig.root_user).json
    nodes = rig.ask("POST", "/silences", a_silence(rule="MLPNodeLost", reason="secret"), token=rig.root_user)
    assert nodes.status == 201, nodes.body
    assert not of_red["of_team"]
    for one in (of_red, of_all, nodes.json):
        answer = rig.ask("DELETE", f"/tenants/red/silences/{one['id']}", token=rig.rita)
        assert (answer.status, answer.json["reason"]) == (403, "NotFound")
    shown = silenced(rig, "/tenants/red/alerts", rig.rita)
    assert [one["id"] for one in shown] == [of_red["id"], of_all["id"]]  # nothing of nodes
    rules = rig.ask("GET", "/tenants/red/alerts", token=rig.rita).json["rules"]
    assert {one["name"] for one in rules} == {OVER, "MLPTenantJobFailuresHigh"}


BAD: dict[str, dict[str, Any]] = {
    "no end": {"until": None},
    "no time zone": {"until": "2031-01-01T00:00:00"},
    "in the past": {"until": "2001-01-01T00:00:00Z"},
    "now": {"until": in_days(0)},
    "too long": {"until": in_days(limits.SILENCE_DAYS + 1)},
    "year 9999": {"until": "9999-12-31T23:59:59Z"},
    "no reason": {"reason": ""},
    "blanks": {"reason": "   "},
    "lines": {"reason": "a\nb"},
    "a long reason": {"reason": "x" * 501},
    "not a rule": {"rule": "MLPNothing"},
    "a regex": {"rule": ".*"},
    "a number": {"rule": 7},
    "a field more": {"of_team": False},
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_silence_is_refused_and_nothing_is_stored(rig: ApiRig, what: str) -> None:
    body = {key: value for key, value in (a_silence() | BAD[what]).items() if value is not None}
    for path, token, more in (
        ("/silences", rig.root_user, {"tenant": "red"}),
        ("/tenants/red/silences", rig.rita, {}),
    ):
        answer = rig.ask("POST", path, body | more, token=token)
        assert (answer.status, answer.json["reason"]) == (403, "Invalid"), answer.body
        assert len(answer.json["msg"]) > 20
    assert silenced(rig) == []


def test_a_silence_names_its_rule_or_team(rig: ApiRig) -> None:
    answer = rig.ask("POST", "/silences", a_silence(), token=rig.root_user)
    assert (answer.status, answer.json["reason"]) == (403, "Invalid")
    assert "name a rule, a team or both" in answer.json["msg"]


def test_silences_are_in_the_audit_log_of_the_platform_and_of_the_team(rig: ApiRig) -> None:
    made = rig.ask("POST", "/tenants/red/silences", a_silence(reason="<b>we know</b>"), token=rig.rita).json
    assert made["reason"] == "<b>we know</b>"  # plain text, which is shown as text
    rig.ask("DELETE", f"/tenants/red/silences/{made['id']}", token=rig.rita)
    for path, token in (("/audit?limit=20", rig.root_user), ("/tenants/red/audit?limit=20", rig.rita)):
        rows = rig.ask("GET", path, token=token).json
        acts = [(row["action"], row["actor"]) for row in rows if row["object"] == str(made["id"])]
        assert sorted(acts) == [("silence.end", "rita"), ("silence.make", "rita")]
    rows = rig.ask("GET", "/tenants/blue/audit?limit=50", token=rig.blue).json
    assert not [row for row in rows if row["action"].startswith("silence.")]


def test_a_flood_of_silences_ends_in_a_refusal_in_words(rig: ApiRig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SILENCES", 2)
    for _ in range(2):
        assert rig.silence("red", rig.rita)
    answer = rig.ask("POST", "/tenants/red/silences", a_silence(), token=rig.rita)
    assert (answer.status, answer.json["reason"]) == (403, "Invalid")
    assert "there are 2 silences" in answer.json["msg"]
    assert rig.silence("blue", rig.blue)  # others have their own share
    assert rig.ask("POST", "/silences", a_silence(rule=OVER), token=rig.root_user).status == 201


def test_the_same_request_sent_again_is_one_silence(rig: ApiRig) -> None:
    asked = a_silence(rule=OVER)
    key = {"Idempotency-Key": "once"}
    first = rig.ask("POST", "/silences", asked, token=rig.root_user, headers=key)
    assert rig.ask("POST", "/silences", asked, token=rig.root_user, headers=key).json == first.json
    assert len(silenced(rig)) == 1
