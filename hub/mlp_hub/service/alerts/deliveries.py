"""Looks whether the site's Alertmanager delivers its notifications; nothing where none is configured.

It counts them since it began. The page shows how many failed in the last hour, from looks that are in memory: after a start the
count begins with the first look. If a number has become smaller, Alertmanager began again.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

from mlp_api.localized import Text
from mlp_api.platform import alerts as api
from mlp_hub.background import BackgroundTask
from mlp_hub.service.config import AlertmanagerPolicy
from mlp_hub.service.notices.sender import Sender
from mlp_hub.service.support.units import maybe_when
from mlp_language.message import Message, msg

log = logging.getLogger(__name__)
EVERY_S = 60.0
"""Tuning: seconds between two looks: requests, for how late a failure is shown."""
WINDOW_S = 3600.0
"""Tuning: seconds for which a failure is shown."""


class AlertDeliveries:
    """The watch of Alertmanager, while this replica leads. `steady` measures durations, `clock` gives seconds since the epoch."""

    def __init__(
        self,
        policy: AlertmanagerPolicy | None,
        sender: Callable[[], Sender],
        *,
        clock: Callable[[], float],
        steady: Callable[[], float],
    ) -> None:
        self._policy, self._make_sender = policy, sender
        self._clock, self._steady = clock, steady
        self._sender: Sender | None = None
        self._looks: deque[tuple[float, Mapping[str, float]]] = deque()
        self._at: float | None = None
        self._trouble: Message | None = None
        self._task = BackgroundTask(self._run)

    def start(self) -> None:
        """Look from now on."""
        if self._policy is not None and not self._task.is_started:
            self._sender = self._make_sender()
            self._task.start()

    async def stop(self) -> None:
        """Look no more."""
        await self._task.stop()
        self._looks.clear()
        self._at, self._trouble = None, None
        if self._sender is not None:
            await self._sender.stop()

    def shown(self) -> api.AlertDelivery | None:
        """Return what is known of the deliveries; None where no Alertmanager is configured."""
        if self._policy is None:
            return None
        failed = self._failed()
        checked = maybe_when(self._at)
        if self._trouble is not None:
            return api.AlertDelivery(
                state="unknown", text=Text(self._trouble), failed=failed, checked_at=checked
            )
        if failed:
            ways = ", ".join(f"{how} ({number})" for how, number in failed.items())
            text = msg(
                "Alertmanager could not deliver these notifications in the last hour: {ways}", ways=ways
            )
            return api.AlertDelivery(state="failed", text=Text(text), failed=failed, checked_at=checked)
        if self._at is None:
            text = msg("Alertmanager was not asked yet whether it delivers notifications")
            return api.AlertDelivery(state="unknown", text=Text(text), failed={}, checked_at=None)
        return api.AlertDelivery(
            state="ok",
            text=Text(msg("Alertmanager delivers its notifications")),
            failed={},
            checked_at=checked,
        )

    async def look(self) -> None:
        """Ask once."""
        if self._policy is None or self._sender is None:
            return
        data = json.dumps({"headers": dict(self._policy.headers), "ca": self._policy.ca})
        said = await self._sender.points("alertmanager", self._policy.address, data)
        now, failed = self._steady(), _numbers(said.get("failed"))
        if failed is None:
            if self._trouble is None:
                words = " ".join(str(said[key]) for key in ("why", "status", "code") if key in said)
                log.warning("it is not known whether Alertmanager delivers notifications: %s", words)
            self._trouble = msg(
                "Alertmanager does not answer, so nobody knows here whether it delivers notifications"
            )
            return
        self._at, self._trouble = self._clock(), None
        self._looks.append((now, failed))
        # the last look before the window stays: what failed since then counts
        while len(self._looks) > 1 and self._looks[1][0] <= now - WINDOW_S:
            self._looks.popleft()

    def _failed(self) -> dict[str, int]:
        """Return how many failed in the window, by the way to deliver, without those that all arrived."""
        found: dict[str, float] = {}
        since = self._steady() - WINDOW_S
        for (earlier, before), (at, after) in pairwise(self._looks):
            # the first: nothing answered since then; the second: they may have failed long before the window
            if at <= since or at - earlier > WINDOW_S:
                continue
            for how, number in after.items():
                past = before.get(how, 0.0)
                found[how] = found.get(how, 0.0) + (number - past if number >= past else number)
        return {how: round(number) for how, number in sorted(found.items()) if number >= 1}

    async def _run(self) -> None:
        while True:
            try:
                await self.look()
            except Exception:  # it is tried again soon
                log.exception("asking Alertmanager failed")
            await asyncio.sleep(EVERY_S)


def _numbers(found: Any) -> dict[str, float] | None:
    return found if isinstance(found, dict) and found else None
