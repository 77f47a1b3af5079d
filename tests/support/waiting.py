"""Waits of tests for an event: they poll until it is there, however slow the machine is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

PATIENCE_S = 180.0
"""Seconds after which a test says that it waits in vain. It bounds only tests that fail, so it is never made small."""

PROCESSES_S, TASKS_S = 0.2, 0.03
"""Who waits long for other processes, or for tasks of the same loop, looks at least so often."""


def pause(every: float, waited: float, most: float) -> float:
    """Return the seconds until the next look: a tenth of what was waited, since who looks takes time from what is waited for."""
    return max(every, min(waited / 10, most))


def wait_for(
    what: Callable[[], Any], timeout: float = PATIENCE_S, every: float = 0.05, message: str = ""
) -> Any:
    """Call until something true comes back."""
    began = time.monotonic()
    while not (value := what()):
        waited = time.monotonic() - began
        assert waited < timeout, f"waited {timeout:g} s in vain {message}; last answer: {value!r}"
        time.sleep(pause(every, waited, PROCESSES_S))
    return value


async def until(
    look: Callable[[], Awaitable[Any]], timeout: float = PATIENCE_S, what: str = "it", every: float = 0.01
) -> Any:
    """Call an asynchronous function until it returns something true."""
    began = time.monotonic()
    while not (value := await look()):
        waited = time.monotonic() - began
        assert waited < timeout, f"waited {timeout:g} s in vain for {what}; last answer: {value!r}"
        await asyncio.sleep(pause(every, waited, TASKS_S))
    return value
