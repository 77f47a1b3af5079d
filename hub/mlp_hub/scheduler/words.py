"""The sentences of the scheduler: a value, a limit and a way out, with the numbers a person can check."""

from __future__ import annotations

from collections.abc import Iterable

from mlp_hub.domain.job import PRIORITIES
from mlp_hub.domain.resources import MILLI, Resources
from mlp_hub.scheduler.model import Booking

_SCALE = {"cpu": MILLI, "gpu": MILLI, "ram": 1, "rom": 1}
_UNIT = {"cpu": "cpu", "gpu": "gpu", "ram": "MiB ram", "rom": "bytes rom"}


def number(dimension: str, value: int) -> str:
    """Write an amount without its unit: 2200 cpu thousandths become "2.2"."""
    return f"{in_units(dimension, value):g}" if dimension.startswith(("cpu", "gpu")) else str(value)


def in_units(dimension: str, value: int) -> float:
    """Turn the inner amount of a dimension (`gpu:KIND` too) into what people count in."""
    return value / _SCALE[dimension.partition(":")[0]]


def unit(dimension: str) -> str:
    """Name the unit of a dimension: `cpu`, `gpu`, `a100 gpu`, `MiB ram`."""
    base, _, kind = dimension.partition(":")
    return f"{kind} {_UNIT[base]}" if kind else _UNIT[base]


def amount(resources: Resources) -> str:
    """Write what is asked for or left: "2 cpu, 1 gpu and 2048 MiB ram"."""
    parts = [f"{number(d, v)} {unit(d)}" for d, v in resources.items() if v]
    return listing(parts) or "nothing"


def listing(parts: Iterable[str], most: int = 4) -> str:
    """Join with commas and a final "and"; beyond `most` the rest is counted."""
    items = list(parts)
    if len(items) > most:
        items = [*items[: most - 1], f"{len(items) - most + 1} more"]
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} and {items[-1]}"


def count(n: int, noun: str) -> str:
    """Write "1 rank", "2 ranks"."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


_PRIORITIES = {value: name for name, value in PRIORITIES.items()}


def priority(value: int) -> str:
    """Write a priority by its name where it has one: "high"; those of a scenario are numbers."""
    return _PRIORITIES.get(value, str(value))


_CALENDAR = 1e9
"""Times of a hub are seconds since 1970 and above this; those of a scenario count from its begin and are below."""
_LAST = 253_402_300_799.0  # the end of 9999


def moment(at: float) -> tuple[str, str]:
    """Write a time since 1970 as day and time of day of UTC; pure, where the machine's clock and calendar are not known."""
    days, seconds = divmod(int(at), 86_400)
    # counted from the first of March of year 0, in eras of 400 years (Hinnant, "chrono-compatible low-level date algorithms")
    era, of_era = divmod(days + 719_468, 146_097)
    year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153
    day = of_year - (153 * month + 2) // 5 + 1
    month = month + 3 if month < 10 else month - 9
    date = f"{era * 400 + year + (month <= 2):04d}-{month:02d}-{day:02d}"
    return date, f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def when(at: float, now: float) -> str:
    """Write a time that comes: of a hub's as "at 14:20:05 UTC", with the day where it is another, of a scenario's "in 26 s".

    What is written down is read later: how long it is until then would be wrong by that time.
    """
    if not _CALENDAR < at <= _LAST:
        return f"in {span(at - now)}"
    (today, _), (day, time) = moment(now), moment(at)
    return f"at {'' if day == today else f'{day} '}{time} UTC"


def window_words(booking: Booking) -> str:
    """Name a booked window and say from when until when: "window demo (2031-03-01 08:00 to 18:00 UTC)"."""
    name = f"window {booking.name}" if booking.name else "the window"
    if not _CALENDAR < booking.start <= booking.end <= _LAST:
        return f"{name} ({booking.start:g} s to {booking.end:g} s)"
    (day, opens), (last, closes) = moment(booking.start), moment(booking.end)
    until = closes[:5] if day == last else f"{last} {closes[:5]}"
    return f"{name} ({day} {opens[:5]} to {until} UTC)"


def span(seconds: float) -> str:
    """Write a time in the largest unit that it fills: "90 s", "2 h", "3.5 days"."""
    for size, name in ((86400.0, "days"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * size:
            return f"{round(seconds / size, 1):g} {name}"
    return f"{round(seconds):g} s"
