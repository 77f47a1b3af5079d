"""What a cell prints goes on as fast as a server can take it, and no faster."""

from __future__ import annotations

from typing import Any

from mlp import floods


class Stream:
    """An output of a kernel, without what sends it on."""

    pub_thread: Any = object()

    def __init__(self) -> None:
        self.written = 0

    def write(self, text: str) -> int:
        """Take it."""
        self.written += len(text)
        return len(text)


class Clock:
    """Time that passes while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        """Return seconds."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Let them pass."""
        self.now += seconds


def begun() -> tuple[Clock, Stream, Stream]:
    clock = Clock()
    brake = floods.Brake(clock)
    streams = Stream(), Stream()
    for stream in streams:
        floods.slow(stream, brake, clock.sleep)
    return clock, *streams


def test_what_a_loop_prints_in_a_moment_waits_for_nothing() -> None:
    clock, out, _ = begun()
    for _ in range(floods.BURST // 1024):
        assert out.write("x" * 1024) == 1024
    assert clock.now == 0.0


def test_a_flood_over_both_outputs_goes_at_one_rate() -> None:
    clock, out, err = begun()
    for _ in range(10_000):
        out.write("x" * 2001)
        err.write("x" * 2001)
    assert out.written + err.written <= floods.BURST + floods.RATE * clock.now + 2001


def test_one_huge_write_waits_no_longer_than_what_may_come_at_once_takes() -> None:
    clock, out, _ = begun()
    out.write("x" * (floods.BURST * 5))
    assert clock.now == floods.BURST / floods.RATE


def test_who_prints_slowly_never_waits() -> None:
    clock, out, _ = begun()
    for second in range(100):
        clock.now = float(second)
        out.write("x" * (floods.RATE // 2))
    assert clock.now == 99.0
