"""The marks of a log's lines stand in three places that share no code: where logs are written, on the wire, and where they are read."""

from __future__ import annotations

from mlp import terminal
from mlp_hub.executors import base
from mlp_hub.sandbox.shim import screen


def test_writers_the_wire_and_readers_have_the_same_marks() -> None:
    assert screen.STATE == base.STATE == terminal.STATE
    assert screen.BREAK == base.BREAK == terminal.BREAK
