"""Records of a rank's start and end: a file next to its log, and the pod's termination message."""

from __future__ import annotations

import contextlib
import os
import re
import time
from typing import Any

from mlp_hub.executors.kubernetes.rank.told import OwnPlan
from mlp_hub.sandbox.shim import files
from mlp_hub.sandbox.shim.diagnosis.messages import Said, english, msg
from mlp_hub.sandbox.shim.diagnosis.outcome import (
    descriptors,
    exception_in,
    full,
    killed_by,
    looked_out,
    refused_process,
    surprised,
    without_launcher,
)
from mlp_hub.sandbox.shim.logs import writer

LAST_WORD = "/dev/termination-log"
_ROOM = 16 << 10
"""Safety: bytes of the disk that are kept for a report: on a full disk it is told all the same how a rank ended."""
_SIGTERM = 15
"""Given: number of the signal."""
_OOM_COUNTERS = ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")

_PID_COUNTERS = ("/sys/fs/cgroup", "/sys/fs/cgroup/pids")


class Report:
    """The report of one rank. Times are seconds since the epoch; `asked` means that it was told to end."""

    def __init__(self, told: OwnPlan) -> None:
        self.told = told
        self.name = f"{told.plan['attempt']}.{told.rank}.json"
        self.said: Said | None = None
        self.cause = ""
        self.data: dict[str, Any] = {
            "rank": told.rank,
            "role": told.role,
            "state": "waiting",
            "container_at": None,
            "started_at": None,
            "finished_at": None,
            "exit_code": None,
            "signal": None,
            "asked": False,
            "asked_at": None,
            "killed": False,
            "cause": "",
            "message": "",
            "said": None,
            "tail": "",
            "hint": None,
            "hint_limit": 0,
            "memory_kills": 0,
            "lost_lines": 0,
        }

    def _write(self) -> None:
        with contextlib.suppress(OSError):
            files.write_json(self.told.plan["log"], self.name, self.data, mode=0o644)

    def begun(self) -> None:
        """Tell that the program runs; room is kept for its end, which a full disk must not hide."""
        with contextlib.suppress(OSError):
            files.reserve(self.told.plan["log"], self.name, _ROOM)
        self.data.update(state="running", started_at=time.time(), container_at=container_began())
        self._write()

    def asked_to_end(self) -> None:
        """Remember when all of it were asked to end."""
        self.data["asked_at"] = self.data["asked_at"] or time.time()

    def blame(self, cause: str, said: Said) -> None:
        """Remember why it ended, if nothing else was first."""
        if self.said is None:
            self.cause, self.said = cause, said

    def ended(
        self,
        status: int | None,
        tail: str,
        *,
        asked: bool,
        killed_for_memory: int,
        lost: int,
        used: dict[str, Any] | None = None,
    ) -> int:
        """Tell how the program ended; return the pod's exit status. `status` is as of `waitstatus_to_exitcode`."""
        code, signum = (None, -status) if status is not None and status < 0 else (status, None)
        good = code in self.told.plan["success"]
        if not good:
            self._explain(code, signum, tail, asked=asked, killed_for_memory=bool(killed_for_memory))
        stopped = not good and not self.cause
        hint, limit = self._hint(tail) or (None, 0)
        self.data.update(
            state="finished" if good and not self.cause else "stopped" if stopped else "failed",
            finished_at=time.time(),
            exit_code=code,
            signal=signum,
            asked=asked,
            cause="ok" if good and not self.cause else "stopped" if stopped else self.cause,
            said=None if good or stopped else self.said,
            message="" if good or stopped or self.said is None else english(self.said),
            tail="" if good and not self.cause else without_launcher(tail),
            hint=hint,
            hint_limit=limit,
            memory_kills=killed_for_memory,
            lost_lines=lost,
            **(used or {}),
        )
        self._write()
        with contextlib.suppress(OSError):
            os.unlink(f"{self.told.plan['log']}/{self.name}.reserve")
        say(self.data["message"] or self.data["cause"])
        if good and not self.cause:
            return 0
        return code or (128 + signum if signum else 1)

    def _hint(self, tail: str) -> tuple[str, int] | None:
        if self.cause != "program-error":
            return None
        if self.told.plan["network"] != "outbound" and looked_out(tail):
            return "no-network", 0
        if full(tail) and (size := full_memory()):
            return "memory-files", size
        if refused_process(tail) and (most := process_limit()):
            return "process-limit", most
        return descriptors(tail) or surprised(tail)

    def _explain(
        self, code: int | None, signum: int | None, tail: str, *, asked: bool, killed_for_memory: bool
    ) -> None:
        """Find the reason for a bad end; a rank that was asked to end needs none."""
        who = msg("rank {n}", n=self.told.rank)
        if killed_for_memory and not (asked and signum == _SIGTERM):
            ram = self.told.plan["memory_mib"]
            self.blame(
                "out-of-memory", msg("{who} was killed: more memory than its {ram} MiB", who=who, ram=ram)
            )
        elif asked:
            return
        elif signum:
            self.blame("signal", killed_by(who, signum))
        elif error := exception_in(tail):
            said = msg("{who}: {error} (exit status {code})", who=who, error=error, code=code or 0)
            self.blame("program-error", said)
        else:
            self.blame("program-error", msg("{who} ended with exit status {code}", who=who, code=code or 0))

    def never_began(self, said: Said) -> int:
        """Tell that the program could not be started."""
        self.blame("start-failed", said)
        self.data["started_at"] = self.data["started_at"] or time.time()
        with contextlib.suppress(OSError):
            folder = self.told.log()
            log = writer.RankLog(folder, self.told.rank)
            line = writer.Stream(log, "stderr")
            line.feed(f"[mlp] {english(said)}\n".encode())
            log.close()
            os.close(folder)
        return self.ended(127, "", asked=False, killed_for_memory=0, lost=0)


def say(text: str) -> None:
    """Leave the pod's last word, which the cluster shows."""
    with contextlib.suppress(OSError), open(LAST_WORD, "w") as file:
        file.write(text[:4000])


def container_began() -> float | None:
    """Return when the pod's first process began, and so its container."""
    with contextlib.suppress(OSError, ValueError, IndexError), open("/proc/1/stat", "rb") as file:
        ticks = int(file.read().rpartition(b")")[2].split()[19])
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
        return time.time() - max(0.0, age)
    return None


def full_memory() -> int:
    """Return the size of /dev/shm in MiB where it is full, else 0."""
    with contextlib.suppress(OSError):
        found = os.statvfs("/dev/shm")  # noqa: S108 - the pod's own
        if found.f_bavail * found.f_frsize < 1 << 20:
            return found.f_blocks * found.f_frsize >> 20
    return 0


def process_limit() -> int:
    """Return how many processes and threads this pod may have where the kernel has refused one for that, else 0."""
    for path in _PID_COUNTERS:
        with contextlib.suppress(OSError, ValueError), open(f"{path}/pids.events") as file:
            if not re.search(r"^max [1-9]", file.read(), re.MULTILINE):
                continue
            with open(f"{path}/pids.max") as most:
                return int(most.read())
    return 0


def memory_kills() -> int:
    """Return how many processes of this pod the kernel has killed for lack of memory."""
    for path in _OOM_COUNTERS:
        with contextlib.suppress(OSError), open(path) as file:
            if found := re.search(r"^oom_kill (\d+)$", file.read(), re.MULTILINE):
                return int(found[1])
    return 0
