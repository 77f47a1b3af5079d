"""What a cell prints goes on as fast as a server can take it, and no faster."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import Any

from mlp import floods
from support.waiting import PATIENCE_S

WRITES = """
import os, sys, zmq
from ipykernel.iostream import IOPubThread, OutStream
from jupyter_client.session import Session
from mlp import floods
floods.BURST = 1 << 17
socket = zmq.Context().socket(zmq.PUB)
socket.bind("inproc://kernel")
sends = IOPubThread(socket)
sends.start()
stream = OutStream(Session(), sends, "stdout", watchfd="force")
slept, seen, write = [], [], stream.write
stream.write = lambda text: (seen.append(text), write(text))[1]
floods.slow(stream, floods.Brake(), slept.append)
for _ in range(500):
    os.write(1, b"x" * 1000)
print(seen.count(floods.LEFT_OUT), slept, file=sys.stderr, flush=True)
os._exit(0)
"""
"""Much to the file descriptor of an output of a kernel. A pipe holds 64 KiB, so most has been read when all is written."""


class Stream:
    """An output of a kernel, without what sends it on."""

    pub_thread: Any = object()
    watch_fd_thread: threading.Thread | None = None

    def __init__(self) -> None:
        self.written = 0
        self.last = ""

    def write(self, text: str) -> int:
        """Take it."""
        self.written += len(text)
        self.last = text
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


def test_output_that_a_loop_prints_in_a_moment_does_not_wait() -> None:
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


def test_one_huge_write_waits_no_longer_than_the_time_for_a_full_burst() -> None:
    clock, out, _ = begun()
    out.write("x" * (floods.BURST * 5))
    assert clock.now == floods.BURST / floods.RATE


def test_a_slow_printer_never_waits() -> None:
    clock, out, _ = begun()
    for second in range(100):
        clock.now = float(second)
        out.write("x" * (floods.RATE // 2))
    assert clock.now == 99.0


def test_output_read_from_a_file_descriptor_never_waits_and_is_dropped_instead() -> None:
    clock, stream = Clock(), Stream()
    stream.watch_fd_thread = threading.current_thread()
    floods.slow(stream, floods.Brake(clock), clock.sleep)
    for _ in range(2 * floods.BURST // 1000):
        stream.write("x" * 1000)
    assert clock.now == 0.0
    assert stream.last == floods.LEFT_OUT
    assert floods.BURST - 1000 < stream.written < floods.BURST + 100  # told once
    clock.now = 1.0
    stream.write("y")
    assert stream.last == floods.LEFT_OUT
    clock.now = floods.BURST / floods.RATE
    stream.write("y")
    assert stream.last == "y"


def test_of_a_real_kernels_output_what_comes_by_its_file_descriptor_waits_for_nothing() -> None:
    """A library that writes while it holds Python's lock would otherwise wait for ever."""
    done = subprocess.run(
        [sys.executable, "-c", WRITES], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.stderr == "1 []\n"
