"""What a job left is listed and fetched over REST: in pages, in parts, and never from anywhere else."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from mlp.cli import main
from support.rigs.api_rig import BASE, Answer, ApiRig, parts_of_story

FILES = "/users/ann/jobs/digits/files"
WEIGHTS = bytes(range(256)) * 4096  # more than is read at a time


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiRig]:
    with ApiRig(tmp_path_factory.mktemp("files")) as rig:
        parts_of_story(rig)
        ckpt = job_of(rig) / "ckpt"
        (ckpt / "best.pt").write_bytes(WEIGHTS)
        (ckpt / "empty").touch()
        (ckpt / "step").mkdir()
        (ckpt / "latest").symlink_to("best.pt")
        yield rig


def job_of(rig: ApiRig) -> Path:
    return rig.rig.workspace("ann", "digits")


def fetch(rig: ApiRig, path: str, token: str | None = None, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return rig.ask(
        "GET", f"{FILES}/content?path={quote(path, safe='')}", token=token or rig.ann, headers=named
    )


def names(rig: ApiRig, path: str, **query: Any) -> list[tuple[str, str, int]]:
    more = "".join(f"&{name}={value}" for name, value in query.items())
    answer = rig.ask("GET", f"{FILES}?path={quote(path, safe='')}{more}", token=rig.ann)
    assert answer.status == 200, answer.body
    return [(e["name"], e["kind"], e["size"]) for e in answer.json]


def test_the_tree_of_a_job_is_listed(rig: ApiRig) -> None:
    assert names(rig, "") == [(n, "directory", 0) for n in ("ckpt", "code", "log", "metrics")]
    found = [
        ("best.pt", "file", len(WEIGHTS)),
        ("empty", "file", 0),
        ("last.pt", "file", 7),
        ("latest", "link", 0),
        ("step", "directory", 0),
    ]
    for path in ("ckpt", "ckpt/", "/workspace/ckpt"):
        assert names(rig, path) == found
    assert names(rig, "ckpt/step") == []


def test_a_long_list_comes_in_pages_without_a_gap(rig: ApiRig) -> None:
    many = job_of(rig) / "many"
    many.mkdir()
    for n in range(25):
        (many / f"{n:02}").touch()
    hostile = os.fsencode(many) + b"/\xff\xfe"
    os.close(os.open(hostile, os.O_CREAT, 0o600))
    (many / "<b>\n\u202e").touch()
    found: list[tuple[str, str]] = []
    cursor = ""
    while True:
        answer = rig.ask("GET", f"{FILES}?path=many&limit=7{cursor}", token=rig.ann)
        found += [(e["name"], e["kind"]) for e in answer.json]
        if "x-next-cursor" not in answer.headers:
            break
        cursor = f"&cursor={quote(answer.headers['x-next-cursor'])}"
    expected = {*((f"{n:02}", "file") for n in range(25)), ("<b>\n\u202e", "file"), ("\ufffd\ufffd", "other")}
    assert set(found) == expected
    assert len(found) == len(expected)


def test_a_file_comes_whole_and_in_parts(rig: ApiRig) -> None:
    whole = fetch(rig, "ckpt/best.pt")
    assert (whole.status, whole.body) == (200, WEIGHTS)
    assert whole.headers["content-disposition"] == "attachment; filename*=UTF-8''best.pt"
    assert whole.headers["content-type"] == "application/octet-stream"
    assert fetch(rig, "ckpt/empty").body == b""
    size = len(WEIGHTS)
    for asked, start, end in (
        ("0-0", 0, 1),
        ("300000-", 300_000, size),
        ("-5", size - 5, size),
        ("9-99999999", 9, size),
    ):
        part = fetch(rig, "ckpt/best.pt", Range=f"bytes={asked}")
        assert (part.status, part.body) == (206, WEIGHTS[start:end])
        assert part.headers["content-range"] == f"bytes {start}-{end - 1}/{size}"
    for asked in ("bytes=1-2,4-5", "lines=1-2", "bytes=-", "bytes=9" * 1000):
        assert fetch(rig, "ckpt/best.pt", Range=asked).status == 200
    for asked in (f"bytes={size}-", "bytes=5-4", "bytes=-0"):
        refused = fetch(rig, "ckpt/best.pt", Range=asked)
        assert (refused.status, refused.json["reason"]) == (403, "Invalid")
        assert str(size).replace(",", "") in refused.json["msg"].replace(",", "")


def test_a_range_of_a_file_that_was_rewritten_returns_the_whole_file(rig: ApiRig) -> None:
    path = job_of(rig) / "ckpt" / "again"
    path.write_bytes(b"first")
    tag = fetch(rig, "ckpt/again").headers["etag"]
    assert fetch(rig, "ckpt/again", Range="bytes=2-", If_Range=tag).body == b"rst"
    path.write_bytes(b"second one")
    answer = fetch(rig, "ckpt/again", Range="bytes=2-", If_Range=tag)
    assert (answer.status, answer.body) == (200, b"second one")


@pytest.mark.parametrize(
    "path",
    [
        "..", "../../bob/secret", "ckpt/../../digits", "/etc/passwd", "//etc/passwd", "/workspace/../x", "ckpt//best.pt",
        "ckpt/./best.pt", "ckpt/best.pt\0", "\0", "a/" * 101 + "b", "x" * 256, "\u4e2d" * 86,
    ],
)  # fmt: skip
def test_a_path_outside_the_job_is_refused_with_a_valid_form(rig: ApiRig, path: str) -> None:
    for answer in (
        fetch(rig, path),
        rig.ask("GET", f"{FILES}?path={quote(path, safe='')}", token=rig.ann),
    ):
        assert (answer.status, answer.json["reason"]) == (403, "Invalid")
        assert "it must be " in answer.json["msg"]


@pytest.mark.parametrize(
    "path", ["%252e%252e", "..;", "%2e%2e%2fbob", "ckpt/nothing", "ckpt/best.pt/x", "~/x"]
)
def test_an_encoded_path_is_a_name_that_is_not_there(rig: ApiRig, path: str) -> None:
    answer = fetch(rig, path)
    assert answer.status == 403
    assert answer.json["reason"] in ("NotFound", "Invalid")


def test_a_huge_name_costs_nothing(rig: ApiRig) -> None:
    answer = fetch(rig, "x" * 4097)
    assert (answer.status, answer.json["reason"]) == (403, "Invalid")
    assert len(answer.body) < 2000
    # the head of a request is bounded before anybody looks at it
    with contextlib.suppress(OSError, http.client.HTTPException):
        assert fetch(rig, "x" * 10 * 2**20).status in (400, 431)
    assert fetch(rig, "ckpt/empty").status == 200


def test_links_pipes_and_directories_are_told_as_such(rig: ApiRig) -> None:
    job = job_of(rig)
    (rig.root / "secret").write_text("secret")
    (job / "out").symlink_to(rig.root)
    (job / "file").symlink_to(rig.root / "secret")
    os.mkfifo(job / "pipe")
    for path, said in (
        ("out/secret", "link"),
        ("file", "link"),
        ("ckpt/latest", "link"),
        ("pipe", "not a plain file"),
        ("ckpt", "is a directory"),
    ):
        answer = fetch(rig, path)
        assert (answer.status, answer.json["reason"]) == (403, "Invalid")
        assert said in answer.json["msg"]
    assert rig.ask("GET", f"{FILES}?path=out", token=rig.ann).json["reason"] == "Invalid"
    answer = rig.ask("GET", f"{FILES}?path=ckpt/best.pt", token=rig.ann)
    assert "is not a directory" in answer.json["msg"]


def test_others_files_answer_as_what_is_not_there(rig: ApiRig) -> None:
    for token in (rig.bob, rig.blue):
        for path in ("", "/content?path=ckpt/best.pt"):
            there = rig.ask("GET", FILES + path, token=token)
            missing = rig.ask("GET", FILES.replace("digits", "nothing") + path, token=token)
            assert there.status == missing.status == 403
            assert there.json["reason"] == missing.json["reason"] == "NotFound"
            assert there.json["msg"].replace("digits", "nothing") == missing.json["msg"]
    assert fetch(rig, "ckpt/best.pt", token=rig.rita).body == WEIGHTS  # the admin of its tenant


def test_files_are_listed_and_fetched_by_the_command(
    rig: ApiRig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    socket = quote(str(rig.sockets[True]), safe="")
    monkeypatch.setenv("MLP_API_URL", f"http+unix://{socket}{BASE}")
    monkeypatch.setenv("MLP_TOKEN", rig.ann)
    monkeypatch.chdir(tmp_path)
    ckpt = job_of(rig) / "ckpt"
    (ckpt / "step" / "weights").write_bytes(WEIGHTS)
    assert main(["files", "digits", "ckpt"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"best\.pt +1 MiB", said)
    assert "step/" in said
    assert "latest@" in said
    assert main(["get", "digits", "ckpt"]) == 0
    assert "latest" in capsys.readouterr().out
    assert (tmp_path / "ckpt/best.pt").read_bytes() == WEIGHTS
    assert (tmp_path / "ckpt/step/weights").read_bytes() == WEIGHTS
    assert not (tmp_path / "ckpt/latest").exists()
    assert main(["files", "digits", "./ckpt/"]) == 0
    for number, all_of_it in enumerate((".", "./", "/workspace")):
        assert main(["get", "digits", all_of_it, f"all-{number}"]) == 0
        assert (tmp_path / f"all-{number}/ckpt/step/weights").read_bytes() == WEIGHTS
    assert main(["get", "digits@1", "./ckpt/best.pt", "mine.pt"]) == 0
    assert (tmp_path / "mine.pt").read_bytes() == WEIGHTS
    assert main(["get", "digits", "ckpt/nothing"]) == 3
    assert "file ckpt/nothing does not exist here" in capsys.readouterr().err
    assert main(["get", "digits"]) == 2
    (ckpt / "step" / "weights").unlink()
