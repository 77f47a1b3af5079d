"""Many small files come in one request: each is whole and verified, or the refusal names the first that is not."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

import pytest

from mlp_hub.dav.files.batches import BATCH_MAX, KIND, LINE_MAX, MOST_FILES
from support.rigs.api_rig import Answer, ApiRig
from support.rigs.dav_rig import LOCK, MIB, DavRig, left_over, on_disk, settled


def line(path: str, content: bytes, *, size: int | None = None, digest: str = "") -> bytes:
    length = len(content) if size is None else size
    return f"{length} {digest or sha256(content).hexdigest()} {quote(path)}\n".encode() + content


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def send(dav: DavRig, data: str, body: bytes, **more: str) -> Answer:
    return dav.ask("POST", data, body, headers={"Content-Type": KIND, **more})


def test_many_files_are_stored_with_their_checksums_and_charged(
    rig: ApiRig, dav: DavRig, data: str, team: str
) -> None:
    files = {f"f{n:03}": os.urandom(n) for n in range(1, 60)} | {"Ünïcode, with spaces\n.txt": b"x" * 1000}
    answer = send(dav, data, b"".join(line(path, content) for path, content in files.items()))
    assert (answer.status, answer.body) == (200, b'{"files": 60}')
    for path, content in files.items():
        got = dav.ask("GET", f"{data}/{quote(path)}")
        assert (got.status, got.body) == (200, content)
        assert "repr-digest" in got.headers
    settled(rig, team, sum(map(len, files.values())))
    assert send(dav, data, line("f001", b"another")).status == 200
    settled(rig, team, sum(map(len, files.values())) + 6)
    assert dav.ask("GET", f"{data}/f001").body == b"another"


def test_what_follows_a_file_that_cannot_be_stored_is_not_stored(
    rig: ApiRig, dav: DavRig, data: str, team: str
) -> None:
    bad = line("b", b"content", digest="0" * 64)
    answer = send(dav, data, line("a", b"first") + bad + line("c", b"third"))
    assert (answer.status, "SHA-256" in answer.json["msg"]) == (400, True)
    assert names(on_disk(rig, data)) == ["a"]
    settled(rig, team, 5)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"\n", 400),
        (b"12 nothing\n", 400),
        (line("../../bob/secret", b"x"), 400),
        (line("a/../../x", b"x"), 400),
        (line("nul\0", b"x"), 400),
        (line("/", b"x"), 400),
        (line("nowhere/f", b"x"), 409),
        (b"1 " + b"0" * 64 + b" %ff\nx", 400),
        (b"-1 " + b"0" * 64 + b" f\n", 400),
        (line("f", b"x", size=10**9 - 1), 400),
        (b"1 " + b"0" * 64 + b" " + b"a" * (LINE_MAX + 70_000), 400),
        (line("n" * 300, b"x"), 400),
        (line("f", b"x")[:-1], 400),
        (b"".join(line(f"f{n}", b"") for n in range(MOST_FILES + 1)), 400),
    ],
)
def test_attacks_a_request_that_is_not_a_list_of_files_is_refused(
    rig: ApiRig, dav: DavRig, data: str, team: str, body: bytes, status: int
) -> None:
    assert send(dav, data, body).status == status
    assert not list((rig.root / "datasets").rglob("secret*"))
    assert set(names(on_disk(rig, data))) <= {f"f{n}" for n in range(MOST_FILES)}
    assert not left_over(rig)


def test_attacks_many_files_take_no_more_than_the_quota(
    rig: ApiRig, dav: DavRig, data: str, team: str
) -> None:
    three = b"".join(line(f"f{n}", os.urandom(MIB)) for n in range(3))
    assert send(dav, data, three).status == 200
    settled(rig, team, 3 * MIB)
    answer = send(dav, data, b"".join(line(f"g{n}", os.urandom(MIB)) for n in range(8)))
    assert answer.status == 507
    settled(rig, team, 3 * MIB)
    too_long = b"".join(line(f"h{n}", bytes(MIB)) for n in range(BATCH_MAX // MIB + 1))
    assert send(dav, data, too_long).status == 413
    assert names(on_disk(rig, data)) == ["f0", "f1", "f2"]


def test_attacks_many_files_go_where_single_ones_may_and_nowhere_else(
    rig: ApiRig, dav: DavRig, data: str, team: str
) -> None:
    body = line("f", b"mine")
    assert send(dav, data, body).status == 200
    assert dav.ask("POST", data, body, headers={"Content-Type": KIND}, token="bob-token").status in {403, 404}
    assert dav.ask("POST", data, body, headers={"Content-Type": KIND}, token="none").status == 401
    assert dav.ask("POST", f"{data}/below", body, headers={"Content-Type": KIND}).status == 403
    assert dav.ask("POST", data, body).status in {400, 405, 415, 501}, "another kind of body is not taken"
    (on_disk(rig, data) / "way").symlink_to("/etc")
    assert send(dav, data, line("way/mlp-was-here", b"x")).status == 409
    assert not Path("/etc/mlp-was-here").exists()
    locked = dav.ask("LOCK", f"{data}/f", LOCK.format(owner="me").encode())
    assert locked.status in {200, 201}
    assert send(dav, data, line("g", b"free") + line("f", b"of another")).status == 423
    assert dav.ask("GET", f"{data}/f").body == b"mine"


def test_files_of_a_directory_come_in_one_answer_by_their_names(dav: DavRig, data: str) -> None:
    files = {"a": b"one", "b c&d": b"two\n", "empty": b""}
    assert send(dav, data, b"".join(line(path, content) for path, content in files.items())).status == 200
    assert dav.ask("MKCOL", f"{data}/dir").status == 201
    asked = "&".join(
        f"contents={quote(name, safe='')}" for name in [*files, "dir", *map(str, range(200)), "../a", ".."]
    )
    answer = dav.ask("GET", f"{data}?{asked}")
    assert (answer.status, answer.headers["content-type"]) == (200, KIND)
    assert answer.body == b"".join(line(path, content) for path, content in files.items())
    assert "sandbox" in answer.headers["content-security-policy"]


def test_attacks_an_answer_with_many_files_is_bounded_and_leads_nowhere_else(
    rig: ApiRig, dav: DavRig, data: str
) -> None:
    assert send(dav, data, b"".join(line(f"f{n}", bytes(MIB)) for n in range(4))).status == 200
    (on_disk(rig, data) / "link").symlink_to("/etc/passwd")
    os.mkfifo(on_disk(rig, data) / "pipe")
    asked = "&".join(f"contents={name}" for name in ["link", "pipe", "f0", "f1", "f2", "f3", "f0"])
    answer = dav.ask("GET", f"{data}?{asked}")
    assert answer.status == 200
    assert answer.body == line("f0", bytes(MIB)) + line("f1", bytes(MIB))
    assert dav.ask("GET", f"{data}?{asked}", token="bob-token").status in {403, 404}
    assert dav.ask("GET", f"{data}?contents=" + "&contents=".join(["f"] * 501)).status == 400
    assert dav.ask("GET", f"{data}?contents=" + "x" * 40_000).status in {400, 413, 414}
