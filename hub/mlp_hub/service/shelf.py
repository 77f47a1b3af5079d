"""Jobs about which no decision can be stored: for a time that grows they are left as they are.

Who waits is not tried meanwhile, and others pass. Who runs goes on, and is neither stopped for others nor resized.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class _Entry:
    tries: int
    until: float


class Shelf:
    """The jobs that are left alone, each until its time has come. Times in seconds."""

    def __init__(self, backoff_s: float, most_s: float) -> None:
        self._backoff_s = backoff_s
        self._most_s = most_s
        self._all: dict[str, _Entry] = {}  # also those that may be tried again, for the time after that
        self._here: dict[str, None] = {}

    def __contains__(self, uid: str) -> bool:
        return uid in self._here

    def put(self, uid: str, now: float) -> float:
        """Leave a job alone; return for how long."""
        tries = self._all[uid].tries + 1 if uid in self._all else 1
        wait = min(self._backoff_s * float(1 << min(tries - 1, 16)), self._most_s)
        self._all[uid] = _Entry(tries, now + wait)
        self._here[uid] = None
        return wait

    def ripe(self, now: float) -> list[str]:
        """Return the jobs that may be tried again from now on."""
        ripe = [uid for uid in self._here if self._all[uid].until <= now]
        for uid in ripe:
            del self._here[uid]
        return ripe

    def forget(self, uid: str) -> None:
        """Drop a job about which something was stored, or that is gone."""
        self._all.pop(uid, None)
        self._here.pop(uid, None)

    def next(self) -> float | None:
        """Return when the next one may be tried again."""
        return min((self._all[uid].until for uid in self._here), default=None)
