"""What becomes of who leaves, over REST: said before, chosen, done after, and undone by an approval."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from support.rigs.api_rig import ApiRig
from support.waiting import wait_for

_numbers = count()


def leaving(rig: ApiRig, user: str) -> dict[str, Any]:
    answer = rig.ask("GET", f"/users/{user}/leaving", token=rig.root_user)
    assert answer.status == 200, answer.body
    found: dict[str, Any] = answer.json
    return found


def until_left(rig: ApiRig, user: str) -> dict[str, Any]:
    wait_for(lambda: leaving(rig, user)["departure"]["stage"] == "left", message=f"for {user} to have left")
    return leaving(rig, user)


@pytest.fixture
def una(rig: ApiRig) -> Iterator[str]:
    """Name somebody new, with a job that runs and one that waits; their token is NAME-token."""
    una = f"una{next(_numbers)}"
    token = rig.hub.user(una, f"{una}-token")
    assert rig.ask("PUT", f"/users/{una}:approve", token=rig.root_user).status == 200
    for name, cpu in (("runs", 1), ("waits", 64)):
        body = {
            "name": name,
            "code": "x",
            "cpu": cpu,
            "ram": 100,
            "env": {"SIM_DURATION": "600"},
        }
        assert rig.ask("POST", f"/users/{una}/jobs", body, token=token).status == 201
    rig.until(una, "runs", "running")
    yield una
    # what would wait here would be in the way of others
    assert rig.ask("PUT", f"/users/{una}?jobs=stop", token=rig.root_user).status == 200
    until_left(rig, una)


def test_the_consequences_of_leaving_are_shown_beforehand_with_numbers(rig: ApiRig, una: str) -> None:
    rig.dataset(una, "pets", f"{una}-token")
    rig.app(una, "site", f"{una}-token")
    found = rig.ask("GET", f"/users/{una}/leaving", token=f"{una}-token").json
    assert (found["datasets"], found["models"], found["stored"]) == (1, 0, 0)
    assert found["apps"] == 1
    # replicas of the app are no jobs of hers
    assert (found["running"], found["waiting"], found["tokens"], found["servers"]) == (1, 1, 1, 0)
    assert (found["state"], found["tenants"], found["departure"]) == ("Actived", ["default"], None)
    answer = rig.ask("PUT", f"/users/{una}?jobs=stop", {"whatever": [1]}, token=f"{una}-token")
    assert (answer.status, answer.json["reason"]) == (403, "Invalid"), "it reads like a change of something"
    answer = rig.ask("PUT", f"/users/{una}?jobs=stop", {}, token=f"{una}-token")
    assert (answer.status, answer.json["state"]) == (200, "NotActive")
    after = until_left(rig, una)
    assert (after["departure"]["jobs"], after["departure"]["files"]) == ("stop", "keep")
    assert (after["departure"]["actor"], after["departure"]["stopped"]) == (una, 2)
    rig.until(una, "runs", "cancelled")
    after = leaving(rig, una)
    assert (after["running"], after["apps"]) == (0, 0)


def test_a_user_who_is_let_in_again_begins_without_the_removed_files(rig: ApiRig, una: str) -> None:
    assert rig.ask("PUT", f"/users/{una}?jobs=stop&files=remove", token=rig.root_user).status == 200
    after = until_left(rig, una)
    assert after["departure"]["removed"] >= 2
    assert (after["running"], after["waiting"], after["ended"]) == (0, 0, 0)
    told = rig.ask("GET", f"/audit?object={una}&limit=1", token=rig.root_user).json[0]
    assert (told["action"], told["detail"]["files"]) == ("user.left", "remove")
    assert rig.ask("PUT", f"/users/{una}:approve", token=rig.root_user).json["state"] == "Actived"
    assert leaving(rig, una)["departure"] is None
    assert rig.ask("GET", f"/users/{una}/jobs", token=f"{una}-token").json == []


def test_nobody_is_asked_to_guess_what_may_be_chosen(rig: ApiRig, una: str) -> None:
    for query, word in (("jobs=kill", "finish"), ("files=burn", "remove"), ("force=1", "force")):
        answer = rig.ask("PUT", f"/users/{una}?{query}", token=f"{una}-token")
        assert (answer.status, answer.json["reason"]) == (403, "Invalid")
        assert word in answer.json["msg"]
    assert leaving(rig, una)["departure"] is None


def test_nobody_else_learns_of_it_or_does_it(rig: ApiRig, una: str) -> None:
    for method, path in (("GET", f"/users/{una}/leaving"), ("PUT", f"/users/{una}?files=remove")):
        for token in (rig.bob, rig.rita, rig.notebook):
            assert rig.ask(method, path, token=token).status == 403
    assert leaving(rig, una)["state"] == "Actived"
