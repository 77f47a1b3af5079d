"""Use of ranks now, as /proc tells it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from mlp_hub.sandbox.shim import files

WINDOW = 1.0
"""Tuning: seconds between two looks, at least: how fresh a usage is, for how much looking costs."""


@dataclass(frozen=True, slots=True)
class ProcessUsage:
    """Cores in use over the last seconds (`None` at the first look) and MiB resident."""

    cpu: float | None
    ram: int


@dataclass(frozen=True, slots=True)
class _Reading:
    at: float
    cpu_s: dict[int, float]
    usage: ProcessUsage


class ProcessMeter:
    """Remembers the last look at each process tree, to tell the difference."""

    def __init__(self) -> None:
        self._readings: dict[int, _Reading] = {}

    def usage_of(
        self, pid: int, *, below: bool = True, held: Callable[[], int | None] = lambda: None
    ) -> ProcessUsage | None:
        """Return what the process, and all below it, use; `None` when it is gone. Looks once a second at most.

        `held` tells the bytes where something counts them better than they can be added up: with files in memory, each page once.
        """
        now = time.monotonic()
        last = self._readings.get(pid)
        if last is not None and now - last.at < WINDOW:
            return last.usage
        cpu_s: dict[int, float] = {}
        ram = 0
        for one in files.descendants(pid) if below else (pid,):
            seen = files.usage(one)
            if seen is not None:
                cpu_s[one] = seen[0]
                ram += seen[1]
        if not cpu_s:
            self._readings.pop(pid, None)
            return None
        cpu = None
        if last is not None:
            used = sum(seconds - last.cpu_s.get(one, 0.0) for one, seconds in cpu_s.items())
            cpu = round(max(0.0, used) / (now - last.at), 2)
        counted = held()
        usage = ProcessUsage(cpu, (ram if counted is None else counted) >> 20)
        self._readings[pid] = _Reading(now, cpu_s, usage)
        if len(self._readings) > 4096:
            self._readings = {key: look for key, look in [*self._readings.items()] if now - look.at < 60}
        return usage
