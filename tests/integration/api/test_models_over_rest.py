"""Models over REST and by the command: registered, listed, fetched, staged, removed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from mlp.cli import main
from support.files.model_files import FORMATS, WEIGHTS
from support.rigs.api_rig import BASE, ApiRig, a_model, parts_of_story
from support.waiting import wait_for

MODELS = "/users/ann/models"


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiRig]:
    with ApiRig(tmp_path_factory.mktemp("models")) as rig:
        parts_of_story(rig)
        top = rig.rig.workspace("ann", "digits") / "best"
        top.mkdir()
        for name, data in FORMATS["safetensors"].items():
            (top / name).write_bytes(data)
        yield rig


@pytest.fixture
def shell(rig: ApiRig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Be ann in a shell of hers, in an empty directory."""
    socket = quote(str(rig.sockets[True]), safe="")
    monkeypatch.setenv("MLP_API_URL", f"http+unix://{socket}{BASE}")
    monkeypatch.setenv("MLP_TOKEN", rig.ann)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(rig: ApiRig, body: dict[str, Any], token: str | None = None) -> tuple[str, str]:
    answer = rig.ask("POST", MODELS, body, token=token or rig.ann)
    assert answer.status == 403, answer.body
    return answer.json["reason"], answer.json["msg"]


def test_a_model_has_all_its_fields_and_its_files(rig: ApiRig) -> None:
    found = a_model(rig, "whole", src="jobs/digits/best", any_files=False)
    size = sum(map(len, FORMATS["safetensors"].values()))
    told = {
        k: found[k] for k in ("name", "version", "user", "tenant", "size", "files", "src", "state", "stage")
    }
    assert told == {
        "name": "whole", "version": 1, "user": "ann", "tenant": "red", "size": size, "files": 2,
        "src": "jobs/digits@1/best", "state": "ready", "stage": "none",
    }  # fmt: skip
    assert (found["format"], found["pickled"], found["facts"]) == (
        "safetensors",
        False,
        {"tensors": "2", "values": "9"},
    )
    assert found["lineage"]["job"] == "digits"
    listed = rig.ask("GET", f"{MODELS}/whole/files", token=rig.ann).json
    assert [(e["name"], e["kind"]) for e in listed] == [
        ("config.json", "file"),
        ("model.safetensors", "file"),
    ]
    part = rig.ask(
        "GET",
        f"{MODELS}/whole/files/content?path=model.safetensors",
        token=rig.ann,
        headers={"Range": "bytes=-9"},
    )
    assert (part.status, part.body) == (206, WEIGHTS[-9:])
    described = rig.ask("GET", f"{MODELS}/whole/mlmodel", token=rig.rita)
    assert described.headers["content-type"].startswith("text/plain")
    assert b'    data: "model.safetensors"' in described.body
    usage = rig.ask("GET", "/tenants/red", token=rig.rita).json
    assert usage["rom_inuse"] >= size


def test_names_and_bodies_that_cannot_be_are_refused(rig: ApiRig) -> None:
    src = "jobs/digits/best"
    for body in (
        {"name": "Net", "src": src},
        {"name": "..", "src": src},
        {"name": "n" * 51, "src": src},
        {"name": "x" * 10**6, "src": src},
        {"name": "net\0", "src": src},
        {"name": "net@2", "src": src},
        {"name": "net", "src": ""},
        {"name": "net", "src": "x" * 4097},
        {"name": "net", "src": "jobs/digits/../../../etc"},
        {"name": "net", "src": "file:///etc/passwd"},
        {"name": "net"},
        {"src": src},
        {"name": "net", "src": src, "state": "ready"},
    ):
        reason, said = refused(rig, body)
        assert reason == "Invalid"
        assert len(said) < 1000
    for name in ("..%2fnet", "net%00", "NET", "net@0", "net@x", "%2e%2e"):
        answer = rig.ask("GET", f"{MODELS}/{name}", token=rig.ann)
        assert (answer.status, answer.json["reason"]) == (403, "NotFound")


def test_nobody_registers_anothers_files(rig: ApiRig) -> None:
    mine = {"name": "theirs", "src": "/mlp/jobs/ann/digits/best"}
    for body in (mine, {"name": "theirs", "src": "jobs/digits/best"}):
        answer = rig.ask("POST", "/users/bob/models", body, token=rig.bob)
        assert (answer.status, answer.json["reason"]) == (403, "NotFound")
    assert refused(rig, mine, rig.bob)[0] == "NotFound"
    assert refused(rig, {**mine, "tenant": "blue"})[0] == "Invalid"


def test_a_key_that_is_sent_again_registers_nothing_more(rig: ApiRig) -> None:
    body = {"name": "once", "src": "jobs/digits/best"}
    answers = [
        rig.ask("POST", MODELS, body, token=rig.ann, headers={"Idempotency-Key": "k"}) for _ in range(2)
    ]
    assert [a.status for a in answers] == [201, 201]
    assert answers[0].json["uid"] == answers[1].json["uid"]
    assert len(rig.ask("GET", f"{MODELS}?name=once", token=rig.ann).json) == 1


def test_lists_are_filtered_and_come_in_pages(rig: ApiRig) -> None:
    for _ in range(3):
        a_model(rig, "many", src="jobs/digits/best")
    rig.ask("PUT", f"{MODELS}/many@2:stage", {"stage": "staging"}, token=rig.ann)
    first = rig.ask("GET", f"{MODELS}?name=many&limit=2", token=rig.ann)
    rest = rig.ask(
        "GET", f"{MODELS}?name=many&limit=2&cursor={first.headers['x-next-cursor']}", token=rig.ann
    )
    assert [m["version"] for m in first.json + rest.json] == [3, 2, 1]
    assert "x-next-cursor" not in rest.headers
    for query, found in (
        ("stage=staging", [2]),
        ("state=error", []),
        ("tenant=blue", []),
        ("state=ready", [3, 2, 1]),
    ):
        answer = rig.ask("GET", f"{MODELS}?name=many&{query}", token=rig.ann)
        assert [m["version"] for m in answer.json] == found
    for query in ("state=asleep", "stage=Production", "limit=0", "name=..", "x=1"):
        assert rig.ask("GET", f"{MODELS}?{query}", token=rig.ann).json["reason"] == "Invalid"


def test_models_are_handled_by_the_command(
    rig: ApiRig, shell: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["models", "register", "cmd", "jobs/digits/best"]) == 0
    assert "cmd@1" in capsys.readouterr().out
    wait_for(
        lambda: rig.ask("GET", f"{MODELS}/cmd", token=rig.ann).json["state"] == "ready",
        message="for cmd to be copied",
    )
    assert main(["models"]) == 0
    assert "safetensors" in capsys.readouterr().out
    assert main(["models", "ls", "cmd"]) == 0
    assert "cmd" in capsys.readouterr().out
    assert main(["models", "stage", "cmd", "production"]) == 0
    assert "cmd@1 is in production" in capsys.readouterr().out
    assert main(["models", "show", "cmd@1"]) == 0
    said = capsys.readouterr().out
    assert "jobs/digits@1/best" in said
    assert "production" in said
    assert main(["models", "get", "cmd"]) == 0
    assert (shell / "cmd/model.safetensors").read_bytes() == WEIGHTS
    assert "safetensors:" in (shell / "cmd/MLmodel").read_text()
    assert main(["models", "rm", "cmd@1"]) == 0
    assert main(["models", "show", "nothing"]) == 3
    assert main(["models", "stage", "cmd", "best"]) == 2
    assert main(["models", "register", "cmd"]) == 2
    capsys.readouterr()
