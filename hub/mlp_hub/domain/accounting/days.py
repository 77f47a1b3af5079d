"""Days and months of the proleptic Gregorian calendar as whole numbers, UTC, without a clock."""

from __future__ import annotations

import re
from collections.abc import Iterator

DAY_S = 86_400
"""Given: seconds of a day; days with a leap second have as many."""
FIRST_YEAR, LAST_YEAR = 2000, 2199
"""Safety: years that a question may name: bounds the numbers, and finds typing errors."""
_DATE = re.compile(r"(\d{4})-(\d{2})(?:-(\d{2}))?", re.ASCII)


def day_of(year: int, month: int, day: int) -> int:
    """Return the days from 1970-01-01 to a date."""
    year -= month <= 2
    era = year // 400
    of_era = year - era * 400
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


def date_of(day: int) -> tuple[int, int, int]:
    """Return the year, month and day of the month of a day."""
    day += 719_468
    era = day // 146_097
    of_era = day - era * 146_097
    year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153
    number = month + (3 if month < 10 else -9)
    return year + era * 400 + (number <= 2), number, of_year - (153 * month + 2) // 5 + 1


def month_of(day: int) -> int:
    """Return the month of a day, counted from January 1970."""
    year, month, _ = date_of(day)
    return (year - 1970) * 12 + month - 1


def first_day(month: int) -> int:
    """Return the first day of a month that is counted from January 1970."""
    return day_of(1970 + month // 12, month % 12 + 1, 1)


def days_in(month: int) -> int:
    """Return the number of days of a month."""
    return first_day(month + 1) - first_day(month)


def day_text(day: int) -> str:
    """Write a day as 2031-03-01."""
    return "{:04}-{:02}-{:02}".format(*date_of(day))


def month_text(month: int) -> str:
    """Write a month as 2031-03."""
    return f"{1970 + month // 12:04}-{month % 12 + 1:02}"


def read_day(text: str) -> int | None:
    """Return the day of 2031-03-01; None where the text is not a date of the years that are known."""
    found = _DATE.fullmatch(text)
    if found is None or found[3] is None:
        return None
    month = read_month(text[:7])
    number = int(found[3])
    if month is None or not 1 <= number <= days_in(month):
        return None
    return first_day(month) + number - 1


def read_month(text: str) -> int | None:
    """Return the month of 2031-03; None where the text is not a month of the years that are known."""
    found = _DATE.fullmatch(text)
    if found is None or found[3] is not None:
        return None
    year, month = int(found[1]), int(found[2])
    if not (FIRST_YEAR <= year <= LAST_YEAR and 1 <= month <= 12):
        return None
    return (year - 1970) * 12 + month - 1


def months_and_days(since: int, until: int) -> Iterator[tuple[str, int, int]]:
    """Split days into whole months and the days beside them.

    Yield (grain, first, last + 1): the grain is `month` or `day`, and the numbers are months or days.
    """
    if since >= until:
        return
    first = month_of(since)
    if first_day(first) < since:
        first += 1
    last = month_of(until)  # the month of `until` is whole only if it ends there, and then it is the next one
    if first >= last:
        yield "day", since, until
        return
    if since < first_day(first):
        yield "day", since, first_day(first)
    yield "month", first, last
    if first_day(last) < until:
        yield "day", first_day(last), until
