"""Lets something happen between the look of a component and the act that follows, where a test of a race needs it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest


def meanwhile(
    monkeypatch: pytest.MonkeyPatch, thing: object, method: str, of: str, act: Callable[[], Awaitable[object]]
) -> list[str]:
    """Have `act` done once, right before `thing.method` is called with a function that was made in `of`.

    `thing` is a database or a board, `method` one of `read`, `write` and `commit`. Return a list that has an entry once it was done.
    """
    before: Callable[..., Awaitable[Any]] = getattr(thing, method)
    done: list[str] = []

    async def call(fn: Callable[..., Any], *args: Any, **options: Any) -> Any:
        if not done and fn.__qualname__.startswith(of):
            done.append(of)
            await act()
        return await before(fn, *args, **options)

    monkeypatch.setattr(thing, method, call)
    return done
