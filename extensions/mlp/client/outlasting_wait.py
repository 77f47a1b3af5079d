"""Waits for independent work, also while the hub is away: a job does not end because the hub is away."""

from __future__ import annotations

import time
from collections.abc import Callable

from mlp.client.connection import ServiceConnection
from mlp.errors import NoHub, Unreachable
from mlp.language import say
from mlp.standard_error import write

SOON, LATE = 0.2, 2.0
"""Seconds between two questions, in the beginning and later."""


class OutlastingWait:
    """One wait: until `timeout` seconds are over, for ever without one. Outages are told once each, on standard error."""

    def __init__(
        self,
        client: ServiceConnection,
        timeout: float | None = None,
        *,
        tell: Callable[[str], object] = write,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._tell = tell
        self._clock = clock
        self._until = None if timeout is None else clock() + timeout
        self._pause = SOON
        self._away = False

    def asked(self, question: Callable[[], object]) -> bool:
        """Ask, and tell whether there was an answer; raises what the hub itself says: no such job, no right, no token."""
        try:
            with self._client.within(self.left()):
                question()
        except NoHub:
            raise
        except Unreachable as error:
            if not self._away:
                self._away = True
                self._tell(
                    say(
                        "MLP Hub is away: {why} Waiting until it answers; jobs continue.",
                        why=_sentence(error),
                    )
                )
            return False
        if self._away:
            self._away = False
            self._pause = SOON
            self._tell(say("MLP Hub answers again."))
        return True

    def left(self) -> float | None:
        """Return the seconds that are left, zero when it is over; None without an end."""
        return None if self._until is None else max(0.0, self._until - self._clock())

    @property
    def over(self) -> bool:
        """Whether its time is over."""
        return self.left() == 0.0

    def pause(self) -> float:
        """Return how long to leave the hub alone before the next question."""
        pause, left = self._pause, self.left()
        self._pause = min(self._pause * 1.2, LATE)
        return pause if left is None else min(pause, left)


def _sentence(error: Exception) -> str:
    said = str(error)
    return said if said.endswith((".", "。")) else f"{said}."
