"""Jobs whose decisions cannot be stored: they are left as they are for a time that grows.

Waiting ones are not tried in the meantime, and others pass. Running ones continue, and are neither
stopped for others nor resized.
"""

from __future__ import annotations

from collections.abc import Callable

from mlp_hub.service.support.backoff import KeyedBackoff


class JobBackoff:
    """Jobs that are left alone after a decision about them could not be stored, each until its time has come. Times in seconds."""

    def __init__(self, backoff_s: float, most_s: float) -> None:
        self._backoff: KeyedBackoff[str] = KeyedBackoff(backoff_s, most_s)
        self._until: dict[str, float] = {}
        self.held: Callable[[str], bool] = lambda _: False
        """Which others, that wait, are left alone until somebody says otherwise."""

    def __contains__(self, uid: str) -> bool:
        return uid in self._until or self.held(uid)

    def delay_job(self, uid: str, now: float) -> float:
        """Leave a job alone; return for how long."""
        wait = self._backoff.failed(uid)
        self._until[uid] = now + wait
        return wait

    def ripe(self, now: float) -> list[str]:
        """Return the jobs that may be tried again from now on."""
        ripe = [uid for uid, until in self._until.items() if until <= now]
        for uid in ripe:
            del self._until[uid]
        return ripe

    def forget(self, uid: str) -> None:
        """Drop a job about which something was stored, or that is gone."""
        self._backoff.forget(uid)
        self._until.pop(uid, None)

    def next(self) -> float | None:
        """Return when the next one may be tried again."""
        return min(self._until.values(), default=None)
