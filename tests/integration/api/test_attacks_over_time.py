"""Curves over time are of the own team, and bad questions are refused in words."""

from __future__ import annotations

import json

import pytest

from support.rigs.api_rig import Answer, ApiRig


def ask(rig: ApiRig, path: str, token: str) -> Answer:
    return rig.ask("GET", path, token=token)


def test_members_see_their_own_team_only_and_admins_of_teams_no_cluster(rig: ApiRig) -> None:
    rig.run(rig.platform.over_time.sampler.sample())
    for token in (rig.ann, rig.rita, rig.root_user):
        found = ask(rig, "/tenants/red/over-time", token)
        assert (found.status, found.json["tenant"]) == (200, "red")
        assert found.json["amounts"][0]["held"][-1] == 1.0
    for token in (rig.ann, rig.rita):
        other = ask(rig, "/tenants/blue/over-time", token)
        missing = ask(rig, "/tenants/nothing/over-time", token)
        assert other.status == missing.status == 403
        assert other.json["reason"] == missing.json["reason"]
        assert other.json["msg"].replace("blue", "nothing") == missing.json["msg"]
    for token in (rig.ann, rig.rita, rig.blue):
        assert ask(rig, "/over-time", token).status == 403
    assert ask(rig, "/tenants/nothing/over-time", rig.root_user).json["reason"] == "NotFound"
    everything = ask(rig, "/over-time?span=month", rig.root_user)
    assert (everything.status, everything.json["tenant"]) == (200, None)
    for name in (b"ann", b"digits", b"rita"):
        assert name not in everything.body, "curves name nobody"


def test_the_name_of_the_cluster_is_not_a_tenant(rig: ApiRig) -> None:
    for name in ("", "%20", "%00", "*", "..", "%2e%2e"):
        answer = ask(rig, f"/tenants/{name}/over-time", rig.ann)
        assert answer.status in (400, 403, 404), name
        assert b"amounts" not in answer.body


@pytest.mark.parametrize(
    "query",
    [
        "span=year", "span=", "span=hour&span=day", "span=%00", "step=0", "step=-30", "step=1", "step=45", "step=1e3",
        "step=nan", "step=99999999999999999999", "span=month&step=60", "span=day&step=30", "span=week&step=2592000",
        "since=0", "tenant=blue", "limit=5", "step=30;drop",
    ],
)  # fmt: skip
def test_a_question_that_makes_no_sense_is_refused_in_words(rig: ApiRig, query: str) -> None:
    for path, token in (("/over-time", rig.root_user), ("/tenants/red/over-time", rig.ann)):
        answer = ask(rig, f"{path}?{query}", token)
        assert (answer.status, answer.json["reason"]) == (403, "Invalid"), answer.body
        assert answer.json["msg"]


def test_answers_are_bounded_whatever_is_asked(rig: ApiRig) -> None:
    rig.run(rig.platform.over_time.sampler.sample())
    for span, finest in (("hour", 30), ("day", 300), ("week", 3600), ("month", 3600)):
        answer = ask(rig, f"/over-time?span={span}&step={finest}", rig.root_user)
        assert answer.status == 200
        assert len(answer.json["samples"]) <= 1000
        assert len(answer.body) < 200_000
        lists = [
            value
            for value in answer.json.values()
            if isinstance(value, list) and value and not isinstance(value[0], dict)
        ]
        assert {len(one) for one in lists} == {len(answer.json["samples"])}
        assert "NaN" not in json.dumps(answer.json)
