"""The language that a user chose for good goes before what their browser or terminal asks for, wherever they ask from."""

from __future__ import annotations

from typing import Any

import pytest

from support.rigs.api_rig import ApiRig

MINE = "/users/ann/preferences"


@pytest.fixture
def spoken(rig: ApiRig) -> Any:
    yield rig
    rig.ask("PATCH", MINE, {"language": ""}, token=rig.ann)


def language(rig: ApiRig, token: str, **headers: str) -> str:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return str(rig.ask("GET", "/auth", token=token, headers=sent).headers["content-language"])


def test_a_user_without_a_chosen_language_is_answered_in_the_requested_one(rig: ApiRig) -> None:
    assert rig.ask("GET", MINE, token=rig.ann).json == {"language": ""}
    assert language(rig, rig.ann, Accept_Language="zh-CN") == "zh-CN"


def test_the_setting_goes_before_cookie_and_header_from_the_next_request_on(spoken: ApiRig) -> None:
    rig = spoken
    assert rig.ask("PATCH", MINE, {"language": "zh-CN"}, token=rig.ann).json == {"language": "zh-CN"}
    assert rig.ask("GET", MINE, token=rig.ann).json == {"language": "zh-CN"}
    assert rig.ask("GET", "/session", token=rig.ann).json["language"] == "zh-CN"
    assert language(rig, rig.ann, Accept_Language="en", Cookie="mlp-language=en") == "zh-CN"
    refused = rig.ask("GET", "/users/ann/jobs/none", token=rig.ann, headers={"Accept-Language": "en"})
    assert (refused.status, refused.headers["content-language"]) == (403, "zh-CN")
    assert language(rig, rig.bob, Accept_Language="en") == "en"
    rig.ask("PATCH", MINE, {"language": ""}, token=rig.ann)
    assert language(rig, rig.ann, Accept_Language="en") == "en"


def test_a_language_that_is_not_spoken_here_is_refused(rig: ApiRig) -> None:
    assert rig.ask("PATCH", MINE, {"language": "tlh"}, token=rig.ann).json["reason"] == "Invalid"


def test_nobody_chooses_for_another(rig: ApiRig) -> None:
    answer = rig.ask("PATCH", MINE, {"language": "zh-CN"}, token=rig.bob)
    assert (answer.status, answer.json["reason"]) == (403, "NotFound")


def test_an_administrator_makes_nobody_known_by_choosing_for_them(rig: ApiRig) -> None:
    answer = rig.ask("PATCH", "/users/ghost/preferences", {"language": "zh-CN"}, token=rig.root_user)
    assert (answer.status, answer.json["reason"]) == (403, "NotFound")


def test_a_jobs_ranks_are_spoken_to_as_who_submitted_it_is(spoken: ApiRig) -> None:
    rig = spoken

    def said_in(reference: str) -> str:
        name, _, run = reference.partition("@")
        return next(
            job.spec.language
            for job in rig.platform.board.jobs.values()
            if (job.spec.user, job.spec.name, str(job.run)) == ("ann", name, run)
        )

    chinese, long = {"Accept-Language": "zh-CN"}, {"SIM_DURATION": "60"}
    body = {"name": "speaks", "code": "x", "env": long}
    rig.ask("POST", "/users/ann/jobs", body, token=rig.ann, headers=chinese)
    assert said_in("speaks@1") == "zh-CN"
    rig.ask("PATCH", MINE, {"language": "en"}, token=rig.ann)
    rig.ask("POST", "/users/ann/jobs", {**body, "name": "tells"}, token=rig.ann, headers=chinese)
    assert said_in("tells@1") == ""
    rig.ask("PATCH", MINE, {"language": ""}, token=rig.ann)
    rig.ask("PUT", "/users/ann/jobs/tells:cancel", token=rig.ann)
    rig.until("ann", "tells", "cancelled")
    rig.ask("PUT", "/users/ann/jobs/tells:resubmit", {}, token=rig.ann, headers=chinese)
    assert said_in("tells@2") == "zh-CN"
    for name in ("speaks", "tells"):
        rig.ask("PUT", f"/users/ann/jobs/{name}:cancel", token=rig.ann)
        rig.until("ann", name, "cancelled")
