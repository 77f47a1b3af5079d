"""Reads the keys of one mapping of a scenario, and says of each wrong one what would be right."""

from __future__ import annotations

import difflib
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from mlp_hub.domain.resources import MILLI
from mlp_hub.scheduler.simulate.errors import Faults
from mlp_hub.scheduler.simulate.keys import Key

LARGEST = 10**12
"""No number of a scenario may be above this; sums of such stay exact enough."""

_LONGEST_NAME = 200


def shown(value: object) -> str:
    """Write a value for a message: short, whatever it is."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, int) and abs(value) > LARGEST**2:
        return "a number of many digits"
    text = f'"{value}"' if isinstance(value, str) else str(value)
    text = text if text.isprintable() else repr(text)
    return text if len(text) <= 60 else f"{text[:57]}..."


def alike(word: str, words: Collection[str]) -> str:
    """Return what to add to a message about an unknown word: the one that was probably meant, or what there is."""
    near = difflib.get_close_matches(word[:100], words if len(words) <= 10_000 else (), 1)
    if near:
        return f"; did you mean {near[0]}?"
    if not words:
        return ""
    some = sorted(words) if len(words) <= 12 else ()
    return f"; there is {', '.join(some)}" if some else ""


class Fields:
    """One mapping at its place; what is wrong goes to `faults`, and a default stands in so that reading goes on."""

    def __init__(self, faults: Faults, place: str, value: object, keys: Sequence[Key]) -> None:
        self.faults = faults
        self.place = place
        self.given: Mapping[Any, Any] = {}
        if not isinstance(value, Mapping):
            faults.add(place, f"{shown(value)} is no mapping; write its keys as in {{{keys[0].name}: ...}}")
            self.broken = True
            return
        self.broken = False
        self.given = value
        known = {key.name for key in keys}
        for key in value:
            if key not in known:
                hint = alike(str(key), [k.name for k in keys])
                faults.add(self.at(key), f"there is no such key here{hint}")
        for k in keys:
            if k.default is None and k.name not in value:
                faults.add(self.at(k.name), f"is missing: {k.meaning}")

    def at(self, key: object) -> str:
        """Return the place of a key."""
        name = key if isinstance(key, str) and key.isprintable() else shown(key)
        return f"{self.place}.{name}" if self.place else str(name)

    def wrong(self, key: str, what: str) -> None:
        """Note a fault of one key."""
        self.faults.add(self.at(key), what)

    def has(self, key: str) -> bool:
        """Whether the key is given and not null."""
        return self.given.get(key) is not None

    def number(self, key: str, default: float, *, above_zero: bool = False) -> float:
        """Read a number from 0 on, or above it."""
        found = self._number(key, above_zero)
        return default if found is None else found

    def number_or_none(self, key: str, *, above_zero: bool = False) -> float | None:
        """Read a number, None where it is left out or null."""
        return self._number(key, above_zero) if self.has(key) else None

    def _number(self, key: str, above_zero: bool) -> float | None:
        if key not in self.given:
            return None
        value = self.given[key]
        least = "above 0" if above_zero else "from 0 on"
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.wrong(key, f"{shown(value)} is no number; write a number {least}")
        elif isinstance(value, float) and not math.isfinite(value):
            self.wrong(key, f"{shown(value)} is not finite; write a number {least}")
        elif value < 0:
            self.wrong(key, f"{shown(value)} is negative; write a number {least}")
        elif above_zero and value == 0:
            self.wrong(key, "is 0; write a number above 0")
        elif value > LARGEST:
            self.wrong(key, f"{shown(value)} is too large; the largest is {LARGEST}")
        else:
            return float(value)
        return None

    def whole(self, key: str, default: int, *, least: int = 0, most: int = LARGEST) -> int:
        """Read a whole number."""
        value = self._number(key, above_zero=False)
        if value is None:
            return default
        if value != int(value):
            self.wrong(key, f"{value:g} is no whole number")
        elif value < least:
            self.wrong(key, f"is {int(value)}; the least is {least}")
        elif value > most:
            self.wrong(key, f"{int(value)} is too many; the most is {most}")
        else:
            return int(value)
        return default

    def milli(self, key: str, default: int) -> int:
        """Read cores or devices as thousandths."""
        value = self._number(key, above_zero=False)
        if value is None:
            return default
        amount = round(value * MILLI)
        if value and not amount:
            self.wrong(key, f"{value:g} is below a thousandth, the least amount there is")
        return amount

    def flag(self, key: str, default: bool) -> bool:
        """Read true or false."""
        value = self.given.get(key, default)
        if not isinstance(value, bool):
            self.wrong(key, f"{shown(value)} is neither true nor false")
            return default
        return value

    def text(self, key: str, default: str) -> str:
        """Read a name."""
        if key not in self.given:
            return default
        value = self.given[key]
        if not isinstance(value, str):
            quote = f'; in quotes it would be: "{value}"' if isinstance(value, int | float) else ""
            self.wrong(key, f"{shown(value)} is no text{quote}")
        elif not value or not value.isprintable() or len(value) > _LONGEST_NAME:
            self.wrong(key, f"{shown(value)} cannot be used; write 1 to {_LONGEST_NAME} printable characters")
        else:
            return value
        return default

    def text_or_none(self, key: str) -> str | None:
        """Read a name, None where it is left out, null or wrong."""
        return (self.text(key, "") or None) if self.has(key) else None

    def choice(self, key: str, default: str, choices: Sequence[str]) -> str:
        """Read one of some words."""
        value = self.given.get(key, default)
        if not isinstance(value, str) or value not in choices:
            self.wrong(key, f"{shown(value)} is unknown; choose one of {', '.join(choices)}")
            return default
        return value

    def one_of(self, key: str, what: str, names: Collection[str]) -> str | None:
        """Read the name of something that must be there; None where it is not given or not there."""
        if not self.has(key):
            return None
        value = self.text(key, "")
        if value and value not in names:
            self.wrong(key, f"there is no {what} {value}{alike(value, names)}")
            return None
        return value or None

    def items(self, key: str) -> list[Any]:
        """Read a list; left out or null is an empty one."""
        value = self.given.get(key)
        if value is None:
            if key in self.given:
                self.wrong(key, "is null; write a list, [] for none")
            return []
        if not isinstance(value, list):
            self.wrong(key, f"{shown(value)} is no list")
            return []
        return value

    def mapping(self, key: str) -> Mapping[Any, Any]:
        """Read a mapping; left out or null is an empty one."""
        value = self.given.get(key)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            self.wrong(key, f"{shown(value)} is no mapping")
            return {}
        return value

    def labels(self, key: str) -> dict[str, str]:
        """Read a mapping of text to text; a number stands for its text."""
        found: dict[str, str] = {}
        for name, value in self.mapping(key).items():
            if (
                isinstance(value, bool)
                or not isinstance(value, str | int | float)
                or not isinstance(name, str)
            ):
                self.wrong(key, f"{shown(name)}: {shown(value)} is no label; write NAME: TEXT")
            else:
                found[name] = str(value)
        return found
