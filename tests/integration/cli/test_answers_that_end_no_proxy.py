"""Whatever a user's server answers, the proxy lives and serves everybody else."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlp_hub.unix_sockets import url_of
from support.proxy.running_proxy import RunningProxy

ANSWERS = (
    b"HTTP/1.1 200 OK\r\nTrailer: x\r\nContent-Length: 2\r\n\r\nok",
    b"HTTP/1.1 204 No Content\r\nTrailer: x\r\n\r\n",
    b"HTTP/1.1 099 X\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 000 X\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 999 X\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 200 O\x01K\r\nContent-Length: 2\r\n\r\nok",
    b"HTTP/1.1 200 \xc3\xa4\xff\r\nContent-Length: 2\r\n\r\nok",
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    b"HTTP/1.1 200 OK\r\nSet-Cookie: a=\x01b\r\nX-Odd: \xff\xfe\r\nContent-Length: 2\r\n\r\nok",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok!",
    b"HTTP/1.1 200 OK\r\nLocation: http://\xff\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 302 Found\r\nLocation: //[\r\nContent-Length: 0\r\n\r\n",
    b"nonsense\r\n\r\n",
    b"",
)


class Raw:
    """A server on a UNIX socket that says these bytes to every request and closes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.answer = b""
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(path))
        self._server.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                link, _ = self._server.accept()
            except OSError:
                return
            with link, contextlib.suppress(OSError):
                link.recv(65536)
                link.sendall(self.answer)

    def close(self) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()


@pytest.fixture
def raw(tmp_path: Path) -> Iterator[Raw]:
    made = Raw(tmp_path / "user.sock")
    yield made
    made.close()


@pytest.mark.parametrize("data", [{"user": "ann"}, {}], ids=["a user's", "the platform's"])
def test_no_answer_of_a_server_ends_the_proxy(tmp_path: Path, raw: Raw, data: dict[str, str]) -> None:
    running = RunningProxy(tmp_path)
    running.start()
    try:
        made = running.routes("POST", "/user/ann", {"target": url_of(raw.path), **data})
        assert made.status == 201
        for raw.answer in ANSWERS:
            for more in ({}, {"Connection": "Upgrade", "Upgrade": "websocket"}):
                with contextlib.suppress(OSError):  # an answer cut off, as it deserves
                    running.get("/user/ann/x", **more)
                assert running.child is not None
                assert running.child.poll() is None, (
                    f"{raw.answer!r}: {(running.directory / 'log').read_text()[-2000:]}"
                )
                assert running.get("/_chp_healthz").status == 200
    finally:
        running.stop(kill=True)
