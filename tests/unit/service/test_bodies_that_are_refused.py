"""What is left of a refused body: read before the answer where it may come to an end, and behind it where it is long."""

from __future__ import annotations

import io
import socket
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from mlp_hub.dav.connections.draining import DRAINED, drain, linger


class _Body:
    """A body of which so many bytes were announced, and some have come."""

    def __init__(self, announced: int, came: int) -> None:
        self.remaining = announced
        self._rest = io.BytesIO(bytes(came))

    def read(self, size: int) -> bytes:
        data = self._rest.read(size)
        self.remaining -= len(data)
        return data


@pytest.fixture
def line() -> Iterator[socket.socket]:
    with socket.socket() as made:
        yield made


def refused(line: socket.socket, announced: int, came: int) -> tuple[dict[str, Any], _Body]:
    body = _Body(announced, came)
    request = SimpleNamespace(conn=SimpleNamespace(socket=line), close_connection=False, rfile=body)
    return {"mlp.request": request, "CONTENT_LENGTH": str(announced), "wsgi.input": body}, body


def test_a_short_one_is_read_before_the_answer_and_the_connection_stays(line: socket.socket) -> None:
    environ, body = refused(line, 1000, 1000)
    drain(environ)
    assert body.remaining == 0
    linger(environ)
    assert not environ["mlp.request"].close_connection


def test_of_a_long_one_nothing_is_waited_for_before_the_answer(line: socket.socket) -> None:
    environ, body = refused(line, DRAINED + 1, 1000)
    drain(environ)
    assert body.remaining == DRAINED + 1
    assert environ["mlp.request"].close_connection
    linger(environ)
    assert body.remaining == DRAINED + 1 - 1000
