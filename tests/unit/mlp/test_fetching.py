"""A file that is fetched comes whole, whatever the line does meanwhile."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from mlp.client.downloads import download, fetch
from mlp.client.rest import Client
from mlp.errors import Refused, Unreachable, UsageError

OLD, NEW = b"old content " * 1000, b"the new one " * 1500


class Shaky(ThreadingHTTPServer):
    """Serves one file, of which each answer is cut after so many bytes; `turns` is what it is by then."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.turns: list[tuple[bytes, int]] = []
        self.asked: list[str] = []


class Answering(BaseHTTPRequestHandler):
    server: Shaky

    def do_GET(self) -> None:
        if "/files?" in self.path:
            names = {"": [("file", "a"), ("link", "b"), ("file", "../evil"), ("directory", "..")]}
            path = re.search(r"path=([^&]*)", self.path)
            self._json(names.get(path[1] if path else "", []))
            return
        self.server.asked.append(self.headers.get("Range", ""))
        data, cut = self.server.turns.pop(0) if len(self.server.turns) > 1 else self.server.turns[0]
        tag = f'"{hash(data):x}"'
        start = 0
        if self.headers.get("Range") and self.headers.get("If-Range") == tag:
            start = int(self.headers["Range"].removeprefix("bytes=").removesuffix("-"))
        self.send_response(206 if start else 200)
        self.send_header("ETag", tag)
        self.send_header("Content-Length", str(len(data) - start))
        self.end_headers()
        self.wfile.write(data[start : start + cut])
        self.close_connection = True

    def _json(self, entries: list[tuple[str, str]]) -> None:
        body = json.dumps([{"kind": kind, "name": name} for kind, name in entries]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def shaky() -> Iterator[Shaky]:
    with Shaky() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def client(server: Shaky, **more: Any) -> Client:
    """Return a client whose time passes only while it sleeps, which takes none."""
    slept: list[float] = []
    return Client(
        f"http://127.0.0.1:{server.server_port}",
        "t",
        "ann",
        sleep=slept.append,
        clock=lambda: sum(slept),
        **more,
    )


def test_a_download_continues_where_the_connection_was_cut(shaky: Shaky, tmp_path: Path) -> None:
    shaky.turns = [(OLD, 5000), (OLD, 3000), (OLD, 10**6)]
    assert download(client(shaky), "/x", tmp_path / "file") == len(OLD)
    assert (tmp_path / "file").read_bytes() == OLD
    assert shaky.asked == ["", "bytes=5000-", "bytes=8000-"]
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_of_a_file_that_is_another_one_by_now_all_comes(shaky: Shaky, tmp_path: Path) -> None:
    shaky.turns = [(OLD, 5000), (NEW, 2000), (NEW, 10**6)]
    assert download(client(shaky), "/x", tmp_path / "file") == len(NEW)
    assert (tmp_path / "file").read_bytes() == NEW


def test_a_download_that_never_completes_is_reported_and_the_existing_file_stays(
    shaky: Shaky, tmp_path: Path
) -> None:
    shaky.turns = [(OLD, 5000), (OLD, 0)]
    (tmp_path / "file").write_text("mine")
    with pytest.raises(Unreachable):
        download(client(shaky, patience=0.5), "/x", tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_attack_a_link_that_has_the_name_of_the_part_is_not_written_through(
    shaky: Shaky, tmp_path: Path
) -> None:
    shaky.turns = [(OLD, 10**6)]
    (tmp_path / "mine").write_text("mine")
    here = tmp_path / "of several people"
    here.mkdir()
    (here / ".file.part").symlink_to(tmp_path / "mine")
    with pytest.raises(UsageError):
        download(client(shaky), "/x", here / "file")
    assert (tmp_path / "mine").read_text() == "mine"


def test_a_directory_never_writes_beside_where_it_goes(shaky: Shaky, tmp_path: Path) -> None:
    shaky.turns = [(OLD, 10**6)]
    here = tmp_path / "here"
    here.mkdir()
    found = fetch(client(shaky), "/users/ann/jobs/digits", "", here, "digits")
    assert found.left_out == ["b", "../evil", ".."]
    assert [p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*")] == [
        "here",
        "here/digits",
        "here/digits/a",
    ]


def test_a_refusal_is_told(shaky: Shaky, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Answering) -> None:
        self.send_response(403)
        self.end_headers()
        self.wfile.write(b'{"msg": "job digits does not exist", "reason": "NotFound"}')
        self.close_connection = True

    monkeypatch.setattr(Answering, "do_GET", refuse)
    with pytest.raises(Refused, match="job digits does not exist"):
        fetch(client(shaky), "/users/ann/jobs/digits", "ckpt", tmp_path, "digits")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", ["", ".", "./", ".//"])
def test_a_dot_is_all_of_it(shaky: Shaky, tmp_path: Path, path: str) -> None:
    shaky.turns = [(NEW, 10**6)]
    found = fetch(client(shaky), "/users/ann/jobs/run", path, tmp_path / "got", "run")
    assert [file["path"] for file in found.files] == ["a"]
    assert (tmp_path / "got" / "a").read_bytes() == NEW
