"""Tending of attempts: advances them at news of the cluster, or in time, and reports their changes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

from mlp_hub.domain.errors import MessageError
from mlp_hub.executors.base import AttemptPhase, Observation, Superseded

log = logging.getLogger(__name__)
LOOK_S = 0.5
"""Tuning: seconds between two looks at attempts that start or end, whose ranks write on the volume, which tells nobody."""
LOOK_EACH_S = 0.002
"""Tuning: the same for each of these attempts: how late an end is seen, for the part of all time that looking takes."""

Advance = Callable[[str], Awaitable[tuple[Observation, bool]]]
"""Function that advances an attempt by the steps that only the hub takes.

It returns the attempt's state, and whether that is settled: then it is looked at again only at
news.
"""


class SyncLoop:
    """Loop over attempts of which there is news, and again and again over those that are not settled.

    `tells_news`: those who listen hear of news that left an attempt as it was, too.
    """

    def __init__(self, advance: Advance, *, tells_news: bool = False) -> None:
        self._advance, self._tells_news = advance, tells_news
        self.last: dict[str, Observation] = {}
        """How attempts stood when those who listen were last told; nothing of those that are absent."""
        self.listeners: list[Callable[[str], None]] = []
        self._unsettled: set[str] = set()
        self._failed: dict[str, str] = {}  # why, of those at which the last look failed
        self._news: set[str] = set()
        self._wake = asyncio.Event()

    def news(self, attempt: str) -> None:
        """Look at an attempt at once."""
        self._news.add(attempt)
        self._wake.set()

    def settle(self, attempt: str) -> None:
        """Look at an attempt no more, until there is news of it."""
        self._unsettled.discard(attempt)

    async def run(self) -> None:
        """Tend attempts until cancelled; start only after a first full look.

        An attempt that is not listed yet has not gone.
        """
        loop = asyncio.get_running_loop()
        looked_at = loop.time()
        while True:
            due = looked_at + LOOK_S + LOOK_EACH_S * len(self._unsettled) if self._unsettled else None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(due):
                    await self._wake.wait()
            self._wake.clear()
            news, self._news = self._news, set()
            at = set(news)
            if due is not None and loop.time() >= due:  # news of one are no reason to look at all others
                looked_at = loop.time()
                at |= self._unsettled
            await asyncio.gather(*(self._tend(attempt, news=attempt in news) for attempt in at))

    async def _tend(self, attempt: str, *, news: bool) -> None:
        """Do the necessary steps of an attempt, whether or not anybody asks, and report its changes."""
        try:
            seen, is_settled = await self._advance(attempt)
        except Superseded:
            self._unsettled.discard(attempt)
            self._failed.pop(attempt, None)
            return
        except Exception as error:  # whatever it is, the next look comes
            if self._failed.get(attempt) != str(error):  # a cluster that is away fails each look
                self._failed[attempt] = str(error)
                log.warning("%s: %s", attempt, error, exc_info=not isinstance(error, MessageError))
            self._unsettled.add(attempt)
            return
        self._failed.pop(attempt, None)
        if is_settled:
            self._unsettled.discard(attempt)
        else:
            self._unsettled.add(attempt)
        if (news and self._tells_news) or seen != self.last.get(attempt):
            if seen.phase is AttemptPhase.ABSENT:
                self.last.pop(attempt, None)
            else:
                self.last[attempt] = seen
            for listener in self.listeners:
                listener(attempt)
