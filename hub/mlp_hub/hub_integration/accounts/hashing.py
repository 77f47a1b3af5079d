"""Passwords are hashed beside the event loop, a few at a time: a hash takes a fifth of a second of a core, on purpose."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import bcrypt
from tornado import web

T = TypeVar("T")
MADE_UP_ROUNDS = 6
"""Safety: cost of the hash of a password that a machine made up: one of 80 bits is not guessed, however quick a guess is."""
_FULL_COST = b"$2b$12$C6UzMDM.H6dfI/f/IKcEeOZ1p1sLZ5hS9yq7i6Cw3CwJ0f1oYbY8K"
WAITING_MAX = 100  # the last of them waits for some 10 s on two cores


class TooManyAtOnce(web.HTTPError):
    """So many passwords wait to be hashed that one more would wait too long; answered as 503."""

    def __init__(self) -> None:
        super().__init__(503, "Too many people log in at once. Try again in some seconds.")
        self.headers = {"Retry-After": "5"}


class Hasher:
    """Hasher and comparer of passwords in separate threads, half as many as cores, so that pages are served."""

    def __init__(self, waiting_max: int = WAITING_MAX) -> None:
        self._threads = ThreadPoolExecutor(max(1, (os.cpu_count() or 2) // 2), "passwords")
        self._waiting = 0
        self._waiting_max = waiting_max

    async def hashed(self, password: str) -> bytes:
        """Return the hash of a password that the rules let pass."""
        return await self._run(lambda: bcrypt.hashpw(password.encode(), bcrypt.gensalt()))

    async def all_hashed(self, made_up: Sequence[str]) -> list[bytes]:
        """Return the hashes of passwords that a machine made up: quick ones, as nobody could guess these."""
        return await self._run(
            lambda: [bcrypt.hashpw(one.encode(), bcrypt.gensalt(MADE_UP_ROUNDS)) for one in made_up]
        )

    async def matches(self, password: str, hashed: bytes) -> bool:
        """Whether this is the password that was hashed."""
        return await self._run(lambda: _matches(password, hashed))

    def check_room(self) -> None:
        """Raise TooManyAtOnce where one more would be."""
        if self._waiting >= self._waiting_max:
            raise TooManyAtOnce

    async def _run(self, work: Callable[[], T]) -> T:
        self.check_room()
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        finally:
            self._waiting -= 1


def _matches(password: str, hashed: bytes) -> bool:
    try:
        if hashed.startswith(b"$2b$%02d$" % MADE_UP_ROUNDS):
            bcrypt.checkpw(
                password.encode(), _FULL_COST
            )  # takes as long as others: whose is quick would be told by that
        return bool(bcrypt.checkpw(password.encode(), hashed))
    except ValueError:  # longer than bcrypt takes, or with a NUL: nobody's password
        return False
