"""Running programs, waiting, and saying what goes wrong."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path


class ClusterError(Exception):
    """Something cannot be done; the message says what and how to go on."""


TELL_EACH_S = 20.0
"""Tuning: seconds between two lines of what takes minutes."""
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
    """Run a program to its end and return what it prints; raise with its last words where it fails.

    Of one that takes minutes it is said again and again that it goes on.
    """
    began = time.monotonic()
    with subprocess.Popen(
        list(map(str, command)),
        env=None if env is None else {**os.environ, **env},
        cwd=cwd,
        stdin=subprocess.DEVNULL if given is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        try:
            printed, complained = _to_its_end(running, given, command, began)
        except BaseException:
            running.kill()
            raise
    if running.returncode:
        words = "\n".join((complained or printed).strip().splitlines()[-20:])
        raise ClusterError(f"{' '.join(map(str, command[:8]))} ended with {running.returncode}:\n{words}")
    return printed


def _to_its_end(
    running: subprocess.Popen[str], given: str | None, command: Sequence[str | Path], began: float
) -> tuple[str, str]:
    while True:
        try:
            return running.communicate(given, timeout=TELL_EACH_S)
        except subprocess.TimeoutExpired:
            given = None  # it is on its way
            what = " ".join([Path(command[0]).name, *map(str, command[1:2])])
            say(f"  {what} goes on, for {time.monotonic() - began:.0f} s so far")


def until(what: str, found: Callable[[], bool], seconds: float, why: Callable[[], str] = str) -> None:
    """Wait until something holds; raise with the reason where it never does."""
    end = time.monotonic() + seconds
    while not found():
        if time.monotonic() > end:
            raise ClusterError(f"{what}: not after {seconds:.0f} s\n{why()}")
        time.sleep(0.1)
