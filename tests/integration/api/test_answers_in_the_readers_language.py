"""A refusal is told in its reader's language, and as data."""

from __future__ import annotations

import time

from mlp_language.message import msg
from support.rigs.api_rig import ApiRig


def test_a_refusal_says_in_which_language_it_is_and_comes_as_data(rig: ApiRig) -> None:
    answer = rig.ask("GET", "/users/ann/jobs/none", token=rig.ann, headers={"Accept-Language": "zh-CN"})
    assert (answer.status, answer.json["reason"]) == (403, "NotFound")
    assert answer.headers["content-language"] == "zh-CN"
    assert "Accept-Language" in answer.headers["vary"]
    assert answer.json["detail"]["id"]


def test_an_unknown_caller_is_answered_in_their_language(rig: ApiRig) -> None:
    answer = rig.ask("GET", "/auth", headers={"Cookie": "mlp-language=zh-CN"})
    assert (answer.status, answer.headers["content-language"]) == (401, "zh-CN")


def test_a_zone_that_nobody_asked_for_yet_is_read_off_the_event_loop(rig: ApiRig) -> None:
    assert (
        rig.ask("GET", "/users/ann/jobs", token=rig.ann, headers={"Time-Zone": "Asia/Shanghai"}).status == 200
    )


def test_a_sentence_of_the_audit_log_is_read_in_any_language(rig: ApiRig) -> None:
    why = msg("{user} is no longer a member of {tenant}", user="zoe", tenant="red")
    with rig.rig.db.begin() as tx:
        for _ in range(2):  # the same again is counted in its entry
            tx.audit.add(time.time(), "system", "server.stop", "zoe's notebook", detail={"message": why})
    for language, text in (
        ("en", "zoe is no longer a member of red"),
        ("zh-CN", "zoe 已不再是 red 的成员"),
    ):
        headers = {"Accept-Language": language}
        (entry,) = rig.ask(
            "GET", "/audit?object=zoe%27s%20notebook", token=rig.root_user, headers=headers
        ).json
        assert (entry["detail"]["message"], entry["detail"]["times"]) == (text, 2)
