"""What the hub tells the service of people, without a request of theirs: it counts at once, and nobody else may say it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mlp_hub.api.auth.authentication import POSITIVE_S
from mlp_hub.api.edge.sockets import TOKEN_ENDED
from support.rigs.api_rig import ApiRig, drain
from support.waiting import wait_for

HERS = {"code": "x", "cpu": 1.0, "ram": 100, "tenant": "red"}


@pytest.fixture
def own(tmp_path: Path) -> Iterator[ApiRig]:
    with ApiRig(tmp_path) as rig:
        rig.tenant("red", "rita")
        yield rig


def say(rig: ApiRig, user: str, token: str | None = None, **told: object) -> int:
    return rig.ask("PUT", f"/users/{user}:standing", told, token=token or rig.spawner).status


def place(rig: ApiRig, user: str) -> str | None:
    found = rig.ask("GET", "/tenants/red/members", token=rig.root_user).json
    return next((m["source"] for m in found if m["user"] == user), None)


@pytest.mark.parametrize("who", ["root_user", "operator", "ann", "rita", "notebook"])
def test_only_the_hub_reports_the_standing_of_people_and_asks_for_working_users(
    own: ApiRig, who: str
) -> None:
    token = getattr(own, who)
    assert say(own, "ann", token, groups=["red"]) == 403
    assert own.ask("GET", "/users:working", token=token).status == 403
    assert own.ask("PUT", "/login:standing", {"away": True}, token=token).status == 403
    assert own.ask("GET", "/health").json["status"] == "ok"
    assert place(own, "ann") is None


def test_a_user_who_loses_a_group_can_no_longer_submit_there(own: ApiRig) -> None:
    assert say(own, "ann", groups=["red"], left_out=["3 of 9 groups are left out"]) == 200
    assert place(own, "ann") == "group"
    told = own.ask("GET", "/audit?action=group.left_out", token=own.root_user).json
    assert [e["detail"]["message"] for e in told] == ["3 of 9 groups are left out"]
    own.hub.tokens[own.ann]["groups"] = ["red"]
    assert own.ask("POST", "/users/ann/jobs", {"name": "one", **HERS}, token=own.ann).status == 201
    assert own.ask("GET", "/users:working", token=own.spawner).json == ["ann"]
    assert own.ask("GET", "/users:working?after=ann", token=own.spawner).json == []
    own.hub.tokens[own.ann]["groups"] = []
    assert say(own, "ann", groups=[]) == 200
    assert place(own, "ann") is None
    assert own.ask("POST", "/users/ann/jobs", {"name": "two", **HERS}, token=own.ann).status == 403


@pytest.mark.parametrize("why", ["disabled", "session"])
def test_a_token_that_has_ended_is_not_believed_a_moment_longer_and_streams_close(
    own: ApiRig, why: str
) -> None:
    assert say(own, "ann", groups=["red"]) == 200
    own.hub.tokens[own.ann]["groups"] = ["red"]
    assert own.ask("GET", "/auth", token=own.ann).status == 200
    own.job("ann", "long", own.ann, tenant="red")
    with own.socket("/users/ann/jobs/long:stream", token=own.ann) as stream:
        del own.hub.tokens[own.ann]
        assert say(own, "ann", ended=why) == 200
        assert own.ask("GET", "/auth", token=own.ann).status == 401, f"believed for up to {POSITIVE_S} s"
        assert drain(stream)[1] == TOKEN_ENDED
    assert place(own, "ann") == (None if why == "disabled" else "group")


def test_the_server_of_a_disabled_user_ends_if_a_group_gave_the_membership(own: ApiRig) -> None:
    assert say(own, "ann", groups=["red"]) == 200
    key = {"id": "ann/", "applier": "sp"}
    asked = {
        **key,
        "request_type": "request",
        "tenant": "red",
        "cpu": 0.2,
        "ram": 100,
        "user": "ann",
        "holder": "h",
    }
    for verb, body in (("try", asked), ("confirm", key)):
        assert own.ask("PUT", f"/resource_request:{verb}", body, token=own.spawner).status == 200
    own.hub.servers.add(("ann", ""))
    assert say(own, "ann", ended="disabled") == 200
    wait_for(lambda: not own.hub.servers)


def test_a_provider_that_is_away_is_told_to_everybody_until_it_is_back(own: ApiRig) -> None:
    def told(away: object) -> int:
        return own.ask("PUT", "/login:standing", {"away": away}, token=own.spawner).status

    assert told(True) == 200
    answer = own.ask("GET", "/health")
    assert (answer.status, answer.json["status"]) == (200, "degraded")
    [problem] = answer.json["problems"]
    assert (problem["component"], problem["reason"]) == ("login", "ProviderUnavailable")
    assert told("perhaps") == 403
    assert told(False) == 200
    assert own.ask("GET", "/health").json["status"] == "ok"


def test_groups_that_no_hub_of_ours_sends_are_refused(own: ApiRig) -> None:
    assert say(own, "ann", groups=["g" * 256]) == 403
    assert say(own, "ann", groups=[f"g{n}" for n in range(1001)]) == 403
    assert say(own, "ann", groups=[""]) == 403
    assert say(own, "ann", ended="for good") == 403
