"""What was done to the hub: every kill, freeze and outage with its time, so that later a loss can be explained or not."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Hit:
    """A signal to one process: SIGKILL, or SIGSTOP (`frozen`). `attempt` is the job's, None for the platform's own."""

    at: float
    kind: str
    pid: int
    attempt: str | None = None
    frozen: bool = False


@dataclass
class Outage:
    """A time in which the disk was full or the database away; `end` is None while it lasts."""

    kind: str
    start: float
    end: float | None = None

    def covers(self, at: float, slack: float = 0.0) -> bool:
        """Whether a moment lies within it, or so many seconds beside it."""
        return self.start - slack <= at and (self.end is None or at <= self.end + slack)


@dataclass
class Toll:
    """The record of a run; any thread may add to it."""

    hits: list[Hit] = field(default_factory=list)
    outages: list[Outage] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def hit(self, kind: str, pid: int, attempt: str | None = None, *, frozen: bool = False) -> None:
        """Write down a signal; before it is sent, so that nobody sees the effect first."""
        with self._lock:
            self.hits.append(Hit(time.time(), kind, pid, attempt, frozen))

    def fault(self, name: str) -> None:
        """Count a fault."""
        with self._lock:
            self.faults[name] += 1

    def outage(self, kind: str) -> Outage:
        """Begin an outage; its end is set by who ends it."""
        with self._lock:
            one = Outage(kind, time.time())
            self.outages.append(one)
            return one

    def of_job(self, uid: str) -> list[Hit]:
        """Return what was done to all attempts of a job."""
        return [hit for hit in self.hits if hit.attempt is not None and hit.attempt.rpartition(".")[0] == uid]

    def killed(self, pid: int) -> bool:
        """Whether this process was killed by us."""
        return any(hit.pid == pid and not hit.frozen for hit in self.hits)

    def frozen(self, pid: int) -> bool:
        """Whether this process was stopped by us for a while."""
        return any(hit.pid == pid and hit.frozen for hit in self.hits)

    def within(self, kind: str, at: float, slack: float) -> bool:
        """Whether there was such an outage at that time."""
        return any(o.kind == kind and o.covers(at, slack) for o in self.outages)

    def disturbed(self, start: float, end: float) -> bool:
        """Whether any of the platform's processes was hit, or anything was away, in that time."""
        hit = any(start <= h.at <= end and h.attempt is None for h in self.hits)
        return hit or any(o.start <= end and (o.end is None or o.end >= start) for o in self.outages)

    def kills(self) -> Counter[str]:
        """Count the processes killed, by kind."""
        return Counter(hit.kind for hit in self.hits if not hit.frozen)
