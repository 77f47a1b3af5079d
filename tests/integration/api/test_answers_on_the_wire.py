"""Answers that are put together once are the same as those that are made for each request; connections stay in step."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.rigs.api_rig import HOST, ApiRig
from support.waiting import PATIENCE_S


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[ApiRig]:
    with ApiRig(tmp_path) as rig:
        yield rig


def _request(token: str, method: str = "GET", version: str = "1.1", more: str = "", body: str = "") -> bytes:
    head = f"{method} /services/mlp/api/v1/users/ann/jobs HTTP/{version}\r\nHost: {HOST}\r\nAuthorization: Bearer {token}\r\n"
    media = "Content-Type: application/json\r\n" if body else ""
    return f"{head}{media}Content-Length: {len(body)}\r\n{more}\r\n{body}".encode()


def _answers(rig: ApiRig, sent: bytes) -> bytes:
    """Send all at once, then end our side once the answers came."""
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(PATIENCE_S)
        link.connect(str(rig.sockets[True]))
        link.sendall(sent)
        got = b""
        while part := link.recv(65_536):
            got += part
        return got


def _lines(answer: bytes) -> set[bytes]:
    return {
        line for line in answer.partition(b"\r\n\r\n")[0].split(b"\r\n") if not line.startswith(b"Connection")
    }


@pytest.mark.parametrize("token", ["ann", "nobody"])
def test_an_answer_has_the_same_headers_whatever_the_connection_becomes(rig: ApiRig, token: str) -> None:
    token = rig.ann if token == "ann" else token
    same = "X-Request-ID: one-id-for-both\r\n"
    last = f"{same}Connection: close\r\n"
    twice = _answers(rig, _request(token, more=same) + _request(token, more=last))
    first, second = (b"HTTP/1.1" + part for part in twice.split(b"HTTP/1.1")[1:])
    assert b"Connection: close" not in first
    assert b"Connection: close" in second
    assert _lines(first) == _lines(second)
    assert first.partition(b"\r\n\r\n")[2] == second.partition(b"\r\n\r\n")[2]
    assert b"Content-Security-Policy: default-src 'none'" in first
    assert b"Cache-Control: no-store" in first


def test_a_head_request_gets_no_body(rig: ApiRig) -> None:
    last = "Connection: close\r\n"
    got = _answers(rig, _request(rig.ann, "HEAD") + _request(rig.ann, more=last))
    head, rest = got.split(b"\r\n\r\n", 1)
    assert b"Content-Length" in head
    assert rest.startswith(b"HTTP/1.1 ")


def test_an_old_client_is_answered_and_disconnected(rig: ApiRig) -> None:
    got = _answers(rig, _request(rig.ann, version="1.0"))
    assert got.startswith(b"HTTP/1.1 200 ")
    assert got.endswith(b"[]")


def test_requests_that_come_together_are_answered_in_order(rig: ApiRig) -> None:
    bodies = [json.dumps({"name": f"a{n}", "bad": n}) for n in range(20)]
    sent = b"".join(_request(rig.ann, "POST", body=body) for body in bodies[:-1])
    got = _answers(rig, sent + _request(rig.ann, "POST", more="Connection: close\r\n", body=bodies[-1]))
    assert got.count(b"HTTP/1.1 403 ") == len(bodies)
    assert got.count(b'"msg":"field bad') == len(bodies)
