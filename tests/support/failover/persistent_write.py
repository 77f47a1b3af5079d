"""A write that is tried until it is taken, by attempts that do not wait for each other.

A slow machine that answers late has answered: an attempt that is not answered soon is waited for while the next ones are made.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from support.waiting import PATIENCE_S

TRY_S = 2.0
"""Seconds after which the next attempt begins, where one is not answered."""
AGAIN_S = 0.02
"""Seconds after which the next attempt begins, where one was refused."""
LATE_S = 15.0
"""Seconds within which the hub promises that a write is taken."""


@dataclass
class Attempt:
    """One attempt: how far it is, in seconds since the first began."""

    began: float
    ended: float | None = None
    taken: bool = False
    error: Exception | None = None

    def __str__(self) -> str:
        told = "taken" if self.taken else "refused"
        return f"{self.began:.2f} s: " + (
            "no answer" if self.ended is None else f"{told} at {self.ended:.2f} s"
        )


@dataclass
class PersistentWrite:
    """A write that is tried for as long as tests have patience.

    `send` is called by threads, several at a time; it returns whether the write was taken by who counts. `late` is called
    once, by a thread too, when that took longer than `late_s`.
    """

    send: Callable[[], bool]
    late: Callable[[], object] = lambda: None
    try_s: float = TRY_S
    late_s: float = LATE_S
    patience_s: float = PATIENCE_S
    attempts: list[Attempt] = field(default_factory=list)
    _threads: list[threading.Thread] = field(default_factory=list)
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _began: float = 0.0

    def until_taken(self) -> float | None:
        """Return after how many seconds the first attempt was answered that was taken; None where none was."""
        self._began = time.monotonic()
        told = False
        while self._taken() is None:
            now = self._now()
            if now > self.patience_s:
                return None
            if now > self.late_s and not told:
                told = True
                self._start(self.late)
            attempt = Attempt(now)
            self.attempts.append(attempt)
            self._start(partial(self._try, attempt))
            with self._changed:
                self._changed.wait_for(partial(self._has_answer, attempt), self.try_s)
            for each in self.attempts:
                if each.error is not None:
                    raise each.error
            if attempt.ended is not None and not attempt.taken:
                time.sleep(AGAIN_S)
        return self._taken()

    def join(self) -> None:
        """Return once no attempt is under way any more."""
        for thread in self._threads:
            thread.join()

    def _try(self, attempt: Attempt) -> None:
        try:
            attempt.taken = self.send()
        except Exception as error:  # noqa: BLE001 - raised by who waits
            attempt.error = error
        finally:
            attempt.ended = self._now()
            with self._changed:
                self._changed.notify_all()

    def _has_answer(self, attempt: Attempt) -> bool:
        return attempt.ended is not None or self._taken() is not None

    def _taken(self) -> float | None:
        return min(
            (each.ended for each in self.attempts if each.taken and each.ended is not None), default=None
        )

    def _now(self) -> float:
        return time.monotonic() - self._began

    def _start(self, what: Callable[[], object]) -> None:
        thread = threading.Thread(target=what, daemon=True)
        self._threads.append(thread)
        thread.start()
