"""What `mlp data pull` writes is what was asked for, whatever a server says and whatever the line does."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

import mlp.data
from mlp.client.rest import Client
from mlp.data.remote import Cut, Remote
from mlp.errors import Refused, TransferFailed, TransferStopped, Unreachable, UsageError

BODY = bytes(range(256)) * 4096


@dataclass
class OneAnswer:
    """What a file's answer is: its bytes, what is said of them, and after how many it is cut."""

    body: bytes = BODY
    digest: bytes | None = hashlib.sha256(BODY).digest()
    cut: int = len(BODY)


@dataclass
class Story:
    names: list[Any] = field(default_factory=lambda: ["f"])
    answers: list[OneAnswer] = field(default_factory=lambda: [OneAnswer()])
    ranges: list[str] = field(default_factory=list)
    listing: bytes = b""


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Telling)
        self.story = Story()


class Telling(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def list(self) -> None:
        story = self.server.story
        at = story.answers[0]
        one = {
            "directory": False,
            "size": len(at.body),
            "tag": '"t"',
            "digest": said(at.digest),
            "modified": "",
        }
        body = json.dumps({"entries": [{"name": name, **one} for name in story.names], "next": None}).encode()
        body = story.listing or body
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        if "?entries" in self.path:
            self.list()
            return
        story = self.server.story
        at = story.answers.pop(0) if len(story.answers) > 1 else story.answers[0]
        story.ranges.append(self.headers.get("Range", ""))
        start = int(story.ranges[-1].removeprefix("bytes=").removesuffix("-") or 0)
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(at.body) - 1}/{len(at.body)}")
        self.send_header("Repr-Digest", said(at.digest))
        self.send_header("Content-Length", str(len(at.body) - start))
        self.end_headers()
        self.wfile.write(at.body[start : start + at.cut])
        self.close_connection = True

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(201)
        self.send_header("Content-Length", "0")
        self.send_header("Connection", "close")  # as a proxy says after so many requests
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


