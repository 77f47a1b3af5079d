"""Following of logs where nobody tells that they grew: by looking again and again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence

from mlp_hub.executors.base import LogChunk

PERIOD_S = 0.1
"""Tuning: seconds between two looks: sooner with less, cheaper with more."""


async def follow(
    read_new: Callable[[Mapping[int, int]], Awaitable[Sequence[LogChunk]]],
    cursors: Mapping[int, int],
    limit: int,
) -> AsyncGenerator[Sequence[LogChunk], None]:
    """Yield the lines after these ranks' cursors, and later ones; `limit` are the lines of a full chunk."""
    at = dict(cursors)
    while True:
        found = await read_new(at)
        at.update({chunk.rank: chunk.offset for chunk in found})
        if found:
            yield found
        if not any(len(chunk.lines) >= limit for chunk in found):
            await asyncio.sleep(PERIOD_S)
