"""Bodies that hardly come to what serves files: ended by a lowest rate, and by whatever has become of the right to write."""

from __future__ import annotations

import socket
from types import SimpleNamespace
from typing import Any

import pytest

from mlp_hub.dav.slow import ASKED_S, LOWEST, SPARE_S, SlowBodies

PIECE = 1 << 18


class Wire:
    """A connection over which one body comes; what reads it says when it is looked at meanwhile."""

    def __init__(self, slow: SlowBodies) -> None:
        self.ours, self.theirs = socket.socketpair()
        self.slow, self.looks = slow, 0
        request = SimpleNamespace(conn=SimpleNamespace(socket=self.ours))
        self.environ: dict[str, Any] = {"wsgi.input": self, "mlp.request": request}

    def read(self, size: int) -> bytes:
        """Read as a server does, which waits for all; somebody looks on the way."""
        self.slow.look()
        self.ours.settimeout(0.2)
        try:
            return self.ours.recv(size)
        except TimeoutError:
            return b"waits on"


class Clock:
    """A clock that goes on by so much with each look at it."""

    def __init__(self, step: float) -> None:
        self.now, self.step = 0.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


@pytest.mark.parametrize(("late", "read"), [(True, b""), (False, b"waits on")], ids=["slow", "in time"])
def test_a_piece_that_does_not_come_in_time_is_the_end_of_its_body(late: bool, read: bytes) -> None:
    due = SPARE_S + PIECE / LOWEST
    slow = SlowBodies(Clock(due + 1 if late else due / 10))
    wire = Wire(slow)
    with slow.watched(wire.environ, lambda: True):
        assert wire.environ["wsgi.input"].read(PIECE) == read
    wire.theirs.close()
    wire.ours.close()


def test_whose_right_ended_meanwhile_sends_no_more() -> None:
    may = [True, False]
    slow = SlowBodies(Clock(ASKED_S / 2))
    wire = Wire(slow)
    with slow.watched(wire.environ, lambda: may.pop(0)):
        body = wire.environ["wsgi.input"]
        while may:
            assert body.read(PIECE * 100) == b"waits on" or not may
        assert wire.ours.recv(1) == b""
    slow.look()
    wire.theirs.close()
    wire.ours.close()


def test_what_is_answered_is_watched_no_more() -> None:
    slow = SlowBodies(Clock(1e6))
    wire = Wire(slow)
    with slow.watched(wire.environ, lambda: True):
        pass
    slow.look()
    wire.ours.settimeout(0.1)
    with pytest.raises(TimeoutError):
        wire.ours.recv(1)
    wire.theirs.close()
    wire.ours.close()
