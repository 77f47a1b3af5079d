"""Which processes are asked to end at once, and which once others have gone."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from mlp_hub.sandbox.shim import files
from mlp_hub.sandbox.shim.asking import DRAIN_S, AskedProcesses, chain
from support.waiting import wait_for

SAVES = "import signal, time; signal.signal(signal.SIGTERM, lambda *_: None); print('ready', flush=True); time.sleep(600); time.sleep(600)"


@pytest.fixture
def shell() -> Iterator[subprocess.Popen[bytes]]:
    """A shell above a program that catches SIGTERM and two that read what it writes."""
    command = f'{sys.executable} -c "{SAVES}" | cat | cat; echo'
    process = subprocess.Popen(["/bin/sh", "-c", command], stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    below = files.descendants(process.pid)
    yield process
    for pid in below:
        files.send_signal(pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()


def test_readers_of_the_output_of_a_saving_process_are_asked_after_it(shell: subprocess.Popen[bytes]) -> None:
    _, saves, *readers = files.descendants(shell.pid)
    asked = AskedProcesses()
    asked.ask([shell.pid], below=False)
    assert set(asked.pids) == {shell.pid, saves}
    wait_for(lambda: shell.poll() is not None)
    assert all(files.start_time(pid) for pid in readers)
    assert asked.look(time.monotonic())
    files.send_signal(saves, signal.SIGKILL)
    wait_for(lambda: files.start_time(saves) is None)
    now = time.monotonic()
    asked.look(now)
    asked.look(now + DRAIN_S)
    wait_for(lambda: not any(files.start_time(pid) for pid in readers))


def test_a_spared_process_is_not_asked_and_no_process_is_asked_twice(shell: subprocess.Popen[bytes]) -> None:
    _, saves, *_ = files.descendants(shell.pid)
    asked = AskedProcesses()
    asked.ask([shell.pid], {shell.pid}, below=False)
    assert set(asked.pids) == {saves}
    asked.pids.clear()
    asked.ask([shell.pid], set(files.descendants(shell.pid)), below=False)
    assert asked.pids == {}


def test_processes_between_a_rank_and_its_sandbox_are_listed(shell: subprocess.Popen[bytes]) -> None:
    _, saves, *_ = files.descendants(shell.pid)
    assert chain(saves, files.parent(shell.pid) or 0) == [shell.pid]
