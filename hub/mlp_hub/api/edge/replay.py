"""Idempotency keys of routes that do not keep their own: the same request gets the first one's answer."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any

from mlp_hub.domain.errors import Reason, Refused
from mlp_language.message import msg

KEPT = 2_000
"""Safety: answers to requests with a key that are kept to be repeated: bounds memory."""
_KEY = re.compile(r"[\x21-\x7e]{1,255}")


class RecentAnswers:
    """Recent answers by caller, route and key. Kept in memory: a repeat after a restart is a Conflict, not a second object."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str, str], tuple[bytes, asyncio.Future[Any]]] = OrderedDict()

    async def once(
        self, caller: str, operation: str, key: str | None, raw: bytes, work: Callable[[], Awaitable[Any]]
    ) -> Any:
        """Do the work unless it was done, or is being done, under this key; refuse another body under the same key.

        What fails is not kept: the next request with the key tries again.
        """
        if key is None:
            return await work()
        slot = (caller, operation, key)
        digest = hashlib.blake2b(raw, digest_size=16).digest()
        known = self._kept.get(slot)
        if known is not None:
            if known[0] != digest:
                raise Refused(
                    Reason.CONFLICT,
                    msg("the Idempotency-Key {key} was used for another request; use a new one", key=key),
                )
            return await asyncio.shield(known[1])
        task = asyncio.ensure_future(work())
        self._kept[slot] = (digest, task)
        if len(self._kept) > KEPT:
            self._kept.popitem(last=False)

        def forget_failure(done: asyncio.Future[Any]) -> None:
            if (done.cancelled() or done.exception() is not None) and self._kept.get(slot) == (digest, done):
                del self._kept[slot]

        task.add_done_callback(forget_failure)
        return await asyncio.shield(task)


def check_key(key: str | None) -> str | None:
    """Return the key, or refuse one that is not 1 to 255 visible ASCII characters."""
    if key is not None and not _KEY.fullmatch(key):
        raise Refused(Reason.INVALID, msg("the Idempotency-Key must be 1 to 255 visible ASCII characters"))
    return key
