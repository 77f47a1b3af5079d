"""Copies of frozen records, for what happens several times for each job."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar

T = TypeVar("T")


def changed(record: T, **changes: object) -> T:
    """Return a copy of a dataclass with some fields changed: as `dataclasses.replace`, in a third of its time.

    Type checkers do not look into it, so use it where that time counts. Raises `KeyError` for a field that is not there.
    """
    get, places = _fields_of(type(record))  # type: ignore[arg-type]  # classes are hashable
    values = list(get(record))
    for name, value in changes.items():
        values[places[name]] = value
    return type(record)(*values)


@cache
def _fields_of(kind: Any) -> tuple[Callable[[object], tuple[object, ...]], Mapping[str, int]]:
    names = [f.name for f in fields(kind)]
    return attrgetter(*names), {name: at for at, name in enumerate(names)}
