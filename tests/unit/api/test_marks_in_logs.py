"""The marks of a log's lines stand in three places that share no code: where logs are written, on the wire, and where they are read."""

from __future__ import annotations

from mlp import terminal
from mlp_api import stream
from mlp_hub.sandbox.shim import screen


def test_writers_the_wire_and_readers_have_the_same_marks() -> None:
    assert screen.STATE == stream.STATE == terminal.STATE
    assert screen.BREAK == stream.BREAK == terminal.BREAK
