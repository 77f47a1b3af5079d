"""The note of a job is written by its owner only, has a limit, stays text, and is the same as the note of the run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from mlp.rendering import job_picture
from support.rigs.api_rig import ApiRig, started

NOTE = "/users/ann/jobs/digits/note"
EVIL = "<img src=x onerror=alert(1)>\x1b]0;title\x07\n\u202eRunning  100 %\0"


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiRig]:
    yield from started(tmp_path_factory.mktemp("notes"))


@pytest.fixture(autouse=True)
def _without_a_note(rig: ApiRig) -> Iterator[None]:
    yield
    assert rig.ask("PUT", NOTE, {"note": ""}, token=rig.ann).status == 200


def noted(rig: ApiRig, token: str = "") -> str:
    """Return the note as the job has it and, in the same words, as the run has it."""
    job = rig.ask("GET", "/users/ann/jobs/digits", token=token or rig.ann).json
    run = rig.ask("GET", "/users/ann/runs/digits", token=token or rig.ann).json
    assert job["note"] == run["run"]["note"]
    return str(job["note"])


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"note": "x" * 501}, "at most 500 characters"),
        ({"note": None}, "note"),
        ({"note": 5}, "note"),
        ({"note": ["x"]}, "note"),
        ({}, "note"),
        ({"note": "x", "tags": ["y"]}, "tags"),
        ({"text": "x"}, "text"),
        ([], "object"),
        ("x", "object"),
    ],
)
def test_only_a_short_text_is_taken_as_a_note(rig: ApiRig, body: Any, says: str) -> None:
    assert rig.ask("PUT", NOTE, {"note": "kept"}, token=rig.ann).json["note"] == "kept"
    answer = rig.ask("PUT", NOTE, body, token=rig.ann)
    assert (answer.status, answer.json["reason"]) == (403, "Invalid"), answer.body
    assert says in answer.json["msg"]
    assert noted(rig) == "kept"


def test_500_characters_are_stored_and_an_empty_text_removes_them(rig: ApiRig) -> None:
    for text in ("ü" * 500, "第" * 500, "\U0001f600" * 500):
        assert rig.ask("PUT", NOTE, {"note": text}, token=rig.ann).json["note"] == text
        assert noted(rig) == text
    assert rig.ask("PUT", NOTE, {"note": ""}, token=rig.ann).json["note"] == ""
    assert noted(rig) == ""


def test_nobody_but_its_owner_writes_a_note_and_another_tenant_does_not_see_it(rig: ApiRig) -> None:
    assert rig.ask("PUT", NOTE, {"note": "secret plan"}, token=rig.ann).status == 200
    own = rig.job_token(rig.ask("GET", "/users/ann/jobs/digits", token=rig.ann).json["uid"])
    for who in (rig.bob, rig.blue, rig.rita, own, "", "no-token"):
        answer = rig.ask("PUT", NOTE, {"note": "theirs"}, token=who)
        assert answer.status in {401, 403}, answer.body
        assert b"secret plan" not in answer.body
    for who in (rig.bob, rig.blue):
        for path in ("/users/ann/jobs/digits", "/users/ann/jobs", "/users/ann/runs/digits", "/queue"):
            assert b"secret plan" not in rig.ask("GET", path, token=who).body
    missing = rig.ask("PUT", "/users/ann/jobs/none/note", {"note": "x"}, token=rig.blue)
    there = rig.ask("PUT", NOTE, {"note": "x"}, token=rig.blue)
    assert (missing.status, missing.json["reason"]) == (there.status, there.json["reason"])
    assert missing.json["msg"].replace("none", "digits") == there.json["msg"]
    assert noted(rig) == noted(rig, rig.rita) == "secret plan", "an admin of the team reads it"


@pytest.mark.parametrize("name", ["none", "digits@9", "%20", "..", "app~site-1", "digits%00", "a" * 300])
def test_a_note_of_a_job_that_is_not_there_is_refused(rig: ApiRig, name: str) -> None:
    answer = rig.ask("PUT", f"/users/ann/jobs/{name}/note", {"note": "x"}, token=rig.ann)
    assert answer.status in {400, 403, 404}, answer.body
    assert noted(rig) == ""


def test_a_note_is_text_wherever_it_is_shown(rig: ApiRig) -> None:
    job = rig.ask("PUT", NOTE, {"note": EVIL}, token=rig.ann).json
    assert job["note"] == noted(rig) == EVIL.replace("\0", "\ufffd")
    shown = job_picture.text({"job": job})
    assert not set(shown) & set("\x1b\x07\u202e")
    assert "\nRunning" not in shown, "a note does not look like a line of the job"
    assert "<img" not in job_picture.html({"job": job})


def test_the_run_and_the_job_have_one_note_and_each_run_its_own(rig: ApiRig) -> None:
    long = "x" * 2000
    assert rig.ask("PUT", "/users/ann/runs/digits", {"note": long}, token=rig.ann).json["note"] == long
    assert noted(rig) == long
    found = rig.ask("GET", "/users/ann/runs?search=note=XXX&sort=note", token=rig.ann).json
    assert [(r["name"], r["note"]) for r in found["runs"]] == [("digits", long)]
    rig.job("ann", "fit", rig.ann)
    rig.ask("PUT", "/users/ann/jobs/fit/note", {"note": "first"}, token=rig.ann)
    assert rig.ask("PUT", "/users/ann/jobs/fit:cancel", token=rig.ann).status == 200
    ended = rig.until("ann", "fit", "cancelled")
    assert ended["note"] == "first", "the moves of a job keep its note"
    told: list[str] = []
    rig.platform.board.on_change(lambda job, _before: told.append(job.uid))
    late = rig.ask("PUT", "/users/ann/jobs/fit/note", {"note": "too slow"}, token=rig.ann).json
    assert (late["note"], late["phase"], late["finished_at"]) == (
        "too slow",
        "cancelled",
        ended["finished_at"],
    )
    assert ended["uid"] not in told, "it does not end once more"
    rig.job("ann", "fit", rig.ann)
    notes = [rig.ask("GET", f"/users/ann/jobs/fit@{n}", token=rig.ann).json["note"] for n in (1, 2)]
    assert notes == ["too slow", ""]
    assert rig.ask("PUT", "/users/ann/jobs/fit:cancel", token=rig.ann).status == 200


def test_a_note_that_another_person_writes_is_in_the_audit_log_and_an_owners_is_not(rig: ApiRig) -> None:
    assert rig.ask("PUT", NOTE, {"note": "mine"}, token=rig.ann).status == 200
    assert rig.ask("PUT", NOTE, {"note": "of the platform"}, token=rig.root_user).status == 200
    assert rig.ask("PUT", NOTE, {"note": "of the platform"}, token=rig.root_user).status == 200, "no change"
    entries = json.loads(rig.ask("GET", "/audit?action=job.note", token=rig.root_user).body)
    (entry,) = entries if isinstance(entries, list) else entries["items"]
    assert (entry["actor"], entry["object"], entry["tenant"]) == ("admin", "digits", "red")
    assert entry["detail"]["after"] == {"note": "of the platform"}
