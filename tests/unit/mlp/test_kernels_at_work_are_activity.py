"""A notebook server is used while a kernel or a terminal of it is at work, as what culls idle servers is told."""

from __future__ import annotations

import contextlib
import os
import signal
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ptyprocess import PtyProcess

from mlp.notebook_server import kernel_activity
from support.waiting import wait_for

LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_kernel_that_works_without_a_word_keeps_its_server_and_an_idle_one_does_not() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what it imports
        from jupyter_server.serverapp import ServerWebApplication

    kernels = [
        {"id": "a", "execution_state": "idle"},
        {"id": "b", "execution_state": "starting"},
        {"id": "c"},
    ]
    settings = {
        "started": LONG_AGO,
        "kernel_manager": SimpleNamespace(last_kernel_activity=LONG_AGO),
        "last_activity_times": {"shutdown": LONG_AGO},
    }
    server = SimpleNamespace(
        kernel_manager=SimpleNamespace(list_kernels=lambda: kernels),
        web_app=SimpleNamespace(settings=settings),
    )
    kernel_activity.look(server)
    assert ServerWebApplication.last_activity(server.web_app) == LONG_AGO
    kernels[0]["execution_state"] = "busy"
    before = datetime.now(UTC)
    kernel_activity.look(server)
    assert ServerWebApplication.last_activity(server.web_app) >= before


@pytest.fixture
def shell() -> Iterator[PtyProcess]:
    # who runs the suite in the background ignores Ctrl+C, and so would all that a shell starts
    heeds = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    started = PtyProcess.spawn(["/bin/bash", "--norc", "-i"], preexec_fn=heeds)
    yield started
    started.close(force=True)


def looked_at(*terminals: PtyProcess) -> bool:
    """Whether a server with these terminals, and no kernel, counts as used."""
    settings: dict[str, Any] = {
        "terminal_manager": SimpleNamespace(
            terminals={str(n): SimpleNamespace(ptyproc=each) for n, each in enumerate(terminals)}
        )
    }
    kernels = SimpleNamespace(list_kernels=list)
    kernel_activity.look(SimpleNamespace(kernel_manager=kernels, web_app=SimpleNamespace(settings=settings)))
    return kernel_activity.SETTING in settings


def foreground(shell: PtyProcess) -> str:
    """Return the name of the program that has a terminal."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{os.tcgetpgrp(shell.fd)}/comm").read_text().strip()
    return ""


def test_a_program_in_a_terminal_keeps_its_server_and_a_shell_that_waits_for_its_user_does_not(
    shell: PtyProcess,
) -> None:
    wait_for(lambda: os.tcgetpgrp(shell.fd) == shell.pid, message="for the shell")
    assert not looked_at(shell)
    shell.write(b"sleep 1000\n")
    wait_for(lambda: looked_at(shell), message="for its program to count")
    # before its exec the program is a copy of the shell, which heeds no Ctrl+C
    wait_for(lambda: foreground(shell) == "sleep", message="for its program to be more than forked")
    shell.write(b"\x03")
    wait_for(lambda: not looked_at(shell), message="for the end of its program")
    shell.close(force=True)
    assert not looked_at(shell)
    assert not looked_at()
