"""Use of a rank, and the time of its first output; it measures itself, and writes changes near its log."""

from __future__ import annotations

import contextlib
import os
import time
from typing import Any

from mlp_hub.executors.kubernetes.rank.gpus import PodGpus
from mlp_hub.executors.kubernetes.rank.told import OwnPlan
from mlp_hub.sandbox.shim import files
from mlp_hub.sandbox.shim.usage import PERIOD, Used

_FIRST_S = 0.2
"""Tuning: seconds from a rank's start to the first look: a short rank's use, for the number of looks."""
_EARLIEST_S, _WRITE_S = 1.0, 5.0
"""Tuning: seconds from a rank's start until its use is written, and between two times: how fresh it is shown, for writes to the
volume."""
_CPU, _RAM = 0.02, 1 << 20
"""Tuning: cores, and bytes, by which use must differ from the written use: a steady rank writes nothing."""
_GPUS_S = 15.0
"""Tuning: seconds between two times that the work of GPUs is written: the service looks about twice as rarely."""
_ROOT = "/sys/fs/cgroup"
_V1_CPU = ("cpuacct", "cpu,cpuacct")


class PodGroup:
    """The control group of the pod's container, which holds this rank and what runs for it; of either version."""

    def __init__(self, root: str = _ROOT) -> None:
        self._memory = self._cpu = ""
        self.v2 = os.path.exists(f"{root}/memory.max")
        if self.v2:
            self._memory = self._cpu = root
        elif os.path.exists(f"{root}/memory/memory.stat"):
            self._memory = f"{root}/memory"
            found = (f"{root}/{name}" for name in _V1_CPU)
            self._cpu = next((path for path in found if os.path.exists(f"{path}/cpuacct.usage")), "")

    def now(self) -> tuple[float, int] | None:
        """Return processor seconds and bytes in memory, cached files not counted; None where they cannot be read."""
        if not self._cpu:
            return None
        try:
            if self.v2:
                seconds = _lines(f"{self._cpu}/cpu.stat")["usage_usec"] / 1e6
            else:
                seconds = int(_text(f"{self._cpu}/cpuacct.usage")) / 1e9
            anonymous, shared, _ = self._parts()
        except (OSError, KeyError, ValueError):
            return None
        return seconds, anonymous + shared

    def most(self) -> int | None:
        """Return the most bytes that there ever were; None at the limit, where cached files were given up for others."""
        most = "memory.peak" if self.v2 else "memory.max_usage_in_bytes"
        limit = "memory.max" if self.v2 else "memory.limit_in_bytes"
        try:
            peak, bound = int(_text(f"{self._memory}/{most}")), _text(f"{self._memory}/{limit}")
            _, shared, cached = self._parts()
        except (OSError, KeyError, ValueError):
            return None
        return None if bound != "max" and peak >= int(bound) else max(0, peak - (cached - shared))

    def _parts(self) -> tuple[int, int, int]:
        """Return the bytes that are in no file, in files in memory, and in these and cached files."""
        found = _lines(f"{self._memory}/memory.stat")
        names = ("anon", "shmem", "file") if self.v2 else ("total_rss", "total_shmem", "total_cache")
        anonymous, shared, cached = (found[name] for name in names)
        return anonymous, shared, cached


class OwnUse:
    """The use of one rank, from its begin on. Without a control group its processes are looked at."""

    def __init__(self, told: OwnPlan, group: PodGroup | None = None, gpus: PodGpus | None = None) -> None:
        self.first_line_at: float | None = None
        self.due: float | None = None
        self._told = told
        self._name = f"{told.plan['attempt']}.{told.rank}.use"
        self._group = group or PodGroup()
        self._gpus = gpus or PodGpus()
        self._pid = 0
        self._own = self._before = 0.0
        self._used = Used(0.0)
        self._last: tuple[float, float] | None = None
        self._written: dict[str, Any] = {}
        self._write_at = self._written_at = 0.0

    def begin(self, pid: int) -> None:
        """Measure from now on: the program is the process of this number, and what is below it."""
        now = time.monotonic()
        self._pid = pid
        self._used = Used(now)
        found = self._group.now()
        # what came before it in its pod is not the rank's, and this process is the platform's
        self._before = found[0] if found is not None else 0.0
        self._own = own_memory()
        self.due, self._write_at = now + _FIRST_S, now + _EARLIEST_S
        self._gpus.begin()

    def look(self) -> None:
        """Look, and write what has changed; `due` is the next time."""
        now = time.monotonic()
        self.due = now + PERIOD
        found = self._now()
        if found is None:
            return
        self._used.see(now, *found)
        last, self._last = self._last, (now, found[0])
        cpu = None if last is None else max(0.0, found[0] - last[1]) / max(now - last[0], 0.001)
        news = self.first_line_at is not None and "first_line_at" not in self._written
        if now < self._write_at and not (news and now >= self._used.began + _EARLIEST_S):
            return
        self._write_at = now + _WRITE_S
        looked = self._gpus.looks > 0 and now >= self._written_at + _GPUS_S
        if news or looked or self._differs(cpu, found[1]):
            self._written_at = now
            self._write(cpu, found[1])

    def ended(self) -> dict[str, Any]:
        """Stop measuring; return what all of it was."""
        self.due = None
        told: dict[str, Any] = {"first_line_at": self.first_line_at}
        if not self._pid:
            return told
        found = self._group.now()
        seconds = None if found is None else found[0] - self._before
        most = self._group.most()
        self._used.finish(time.monotonic(), seconds, None if most is None else max(0, most - int(self._own)))
        with contextlib.suppress(OSError):
            os.unlink(f"{self._told.plan['log']}/{self._name}")
        return {**told, **self._used.to_json()}

    def _now(self) -> tuple[float, int] | None:
        found = self._group.now()
        if found is not None:
            return max(0.0, found[0] - self._before), max(0, found[1] - int(self._own))
        each = [seen for one in files.descendants(self._pid) if (seen := files.usage(one, ended=True))]
        return (sum(seen[0] for seen in each), sum(seen[1] for seen in each)) if each else None

    def _differs(self, cpu: float | None, ram: int) -> bool:
        before_cpu, before_ram = self._written.get("cpu"), self._written.get("ram")
        if before_cpu is None or before_ram is None:
            return True
        return bool(abs((cpu or 0.0) - before_cpu) > _CPU or abs(ram - (before_ram << 20)) > _RAM)

    def _write(self, cpu: float | None, ram: int) -> None:
        self._written = {
            "cpu": None if cpu is None else round(cpu, 2),
            "ram": ram >> 20,
            **self._used.to_json(),
            **({} if self.first_line_at is None else {"first_line_at": self.first_line_at}),
            **({"gpu": self._gpus.most(), "gpu_looks": self._gpus.looks} if self._gpus.looks else {}),
        }
        with contextlib.suppress(
            OSError
        ):  # no room is kept for it: on a full disk the report of the end needs that
            files.write_json(self._told.plan["log"], self._name, self._written, mode=0o644)


def own_memory() -> float:
    """Return the bytes of this process that are in no file."""
    with contextlib.suppress(OSError, KeyError, ValueError):
        return _lines("/proc/self/status", unit=1024)["RssAnon:"]
    return 0.0


def _text(path: str) -> str:
    with open(path) as file:
        return file.read().strip()


def _lines(path: str, unit: int = 1) -> dict[str, int]:
    """Read a file of names and whole numbers."""
    with open(path) as file:
        words = (line.split() for line in file)
        return {each[0]: int(each[1]) * unit for each in words if len(each) > 1 and each[1].isdigit()}
