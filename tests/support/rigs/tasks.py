"""All asyncio tasks of a platform, found in its components: whoever holds one needs no entry in a list."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from mlp_hub.service.platform import Platform

ROOMS = ("mlp_hub.service.", "mlp_hub.background")
"""Modules whose objects are looked into; the database and the executor outlive a platform."""


def tasks_of(platform: Platform) -> list[asyncio.Task[Any]]:
    """Return the tasks that objects of the platform hold and that have not ended."""
    seen: set[int] = set()
    found: list[asyncio.Task[Any]] = []
    left: list[object] = [platform]
    while left:
        one = left.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, asyncio.Task):
            found += [] if one.done() else [one]
        else:
            left += _parts(one)
    return found


def _parts(one: object) -> Iterable[object]:
    if isinstance(one, Mapping):
        return [*one.keys(), *one.values()]
    if isinstance(one, list | tuple | set | frozenset):
        return one
    if not type(one).__module__.startswith(ROOMS):
        return ()
    slots = (name for kind in type(one).__mro__ for name in getattr(kind, "__slots__", ()))
    return [*getattr(one, "__dict__", {}).values(), *(getattr(one, name, None) for name in slots)]
