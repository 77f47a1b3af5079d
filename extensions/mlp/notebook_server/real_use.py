"""Real use of a notebook server, and its report to the platform: kernels, terminals and processor time, and not open pages.

A server counts as used while a kernel is busy, a program has a terminal, or one of its processes uses the processor. Work of
people counts too: cells that they run, files that they save. An open page whose kernel is idle does not, although it stores its
layout each ten seconds and polls: Jupyter's own time of the last API request has those requests too. All times are of a steady
clock, so a clock that is set changes nothing.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mlp.notebook_server import kernel_activity

log = logging.getLogger(__name__)
EVERY_S = 60.0
"""Tuning: seconds between two reports."""
SOON_S = 10.0
"""Tuning: seconds between two reports while a countdown is in progress: work that begins stops it that soon."""
WORKS = 0.05
"""Tuning: cores that a process uses at least when it works; an idle kernel uses a hundredth."""
SAVES = "mlp_saves_last_activity"
"""Given: the server counts every setting that ends so."""
_ANY_REQUEST = "api_last_activity"
"""Given: Jupyter's time of the last API request, which an untouched page changes too."""
_CHANGING = frozenset(["PUT", "POST", "PATCH", "DELETE"])
_TICKS = os.sysconf("SC_CLK_TCK")
Process = tuple[int, str]
"""A process by its id and its start, because ids come again."""


def processor_seconds(of: int | None = None, proc: Path = Path("/proc")) -> dict[Process, float]:
    """Return the processor time of each process below one, this one by default, and of its children that ended; in seconds."""
    top = os.getpid() if of is None else of
    parents: dict[int, int] = {}
    used: dict[int, tuple[str, float]] = {}
    for directory in proc.iterdir():
        if not directory.name.isdecimal():
            continue
        try:
            # the name in brackets may hold anything
            fields = (directory / "stat").read_text(errors="replace").rpartition(")")[2].split()
            parents[int(directory.name)] = int(fields[1])
            used[int(directory.name)] = fields[19], sum(map(int, fields[11:15])) / _TICKS
        except (OSError, ValueError, IndexError):
            continue  # it has ended
    return {(pid, used[pid][0]): used[pid][1] for pid in used if pid != top and _below(pid, top, parents)}


def _below(pid: int, top: int, parents: Mapping[int, int]) -> bool:
    seen = 0
    while pid in parents and seen <= len(parents):
        pid, seen = parents[pid], seen + 1
        # whose parent ended belongs to process 1, which in a sandbox is the server's own
        if pid == top or (pid == 1 and _alone()):
            return True
    return False


def _alone() -> bool:
    """Whether all processes here are the server's: it runs in a sandbox or a pod of its own."""
    return "JUPYTERHUB_SERVICE_PREFIX" in os.environ


def watch_saves(app: Any) -> None:
    """Note from now on each request that changed a file of the server: saved, made, renamed, copied or deleted it."""
    web_app, files = app.web_app, f"{app.base_url.rstrip('/')}/api/contents"
    log_request = web_app.log_request

    def note(handler: Any) -> None:
        request = handler.request
        changed = request.method in _CHANGING and handler.get_status() < 400
        if changed and f"{request.path}/".startswith(f"{files}/"):
            web_app.settings[SAVES] = datetime.now(UTC)
        log_request(handler)

    # the method, and not the setting `log_function`: JupyterHub replaces that one after the extensions are loaded
    web_app.log_request = note


class RealUse:
    """Time since the server was last used. `app` is the server, `monotonic` a clock that never jumps."""

    def __init__(
        self,
        app: Any,
        monotonic: Callable[[], float] = time.monotonic,
        seconds: Callable[[], dict[Process, float]] = processor_seconds,
    ) -> None:
        self._app, self._monotonic, self._seconds = app, monotonic, seconds
        self._used_at = self._looked_at = monotonic()
        self._before = seconds()
        self._last: list[object] | None = None

    def idle_s(self) -> float:
        """Look, and return the seconds since it was last used."""
        now = self._monotonic()
        passed, self._looked_at = now - self._looked_at, now
        at_work = self._processes_work(passed)
        by_people = self._activity()
        if at_work:
            # what culls for the whole hub hears of it too
            self._app.web_app.settings[kernel_activity.SETTING] = datetime.now(UTC)
        if at_work or by_people or kernel_activity.is_at_work(self._app):
            self._used_at = now
        return now - self._used_at

    def _processes_work(self, passed: float) -> bool:
        found = self._seconds()
        before, self._before = self._before, found
        return any(s - before.get(key, 0.0) >= WORKS * max(passed, 1.0) for key, s in found.items())

    def _activity(self) -> bool:
        """Whether a file was saved, or a kernel or terminal had a message, since the last look: by a change, not by a time."""
        settings = self._app.web_app.settings
        noted = [
            value
            for key, value in settings.items()
            if key.endswith("_last_activity") and key not in {kernel_activity.SETTING, _ANY_REQUEST}
        ]
        known = [*noted, getattr(self._app.kernel_manager, "last_kernel_activity", None)]
        last, self._last = self._last, known
        return last is not None and last != known


class UseReports:
    """Reports to the platform, by `send(idle_s)`, which returns the countdown in seconds, None without one."""

    def __init__(self, use: RealUse, send: Callable[[float], Awaitable[float | None]]) -> None:
        self._use, self._send = use, send

    async def report(self) -> float:
        """Report once; return the seconds until the next report."""
        idle = await asyncio.get_running_loop().run_in_executor(None, self._use.idle_s)
        try:
            left = await self._send(idle)
        except Exception as error:  # noqa: BLE001 - the next one may arrive
            log.debug("reporting the use of this server failed: %s", error)
            return EVERY_S
        return EVERY_S if left is None else SOON_S

    async def run(self) -> None:
        """Report as long as the server runs."""
        while True:  # noqa: ASYNC110 - a pace, not a condition
            await asyncio.sleep(await self.report())
