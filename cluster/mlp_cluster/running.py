"""Running programs, waiting, and saying what goes wrong."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path


class ClusterError(Exception):
    """Something cannot be done; the message says what and how to go on."""


_BEGAN = time.monotonic()


def say(text: str) -> None:
    """Tell what is done, with the seconds since the beginning."""
    print(f"{time.monotonic() - _BEGAN:7.1f} s  {text}", flush=True)


def output(
    command: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    given: str | None = None,
) -> str:
    """Run a program to its end and return what it prints; raise with its last words where it fails."""
    done = subprocess.run(
        list(map(str, command)),
        env=None if env is None else {**os.environ, **env},
        cwd=cwd,
        input=given,
        stdin=subprocess.DEVNULL if given is None else None,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        words = "\n".join((done.stderr or done.stdout).strip().splitlines()[-20:])
        raise ClusterError(f"{' '.join(map(str, command[:8]))} ended with {done.returncode}:\n{words}")
    return done.stdout


def until(what: str, found: Callable[[], bool], seconds: float, why: Callable[[], str] = str) -> None:
    """Wait until something holds; raise with the reason where it never does."""
    end = time.monotonic() + seconds
    while not found():
        if time.monotonic() > end:
            raise ClusterError(f"{what}: not after {seconds:.0f} s\n{why()}")
        time.sleep(0.1)
