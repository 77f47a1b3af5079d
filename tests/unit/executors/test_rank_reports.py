"""What the inside tells of its ranks: numbers that are not its own name nothing outside."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlp_hub.sandbox.shim import files
from mlp_hub.sandbox.shim.ranks import Reports, host_pid


@pytest.fixture
def sleeper() -> Iterator[int]:
    """Hand out a process of ours."""
    child = subprocess.Popen([sys.executable, "-IS", "-c", "import time; time.sleep(60)"])
    yield child.pid
    child.kill()
    child.wait()


def test_a_process_outside_of_the_sandbox_is_never_taken_for_a_rank(sleeper: int) -> None:
    # whoever has a number that a starter of the sandbox had before
    inner = files.inner_pid(sleeper)
    assert host_pid(os.getpid(), inner, os.getpid()) == sleeper
    assert host_pid(os.getpid(), inner, sleeper) is None
    assert host_pid(os.getpid(), inner, 999_999_999) is None


def test_a_signal_reaches_the_process_that_was_meant_and_no_later_one_of_its_number(sleeper: int) -> None:
    start = files.start_time(sleeper)
    assert start is not None
    assert not files.send_signal(sleeper, 0, start + 1)
    assert files.send_signal(sleeper, 0, start)


@pytest.mark.parametrize("rank", ["-1", "2", "99999999", "true", '"0"', "null", "1.0"])
def test_a_rank_that_does_not_exist_is_not_even_remembered(tmp_path: Path, rank: str) -> None:
    heard: list[str] = []
    reports = Reports(str(tmp_path), lambda kind, *_: heard.append(kind), 2)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as liar:
            liar.connect(str(tmp_path / "control.sock"))
            sender = reports.accept()
            assert sender is not None
            read_end, write_end = os.pipe()
            socket.send_fds(liar, [b'{"t": "start", "rank": %s}' % rank.encode()], [read_end, read_end])
            assert reports.read(sender)
        assert not reports.read(sender)
        os.close(read_end)
        os.close(write_end)
    finally:
        reports.close()
    assert heard == []


def test_a_tenant_who_keeps_the_pipes_cannot_have_the_shim_wait(tmp_path: Path) -> None:
    given: list[int] = []
    reports = Reports(str(tmp_path), lambda kind, pid, message, fds: given.extend(fds), 2)
    pipes = [os.pipe(), os.pipe()]
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as liar:
            liar.connect(str(tmp_path / "control.sock"))
            sender = reports.accept()
            assert sender is not None
            socket.send_fds(liar, [b'{"t": "start", "rank": 0}'], [read_end for read_end, _ in pipes])
            assert reports.read(sender)
            assert all(os.get_blocking(read_end) for read_end, _ in pipes)  # theirs is left as it was
            for read_end, _ in pipes:
                os.set_blocking(read_end, True)
            for fd in given:
                with pytest.raises(BlockingIOError):
                    os.read(fd, 1)
            for (_, write_end), fd in zip(pipes, given, strict=True):
                os.write(write_end, b"x")
                assert os.read(fd, 9) == b"x"
    finally:
        reports.close()
        for fd in (*given, *(end for pipe in pipes for end in pipe)):
            os.close(fd)


def test_descriptors_that_are_not_pipes_are_not_accepted_as_output(tmp_path: Path) -> None:
    heard: list[str] = []
    reports = Reports(str(tmp_path), lambda kind, *_: heard.append(kind), 2)
    pipe = os.pipe()
    null = os.open("/dev/null", os.O_RDONLY)
    try:
        for fds in ([null, null], [pipe[1], pipe[1]], [pipe[0]], [pipe[0], null]):
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as liar:
                liar.connect(str(tmp_path / "control.sock"))
                sender = reports.accept()
                assert sender is not None
                socket.send_fds(liar, [b'{"t": "start", "rank": 0}'], fds)
                assert reports.read(sender)
            assert not reports.read(sender)
    finally:
        reports.close()
        for fd in (*pipe, null):
            os.close(fd)
    assert heard == []


def test_a_flood_is_taken_in_small_turns_and_then_left_alone_and_others_are_heard_meanwhile(
    tmp_path: Path,
) -> None:
    heard: list[str] = []
    reports = Reports(str(tmp_path), lambda kind, *_: heard.append(kind), 2)
    liars = [socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(3)]
    honest = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        for one in (*liars, honest):
            one.connect(str(tmp_path / "control.sock"))
            assert reports.take() == 0
        for liar in liars:
            liar.setblocking(False)
            with contextlib.suppress(BlockingIOError):  # until no more fits
                while True:
                    liar.send(b"[" * 1000)
        honest.send(b'{"t": "exit", "rank": 1}')
        turns = 0
        while not (wait := reports.take()):
            turns += 1
            assert turns < 100
        assert wait > 0
        assert heard == ["exit"]
    finally:
        reports.finish()
        for one in (*liars, honest):
            one.close()


def test_the_end_is_bounded_whoever_still_holds_a_way_in(tmp_path: Path) -> None:
    reports = Reports(str(tmp_path), lambda *_: None, 2)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as liar:
        liar.connect(str(tmp_path / "control.sock"))
        reports.take()
        over = threading.Event()

        def flood() -> None:
            with contextlib.suppress(OSError):
                while not over.is_set():
                    liar.send(b"[" * 1000)

        thread = threading.Thread(target=flood)
        thread.start()
        reports.finish()
        over.set()
        thread.join()
