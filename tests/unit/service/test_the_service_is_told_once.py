"""What holds files asks and tells again where no answer came, under the same key; and says whether its token is known."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingMixIn, UnixStreamServer
from typing import Any

import pytest

from mlp_hub.dav import access_client as doors
from mlp_hub.dav.access_client import AccessClient
from mlp_hub.service.health import files
from mlp_hub.service.health.files import FilesWatch
from mlp_hub.service.health.problems import Problem
from support.waiting import wait_for

UID = "0" * 26


class _Server(ThreadingMixIn, UnixStreamServer):
    daemon_threads = True
    told: list[tuple[str, dict[str, Any]]]
    script: list[int | None]  # statuses of the next answers; None: none comes. After that all is well
    says: bytes = b"{}"


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.told.append((self.path.rpartition("/")[2], json.loads(body or b"{}")))
        status = self.server.script.pop(0) if self.server.script else 200
        if status is None:
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self.send_response(status)
        self.send_header("Content-Length", str(len(self.server.says)))
        self.end_headers()
        self.wfile.write(self.server.says)

    do_GET = do_PUT = _answer  # noqa: N815 - names of http.server

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        """Say nothing."""

    def address_string(self) -> str:
        return "here"


@contextmanager
def service(path: Path, *script: int | None) -> Iterator[_Server]:
    server = _Server(str(path), _Handler)
    server.told, server.script = [], list(script)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def where(tmp_path: Path) -> Path:
    return tmp_path / "s"


def test_a_take_without_an_answer_is_asked_for_again_under_its_key(where: Path) -> None:
    with service(where, None, 503) as served:
        assert AccessClient(where, "token").request_room(UID, 7).status == 200
        assert [path for path, _ in served.told] == ["stored:take"] * 3
        assert len({told["once"] for _, told in served.told}) == 1


def test_a_take_that_is_never_answered_is_taken_back(where: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doors, "TAKEN_S", 0)
    with service(where, None) as served:
        assert AccessClient(where, "token").request_room(UID, 7).status == 503
        wait_for(lambda: len(served.told) == 2, message="for it to be taken back")
        (_, taken), (path, back) = served.told
        assert path == "stored:give"
        assert (back["granted"], back["grown"], back["took"]) == (7, 0, taken["once"])


def test_a_write_is_reported_again_under_its_key_until_it_is_received(where: Path) -> None:
    with service(where, None, None, 503) as served:
        AccessClient(where, "token").report_written(UID, 7, 5)
        wait_for(lambda: len(served.told) == 4, message="for it to be heard")
        assert len({told["once"] for _, told in served.told}) == 1


@pytest.mark.parametrize(("status", "refused"), [(200, False), (401, True), (403, True), (503, None)])
def test_it_knows_whether_its_token_is_known(where: Path, status: int, refused: bool | None) -> None:
    with service(where, status):
        door = AccessClient(where, "token")
        assert door.begun() is (status == 200)
        assert door.refused is refused


def look(path: Path) -> list[Problem]:
    return list(asyncio.run(FilesWatch(path).problems()))


def test_health_tells_what_does_not_work_of_it(where: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert look(where) == [], "it was never started"
    with service(where) as served:
        served.says = b'{"ready": true, "token": "accepted"}'
        assert look(where) == []
        served.says = b'{"ready": false, "token": "refused"}'
        (refused,) = look(where)
        assert (refused.component, refused.reason, refused.fails) == ("data", "DataRefused", True)
        served.script.append(None)
        (cut,) = look(where)
        assert cut.reason == "DataUnavailable"
    (dead,) = look(where)  # its socket is still there
    assert dead.reason == "DataUnavailable"
    monkeypatch.setattr(files, "ANSWER_S", 0.05)
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(where.with_name("silent")))
        silent.listen()
        (hung,) = look(where.with_name("silent"))
    assert hung.reason == "DataUnavailable"
