"""How tests wait for what comes by itself: they ask until it is there, however slow the machine is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

PATIENCE_S = 180.0
"""Seconds after which a test says that it waits in vain. It bounds only tests that fail, so it is never made small."""


def wait_for(
    what: Callable[[], Any], timeout: float = PATIENCE_S, every: float = 0.05, message: str = ""
) -> Any:
    """Call until something true comes back."""
    deadline = time.monotonic() + timeout
    while not (value := what()):
        assert time.monotonic() < deadline, f"waited {timeout:g} s in vain {message}; last answer: {value!r}"
        time.sleep(every)
    return value


async def until(
    look: Callable[[], Awaitable[Any]], timeout: float = PATIENCE_S, what: str = "it", every: float = 0.01
) -> Any:
    """Call an asynchronous function until it returns something true."""
    deadline = time.monotonic() + timeout
    while not (value := await look()):
        assert time.monotonic() < deadline, f"waited {timeout:g} s in vain for {what}; last answer: {value!r}"
        await asyncio.sleep(every)
    return value
