"""How single values read: lengths of time, times of day, numbers, amounts of memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from mlp.language import say
from mlp.terms import COUNTED


def parse_time(text: object) -> datetime | None:
    """Read an RFC 3339 time; None for nothing or nonsense."""
    try:
        return datetime.fromisoformat(str(text)) if text else None
    except ValueError:
        return None


def span(seconds: float) -> str:
    """Write a length of time: 8 s, 3 min 20 s, 2 h 5 min, 3 d 4 h."""
    whole = max(0, round(seconds))
    if whole < 60:
        return say("{n} s", n=whole)
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        text = say("{n} min", n=minutes)
        return f"{text} {say('{n} s', n=rest)}" if rest and minutes < 10 else text
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        text = say("{n} h", n=hours)
        return f"{text} {say('{n} min', n=minutes)}" if minutes else text
    days, hours = divmod(hours, 24)
    text = say("{n} d", n=days)
    return f"{text} {say('{n} h', n=hours)}" if hours else text


def clock_time(text: object) -> str:
    """Write a point in time in the reader's zone: 14:20, with the date when it is not today."""
    at = parse_time(text)
    if at is None:
        return ""
    local = at.astimezone()
    return local.strftime("%H:%M" if local.date() == datetime.now().astimezone().date() else "%Y-%m-%d %H:%M")


def starts(text: object, now: datetime | None = None) -> str:
    """Write when something is expected: "in 26 s" where that is soon, "any moment now" where it is due, else the time of day."""
    at = parse_time(text)
    if at is None:
        return ""
    left = (at - (now or datetime.now(UTC))).total_seconds()
    if left >= SOON_S or left <= -SOON_S:
        return clock_time(text)
    return say("in {span}", span=span(left)) if left >= 0.5 else say("any moment now")


def between(told: object, now: datetime | None = None) -> str:
    """Write a range of a forecast, from its p10 to its p90: 14:20-14:50; one time where both are the same. Empty for None."""
    if not isinstance(told, Mapping):
        return ""
    low, high = parse_time(told.get("p10")), parse_time(told.get("p90"))
    if low is None or high is None:
        return ""
    if (high - (now or datetime.now(UTC))).total_seconds() < SOON_S:
        return starts(told.get("p50"), now)
    first, last = clock_time(told.get("p10")), clock_time(told.get("p90"))
    if first == last:
        return first
    same_day = low.astimezone().date() == high.astimezone().date()
    return say("{first}-{last}", first=first, last=last[-5:] if same_day else last)


SOON_S = 120.0
"""Seconds from now up to which an expected time is shown as a duration: a clock's minutes are too coarse."""


def number(value: float) -> str:
    """Write a metric's value with four digits that count."""
    if not math.isfinite(value):
        return str(value)
    if value == int(value) and abs(value) < 1e6:
        return str(int(value))
    return f"{value:.4g}"


def core_hours(value: float | None) -> str:
    """Write core-hours as `number` does, of short programs without an exponent: 12.5, 0.000026; empty where there are none to tell."""
    if value is None:
        return ""
    return number(value) if value >= 0.0001 else rounded(value, 6)


def rounded(value: float, digits: int) -> str:
    """Return a number with at most `digits` decimals, halves up, without trailing zeros."""
    scale = 10**digits
    whole = math.floor(value * scale + 0.5)
    return f"{whole / scale:.{digits}f}".rstrip("0").rstrip(".") if digits else str(whole)


def amount(value: float | None) -> str:
    """Return cores or devices as text; None has no own limit."""
    return say("no limit") if value is None else rounded(value, 2)


def _sized(value: float, units: tuple[str, ...]) -> str:
    """Write an amount in the largest unit of which there is one: three digits that count, the first unit whole.

    The widget does the same (`widgets/src/core/format/format.ts`), and one table tests both.
    """
    at = 0
    while math.floor(value + 0.5) >= 1024 and at < len(units) - 1:
        value /= 1024
        at += 1
    digits = 0 if at == 0 or value >= 100 else 1 if value >= 10 else 2
    return f"{rounded(value, digits)} {units[at]}"


def memory(mib: float | None) -> str:
    """Write an amount of memory, given in MiB: 512 MiB, 1.46 GiB."""
    return say("no limit") if mib is None else _sized(mib, ("MiB", "GiB", "TiB", "PiB"))


def storage(size: float | None) -> str:
    """Return an amount of storage, given in bytes, as text; None is without limit."""
    return say("no limit") if size is None else file_size(size)


def file_size(size: float | None) -> str:
    """Write the size of a file, given in bytes: 512 B, 1.46 GiB."""
    return _sized(size or 0, ("B", "KiB", "MiB", "GiB", "TiB", "PiB"))


SHOWS: Mapping[str, Callable[[Any], str]] = {
    name: memory if of == "ram" else str for name, (of, _, _) in COUNTED.items()
}
"""Function that writes an amount of a dimension that is only counted."""


def amounts_of(told: Mapping[str, Any]) -> list[str]:
    """Write the counted dimensions that a job has, as options."""
    amounts = told.get("amounts") or {}
    return [
        f"--{name.replace('_', '-')} {shows(amounts[name])}"
        for name, shows in SHOWS.items()
        if amounts.get(name)
    ]
