"""Resources that one rank used so far, measured from time to time."""

from __future__ import annotations

import time
from typing import Any

PERIOD = 1.0  # seconds between two looks, and over which the most cores are told


class Used:
    """Resources that one rank used so far: processor seconds, cores and bytes.

    Memory is that of its processes, without cached files.
    """

    def __init__(self, now: float) -> None:
        self.began = now
        self.ended: float | None = None
        self.cpu_s = 0.0
        self.cpu_peak = 0.0
        self.ram_peak = 0
        self._ram_sum = 0.0
        self._looks = 0
        self._last_at, self._last_cpu = now, 0.0

    def see(self, now: float, cpu_s: float, ram: int) -> None:
        """Take what was found at one look."""
        self.cpu_s = max(self.cpu_s, cpu_s)
        self.ram_peak = max(self.ram_peak, ram)
        self._ram_sum += ram
        self._looks += 1
        if now - self._last_at >= PERIOD / 2:  # the clock of processes goes in hundredths
            self.cpu_peak = max(self.cpu_peak, (cpu_s - self._last_cpu) / (now - self._last_at))
            self._last_at, self._last_cpu = now, cpu_s

    def finish(self, now: float, cpu_s: float | None, ram: int | None) -> None:
        """Accept the final amounts where they are above the measured ones."""
        if self.ended is None:
            self.ended = now
        self.cpu_s = max(self.cpu_s, cpu_s or 0.0)
        self.ram_peak = max(self.ram_peak, ram or 0)

    def to_json(self) -> dict[str, Any]:
        """Return mean and most: cores and MiB."""
        wall = max((self.ended or time.monotonic()) - self.began, 0.001)
        mean = self.cpu_s / wall
        ram_mean = self._ram_sum / self._looks if self._looks else self.ram_peak
        return {
            "cpu_mean": round(mean, 3),
            "cpu_peak": round(max(mean, self.cpu_peak), 3),
            "ram_mean": round(min(ram_mean, self.ram_peak)) >> 20,
            "ram_peak": self.ram_peak >> 20,
        }