def said(digest: bytes | None) -> str:
    return f"sha-256=:{base64.b64encode(digest).decode()}:" if digest else ""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as found:
        thread = threading.Thread(target=found.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield found
        found.shutdown()


@pytest.fixture
def client(server: Server) -> Client:
    address = f"http://127.0.0.1:{server.server_address[1]}"
    return Client(f"{address}/api/v1", "token", "ann", data_url=f"{address}/data", patience=0.0)


@pytest.fixture
def patient(client: Client) -> Client:
    client.patience = 60.0
    return client


def all_below(path: Path) -> list[str]:
    return sorted(str(found.relative_to(path)) for found in path.rglob("*"))


@pytest.mark.parametrize(
    "odd", ["../x", "..", ".", "a/x", "/etc/x", "..%2fx", "x\0y", "\udcff", "", "x" * 256]
)
def test_a_listing_cannot_lead_out_of_the_directory(
    server: Server, client: Client, tmp_path: Path, odd: str
) -> None:
    server.story.names = ["good", odd]
    with pytest.raises(TransferFailed, match="outside of the requested directory"):
        mlp.data.pull("pets", tmp_path / "in" / "here", client=client)
    assert all_below(tmp_path) == []
    assert server.story.ranges == []


def test_names_that_are_odd_come_as_they_are(server: Server, client: Client, tmp_path: Path) -> None:
    names = ["a b&<c>;\"'.txt", "çé\n", "-rf", "~", "百", "c:d\\e", "..."]
    server.story.names = names
    mlp.data.pull("pets", tmp_path, client=client)
    assert all_below(tmp_path) == sorted(names)


def test_a_download_that_is_not_what_its_checksum_says_is_not_kept(
    server: Server, client: Client, tmp_path: Path
) -> None:
    old = tmp_path / "f"
    old.write_bytes(b"old")
    server.story.answers = [OneAnswer(BODY[:-1] + b"!")]
    with pytest.raises(TransferFailed, match="content that differs from its checksum"):
        mlp.data.pull("pets", tmp_path, client=client)
    assert (all_below(tmp_path), old.read_bytes()) == (["f"], b"old")
    assert server.story.ranges == ["", ""], "it is asked for once more, from its beginning"


def test_an_interrupted_download_continues_at_the_same_byte(
    server: Server, patient: Client, tmp_path: Path
) -> None:
    server.story.answers = [OneAnswer(cut=1000), OneAnswer(cut=5000), OneAnswer()]
    found = mlp.data.pull("pets", tmp_path, client=patient)
    assert (tmp_path / "f").read_bytes() == BODY
    assert server.story.ranges == ["", "bytes=1000-", "bytes=6000-"]
    assert (found.data["came"], found.data["unverified"]) == (["f"], [])


def test_a_partial_download_of_another_process_is_continued(
    server: Server, client: Client, tmp_path: Path
) -> None:
    server.story.answers = [OneAnswer(cut=300_000)]
    with pytest.raises(Unreachable):
        mlp.data.pull("pets", tmp_path, client=client)
    assert not (tmp_path / "f").exists()
    (part,) = tmp_path.iterdir()
    assert part.read_bytes() == BODY[:300_000]
    server.story.answers = [OneAnswer()]
    mlp.data.pull("pets", tmp_path, client=client)
    assert server.story.ranges[-1] == "bytes=300000-"
    assert (all_below(tmp_path), (tmp_path / "f").read_bytes()) == (["f"], BODY)


def test_a_partial_download_of_an_older_version_is_not_mixed_in(
    server: Server, client: Client, tmp_path: Path
) -> None:
    server.story.answers = [OneAnswer(cut=300_000)]
    with pytest.raises(Unreachable):
        mlp.data.pull("pets", tmp_path, client=client)
    new = BODY[::-1]
    server.story.answers = [OneAnswer(new, hashlib.sha256(new).digest())]
    mlp.data.pull("pets", tmp_path, client=client)
    assert (tmp_path / "f").read_bytes() == new


def test_a_file_that_is_here_is_not_fetched_again(server: Server, client: Client, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(BODY)
    found = mlp.data.pull("pets", tmp_path, client=client)
    assert (found.data["there"], found.data["came"], server.story.ranges) == (1, [], [])


def test_a_link_that_has_the_name_is_replaced_and_never_written_through(
    server: Server, client: Client, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.write_bytes(BODY)
    here = tmp_path / "here"
    here.mkdir()
    (here / "f").symlink_to(other)
    server.story.answers = [OneAnswer(b"new", hashlib.sha256(b"new").digest())]
    mlp.data.pull("pets", here, client=client)
    assert (other.read_bytes(), (here / "f").read_bytes()) == (BODY, b"new")


def test_attack_a_link_that_has_the_name_of_the_part_is_not_written_through(
    server: Server, client: Client, tmp_path: Path
) -> None:
    mine, here = tmp_path / "mine", tmp_path / "of several people"
    mine.write_text("mine")
    server.story.answers = [OneAnswer(cut=300_000)]
    with pytest.raises(Unreachable):
        mlp.data.pull("pets", here, client=client)
    (part,) = here.iterdir()
    part.unlink()
    part.symlink_to(mine)
    server.story.answers = [OneAnswer()]
    with pytest.raises(UsageError):
        mlp.data.pull("pets", here, client=client)
    assert mine.read_text() == "mine"


def test_a_file_without_a_checksum_comes_and_is_named(server: Server, client: Client, tmp_path: Path) -> None:
    server.story.answers = [OneAnswer(digest=None)]
    found = mlp.data.pull("pets", tmp_path, client=client)
    assert found.data["unverified"] == ["f"]
    assert "no checksum of 1 file: f" in repr(found)


def test_a_stopped_download_keeps_the_received_bytes_and_creates_no_file(
    server: Server, client: Client, tmp_path: Path
) -> None:
    stop = threading.Event()
    server.story.answers = [OneAnswer()]

    def told(done: int, _: int) -> None:
        if done:
            stop.set()

    with pytest.raises(TransferStopped):
        mlp.data.pull("pets", tmp_path, client=client, stop=stop, progress=told)
    assert not (tmp_path / "f").exists()


@pytest.mark.parametrize(
    "listing",
    [
        b"<html>no",
        b"[]",
        b'{"entries": [1], "next": null}',
        b'{"entries": [{"name": 1}]}',
        b'{"entries": {}}',
        b"[" * 9999,
    ],
)
def test_an_answer_that_is_not_a_listing_is_reported(
    server: Server, client: Client, tmp_path: Path, listing: bytes
) -> None:
    server.story.listing = listing
    with pytest.raises(Unreachable):
        mlp.data.pull("pets", tmp_path, client=client)


def test_another_pull_at_the_same_file_is_told(server: Server, client: Client, tmp_path: Path) -> None:
    begun, go = threading.Event(), threading.Event()
    problems: list[BaseException] = []

    def told(done: int, _: int) -> None:
        if done:
            begun.set()
            go.wait(60)

    def first() -> None:
        try:
            mlp.data.pull("pets", tmp_path, client=client, progress=told)
        except BaseException as error:  # noqa: BLE001 - looked at below
            problems.append(error)

    thread = threading.Thread(target=first)
    thread.start()
    assert begun.wait(60)
    with pytest.raises(UsageError, match="another mlp data pull"):
        mlp.data.pull("pets", tmp_path, client=client)
    go.set()
    thread.join(60)
    assert (problems, (tmp_path / "f").read_bytes()) == ([], BODY)


def test_a_file_that_is_not_there_is_told(server: Server, client: Client, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="dataset pets has no g"):
        mlp.data.pull("pets:g", tmp_path, client=client)


def test_an_answer_that_ends_its_connection_ends_nothing_else(client: Client) -> None:
    remote = Remote(client, "pets")
    for _ in range(3):
        digest = hashlib.sha256(BODY).digest()
        assert remote.put("f", BytesIO(BODY), len(BODY), digest, lambda _: None)
        part = remote.put_part("f", BytesIO(BODY), (0, 1000, len(BODY)), digest, lambda _: None)
        assert part == len(BODY)
    remote.close()


def test_a_file_that_became_shorter_is_a_cut_and_no_fault(client: Client) -> None:
    remote = Remote(client, "pets")
    with pytest.raises(Cut, match="shorter"):
        remote.put("f", BytesIO(BODY[:10]), len(BODY), hashlib.sha256(BODY).digest(), lambda _: None)
    remote.close()
