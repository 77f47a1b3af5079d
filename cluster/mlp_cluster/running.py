"""Running programs, waiting, and saying what goes wrong."""

from __future__ import annotations

import os
import subprocess
import threading
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


def followed(
    command: Sequence[str | Path],
    what: str,
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> str:
    """Run a program that takes minutes as `output` does, and say again and again that it goes on, and what it printed last."""
    began, printed, complained = time.monotonic(), list[str](), list[str]()
    with subprocess.Popen(
        list(map(str, command)),
        env=None if env is None else {**os.environ, **env},
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    ) as running:
        assert running.stdout is not None  # noqa: S101 - piped
        assert running.stderr is not None  # noqa: S101
        readers = [
            threading.Thread(target=into.extend, args=(stream,), daemon=True)
            for stream, into in ((running.stdout, printed), (running.stderr, complained))
        ]
        for reader in readers:
            reader.start()
        while True:
            try:
                running.wait(TELL_EACH_S)
                break
            except subprocess.TimeoutExpired:
                last = next((line.strip() for line in reversed(complained or printed) if line.strip()), "")
                say(f"{what}, for {time.monotonic() - began:.0f} s{': ' if last else ''}{last[:100]}")
        for reader in readers:
            reader.join()
    if running.returncode:
        words = "\n".join("".join(complained or printed).strip().splitlines()[-20:])
        raise ClusterError(f"{' '.join(map(str, command[:8]))} ended with {running.returncode}:\n{words}")
    return "".join(printed)


def until(what: str, found: Callable[[], bool], seconds: float, why: Callable[[], str] = str) -> None:
    """Wait until something holds; raise with the reason where it never does."""
    end = time.monotonic() + seconds
    while not found():
        if time.monotonic() > end:
            raise ClusterError(f"{what}: not after {seconds:.0f} s\n{why()}")
        time.sleep(0.1)
