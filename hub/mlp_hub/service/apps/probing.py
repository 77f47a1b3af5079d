"""Probes of replicas: whether each answers, asked again and again at the address where its requests go."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from typing import NamedTuple

from mlp_hub.service.apps.connecting import connect
from mlp_hub.service.apps.endpoints import Address
from mlp_hub.service.support.limits import DEFAULTS

FIRST_S = 0.1
"""Tuning: seconds between the first two probes of a replica; grows: how soon it is found to answer, for how often it is asked."""
MOST_S = 2.0
"""Tuning: seconds between two probes of a replica that does not answer yet."""
EVERY_S = 5.0
"""Tuning: seconds between two probes of a replica that answers: how soon it is noticed that it does not, for how often it is asked."""
ANSWER_S = 5.0
"""Limit of apps: seconds in which a replica must answer a probe."""
MISSES = 3
"""Limit of apps: probes in sequence that fail until a replica counts as not ready."""


class ReplicaProbe(NamedTuple):
    """Probe of a replica: its address, the path, and whether any answer will do or only that all is well."""

    address: Address
    path: str
    any_answer: bool


class _Watched:
    """Knowledge of one replica."""

    def __init__(self, probe: ReplicaProbe) -> None:
        self.probe = probe
        self.ready = False
        self.overdue = False
        self.task: asyncio.Task[None] | None = None


class Probing:
    """The probes of all replicas; `changed` is called with the uid of the app when one begins or ceases to answer.

    A replica that has not answered for `patience_s` seconds is overdue.
    """

    def __init__(self, changed: Callable[[str], None], *, patience_s: float = DEFAULTS.app_start_s) -> None:
        self._changed = changed
        self._patience_s = patience_s
        self._of: dict[str, dict[str, _Watched]] = {}

    def keep(self, app: str, probes: Mapping[str, ReplicaProbe]) -> None:
        """Ask these replicas of an app, by their attempts, and no others."""
        known = self._of.setdefault(app, {})
        for attempt in [*known]:
            if probes.get(attempt) != known[attempt].probe:
                _cancel(known.pop(attempt))
        for attempt, probe in probes.items():
            if attempt not in known:
                known[attempt] = watched = _Watched(probe)
                watched.task = asyncio.ensure_future(self._watch(app, probe, watched))
        if not known:
            del self._of[app]

    def ready(self, app: str) -> set[str]:
        """Return the attempts that answer."""
        return {attempt for attempt, watched in self._of.get(app, {}).items() if watched.ready}

    def overdue(self, app: str) -> set[str]:
        """Return the attempts that have not answered for too long."""
        return {attempt for attempt, watched in self._of.get(app, {}).items() if watched.overdue}

    def stop(self) -> None:
        """Ask nobody any more."""
        for app in [*self._of]:
            self.keep(app, {})

    async def _watch(self, app: str, probe: ReplicaProbe, watched: _Watched) -> None:
        loop = asyncio.get_running_loop()
        wait, misses, since = FIRST_S, 0, loop.time()
        while True:
            answers = await answers_now(probe)
            misses = 0 if answers else misses + 1
            if answers:
                since = loop.time()
            was = watched.ready, watched.overdue
            watched.ready = answers or (watched.ready and misses < MISSES)
            watched.overdue = not watched.ready and loop.time() - since > self._patience_s
            if (watched.ready, watched.overdue) != was:
                self._changed(app)
            wait = EVERY_S if watched.ready else min(wait * 1.5, MOST_S)
            await asyncio.sleep(wait)


def _cancel(watched: _Watched) -> None:
    if watched.task is not None:
        watched.task.cancel()


async def answers_now(probe: ReplicaProbe) -> bool:
    """Ask once."""
    try:
        async with asyncio.timeout(ANSWER_S):
            reader, writer = await connect(probe.address)
            try:
                writer.write(f"GET {probe.path} HTTP/1.1\r\nHost: app\r\nConnection: close\r\n\r\n".encode())
                status = await reader.readline()
            finally:
                writer.close()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()
    except (OSError, TimeoutError, ValueError, asyncio.LimitOverrunError):
        return False
    words = status.split()
    if len(words) < 2 or not words[0].startswith(b"HTTP/1.") or not words[1].isdigit():
        return False
    return probe.any_answer or int(words[1]) == 200
