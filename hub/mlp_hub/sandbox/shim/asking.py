"""Asks processes to end: all of a tree, each once."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Collection, Iterable

from mlp_hub.sandbox.shim import files

DRAIN_S = 1.0
"""Tuning: seconds that who reads another's output has for the rest of it, once that one has gone."""
_ROUNDS = 3
_TICKS = os.sysconf("SC_CLK_TCK")


class AskedProcesses:
    """Processes that were asked to end, and those to ask later: readers of a process that can still save.

    In `train | tee log` the latter would end at once, and the former at the next line that it writes.
    """

    def __init__(self) -> None:
        self.pids: dict[int, int] = {}  # with when they began
        self._readers: dict[int, int] = {}
        self._readers_at: float | None = None

    def ask(self, roots: Iterable[int], spared: Collection[int] = (), *, below: bool = True) -> None:
        """Send SIGTERM once to each process of these trees, as they are now. `below`: not to the roots themselves.

        Processes that are started in answer to it, to save something, get none: all are listed before the first is told, and
        who is found later must have been there before.
        """
        roots = list(roots)
        began = int(time.clock_gettime(time.CLOCK_BOOTTIME) * _TICKS)
        for turn in range(_ROUNDS):  # who lost its parent while it was looked for has another
            listed = [pid for root in roots for pid in files.descendants(root)[1 if below else 0 :]]
            found = {
                pid: at for pid in listed if pid not in spared and (at := files.start_time(pid)) is not None
            }
            known = {**self.pids, **self._readers}
            new = {pid: at for pid, at in found.items() if known.get(pid) != at and (not turn or at < began)}
            if not new:
                break
            readers = _readers(new)
            self._readers |= {pid: at for pid, at in new.items() if pid in readers}
            self.send({pid: at for pid, at in new.items() if pid not in readers})

    def send(self, pids: dict[int, int]) -> None:
        """Ask just these; all are known by when they began."""
        self.pids |= pids
        for pid, at in pids.items():
            files.send_signal(pid, signal.SIGTERM, at)

    def look(self, now: float) -> bool:
        """Ask the readers too once the others have gone; return whether there is anybody left to wait for."""
        self.pids = {pid: at for pid, at in self.pids.items() if files.start_time(pid) == at}
        if self.pids:
            self._readers_at = None
        elif self._readers:
            self._readers_at = self._readers_at or now + DRAIN_S
            if now >= self._readers_at:
                readers, self._readers = self._readers, {}
                self.send(readers)
        return bool(self.pids or self._readers)


def _readers(pids: Collection[int]) -> set[int]:
    """Return those that would end at once, and whose input another of them writes that would not, or such a reader."""
    saving = {pid for pid in pids if _catches(pid)}
    written = {pipe for pid in saving for pipe in _pipes(pid, "12")}
    inputs = {pid: pipe for pid in pids if pid not in saving for pipe in _pipes(pid, "0")} if written else {}
    found: set[int] = set()
    while more := {pid for pid, pipe in inputs.items() if pipe in written and pid not in found}:
        found |= more
        written |= {pipe for pid in more for pipe in _pipes(pid, "12")}
    return found


def _catches(pid: int) -> bool:
    """Whether the process has a handler for SIGTERM."""
    with contextlib.suppress(OSError, ValueError), open(f"/proc/{pid}/status") as file:
        for line in file:
            if line.startswith("SigCgt:"):
                return bool(int(line.split()[1], 16) >> (signal.SIGTERM - 1) & 1)
    return False


def _pipes(pid: int, numbers: str) -> list[str]:
    """Return the pipes that these descriptors of a process are."""
    found = []
    for number in numbers:
        with contextlib.suppress(OSError):
            found.append(os.readlink(f"/proc/{pid}/fd/{number}"))
    return [path for path in found if path.startswith("pipe:")]


def chain(pid: int, above: int) -> list[int]:
    """List the processes between another one and this one, which started it: the nearest first."""
    found: list[int] = []
    while (parent := files.parent(pid)) is not None and parent not in (above, 0, 1):
        found.append(parent)
        pid = parent
    return found
