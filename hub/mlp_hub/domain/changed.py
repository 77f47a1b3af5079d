"""Copies of frozen records, for steps that happen several times for each job."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar

T = TypeVar("T")
_Setter = Callable[[object, object], None]


def changed(record: T, **changes: object) -> T:
    """Return a copy of a slotted dataclass with some fields changed: as `dataclasses.replace`, in a fifth of its time.

    Type checkers do not look into it, so use it where that time counts. Raises `KeyError` for a field that is not there,
    and `TypeError` for a class that works out something of its fields as it is made.
    """
    kind = type(record)
    get, setters, setter_of = _fields_of(kind)  # type: ignore[arg-type]  # classes are hashable
    copy = object.__new__(kind)
    for put, value in zip(setters, get(record), strict=True):
        put(copy, value)
    for name, value in changes.items():
        setter_of[name](copy, value)
    return copy


@cache
def _fields_of(
    kind: Any,
) -> tuple[Callable[[object], tuple[object, ...]], Sequence[_Setter], Mapping[str, _Setter]]:
    """Return what reads all fields at once, and what writes each: of a frozen class too, for nobody has seen the copy yet."""
    if hasattr(kind, "__post_init__"):
        raise TypeError(f"{kind.__name__} works out fields of its own as it is made; use dataclasses.replace")
    names = [f.name for f in fields(kind)]
    setters = [getattr(kind, name).__set__ for name in names]
    return attrgetter(*names), setters, dict(zip(names, setters, strict=True))
