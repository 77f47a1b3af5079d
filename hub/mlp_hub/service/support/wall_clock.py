"""Detection of a set wall clock, or a sleep of the machine: timed states then keep their lengths.

The database has times of the wall clock, for example expiries. When the clock jumps, the owners of
such times move them: no job, server or upload ends earlier for it. Tokens, bookings and retention
follow the calendar, and do not move.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from mlp_hub.background import BackgroundTask

log = logging.getLogger(__name__)
LOOK_EVERY_S = 1.0
"""Tuning: seconds between two looks: processor time, for how long a jump goes unnoticed."""
JUMP_S = 5.0
"""Tuning: seconds that count as a jump; gradual corrections of a clock are not noticed."""


class WallClockWatch:
    """Awaits `moved(seconds)` of all who keep times of `clock`, each time that it went another way than `steady`."""

    def __init__(
        self,
        clock: Callable[[], float],
        moved: Callable[[float], Awaitable[None]],
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock, self._moved, self._steady = clock, moved, steady
        self._apart = clock() - steady()
        self._task = BackgroundTask(self._watch)

    def start(self) -> None:
        """Watch from now on."""
        self._apart = self._clock() - self._steady()
        self._task.start()

    async def stop(self) -> None:
        """Watch no more."""
        await self._task.stop()

    async def check_clock(self) -> None:
        """Look once; a jump that could not be told is told at the next look."""
        apart = self._clock() - self._steady()
        if abs(apart - self._apart) < JUMP_S:
            self._apart = apart  # a clock that is set right slowly never comes to be a jump
            return
        log.warning(
            "the wall clock jumped by %.0f s; what is to last a while goes on lasting as long",
            apart - self._apart,
        )
        await self._moved(apart - self._apart)
        self._apart = apart

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            try:
                await self.check_clock()
            except Exception as error:  # noqa: BLE001 - it is told again at the next look
                log.warning("times could not be moved along with the clock: %s", error)
