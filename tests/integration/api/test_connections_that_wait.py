"""Connections that keep the server waiting are ended; those that have something under way are not."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlp_hub.api import build
from mlp_hub.api.edge import exchange, patience
from support.rigs.api_rig import HOST, ApiRig
from support.waiting import PATIENCE_S

IDLE_S = 0.3


@pytest.fixture
def idle() -> float:
    """Seconds after which who sends nothing is disconnected."""
    return IDLE_S


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, idle: float) -> Iterator[ApiRig]:
    monkeypatch.setattr(build, "IDLE_S", idle)
    monkeypatch.setattr(exchange, "BODY_TIMEOUT_S", idle)
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
def test_a_client_that_stops_sending_is_disconnected(rig: ApiRig, sent: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(PATIENCE_S)
        link.connect(str(rig.sockets[True]))
        link.sendall(sent)
        while link.recv(4096):
            pass


@pytest.mark.parametrize("idle", [1.5])  # longer: here requests are to be answered, also on a slow machine
def test_a_socket_that_is_open_stays_open(rig: ApiRig, idle: float) -> None:
    rig.job("ann", "digits", rig.ann)
    with rig.socket("/users/ann/jobs/digits:stream", token=rig.ann) as stream:
        while '"synced"' not in str(stream.recv(PATIENCE_S)):
            pass
        time.sleep(2 * idle)
        point = {"source": "0.0.late", "points": [{"n": 1, "t": 1, "v": {"late": 1}}]}
        assert rig.ask("POST", "/users/ann/job_metrics/digits", point, token=rig.ann).status == 200
        while '"late"' not in str(stream.recv(PATIENCE_S)):
            pass
