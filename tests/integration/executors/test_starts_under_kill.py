"""The service dies while it starts an attempt: the attempt runs once and to its end, whatever the moment was."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

import pytest

from mlp_hub.executors.base import AttemptPhase
from support.executors.executor_lab import ENDED, Lab, alive, eventually, until

KILLS = 40
WITHIN_S = 0.06
CODE = "print('ran')"
SERVICE = """
import asyncio, os, signal, sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from support.executors.executor_lab import Lab
from mlp_hub import sandbox
from mlp_hub.executors import local
from mlp_hub.sandbox import control, fork_server
from mlp_hub.sandbox.shim import files
lab = Lab(Path({base!r}))
sandbox.capabilities()
die = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
{moment}
async def go(attempt):
    executor = lab.executor()
    executor._warm()
    executor._fork_server.start()
    print(os.getpid(), flush=True)
    await executor.start(lab.spec({code!r}, attempt=attempt))
    await asyncio.sleep(600)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for line in sys.stdin:
    if os.fork() == 0:
        asyncio.run(go(line.strip()))
"""
MOMENTS = {
    "before the run directory is described": "control.prepare = die",
    "before its shim is asked for": "fork_server.ForkServer.ask = die",
    "before its shim has claimed it": """
ask = fork_server.ForkServer.ask
def asks(*args):
    ask(*args)
    die()
fork_server.ForkServer.ask = asks""",
    "once its shim has claimed it": "control.check_claimed = die",
}


class Services:
    """Forks processes each of which is the service up to the moment at which it starts one attempt."""

    def __init__(self, lab: Lab, moment: str = "") -> None:
        tests = str(Path(__file__).parents[2])
        program = SERVICE.format(tests=tests, base=str(lab.base), moment=moment, code=CODE)
        self._process = subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> Self:
        return self

    def begin(self, attempt: str) -> int:
        """Return the number of one that starts this attempt now."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{attempt}\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def __exit__(self, *_: object) -> None:
        self._process.communicate()


async def goes_on(lab: Lab, attempts: list[str]) -> None:
    """Be the next service, as the reconciler is: start what is absent, wait for the end of all."""
    executor = lab.executor()
    try:
        for attempt in attempts:
            spec = lab.spec(CODE, attempt=attempt)
            await executor.start(spec)
            seen = await until(executor, attempt, ENDED)
            assert (attempt, seen.phase, seen.failure) == (attempt, AttemptPhase.SUCCEEDED, None)
            assert lab.output(spec) == ["ran"]
    finally:
        await executor.close()


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_service_that_dies_at_a_step_of_the_start_fails_nothing(lab: Lab, moment: str) -> None:
    with Services(lab, MOMENTS[moment]) as services:
        pid = services.begin("job0001.0")
        asyncio.run(eventually(lambda: not alive([pid])))
    asyncio.run(goes_on(lab, ["job0001.0"]))


def test_forty_kills_within_the_start_fail_nothing(lab: Lab) -> None:
    """Aimed: from the call on, a little later each time."""
    attempts = [f"job{number:04d}.0" for number in range(KILLS)]
    with Services(lab) as services:
        for number, attempt in enumerate(attempts):
            pid = services.begin(attempt)
            time.sleep(WITHIN_S * number / KILLS)
            os.kill(pid, signal.SIGKILL)
    asyncio.run(goes_on(lab, attempts))
