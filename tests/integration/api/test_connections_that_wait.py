"""Connections that keep the server waiting are ended; those that have something under way are not."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from api_rig import HOST, ApiRig
from mlp_hub.api import build, exchange, patience

PATIENCE_S = 0.3


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiRig]:
    monkeypatch.setattr(build, "IDLE_S", PATIENCE_S)
    monkeypatch.setattr(exchange, "BODY_TIMEOUT_S", PATIENCE_S)
    monkeypatch.setattr(patience, "LOOK_S", 0.05)
    with ApiRig(tmp_path) as rig:
        yield rig


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET /services/mlp/api/v1/health HTTP/1.1\r\nHost: ",
        f"GET /services/mlp/api/v1/health HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode(),
        f"POST /services/mlp/api/v1/users HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 9\r\n\r\n{{".encode(),
    ],
    ids=["nothing", "half of the headers", "nothing after an answer", "half of a body"],
)
def test_who_sends_nothing_more_is_disconnected(rig: ApiRig, sent: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(30)
        link.connect(str(rig.sockets[True]))
        link.sendall(sent)
        while link.recv(4096):
            pass


def test_a_socket_that_is_open_stays_open(rig: ApiRig) -> None:
    rig.job("ann", "digits", rig.ann)
    with rig.socket("/users/ann/jobs/digits:stream", token=rig.ann) as stream:
        while '"synced"' not in str(stream.recv(30)):
            pass
        time.sleep(3 * PATIENCE_S)
        point = {"source": "0.0.late", "points": [{"n": 1, "t": 1, "v": {"late": 1}}]}
        assert rig.ask("POST", "/users/ann/job_metrics/digits", point, token=rig.ann).status == 200
        while '"late"' not in str(stream.recv(30)):
            pass
