"""Space of a search: which values a parameter may have, how people write that, and the points of a grid."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from itertools import count
from typing import NoReturn

from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.jobs.job import Param
from mlp_language.message import Message, msg

MOST_CHOICES = 1000
"""Limit of jobs: values of one parameter of a sweep, and points of an array."""
_NARROWEST = 2.0**-1022
"""Given: the least positive number of 64 bits that is as exact as all others."""
FORMS = "uniform(0, 1), loguniform(1e-5, 1), int(1, 8), logint(1, 1024), choice(a, b, c)"
_WRITTEN = re.compile(r"\s*([a-z]+)\s*\((.*)\)\s*", re.DOTALL)
_INT = re.compile(r"[+-]?\d{1,18}")
_ARRAY = re.compile(r"(\d{1,6})(?:-(\d{1,6})(?::(\d{1,6}))?)?")
Grid = tuple[tuple[str, tuple[Param, ...]], ...]
"""Parameters with the values that each is tried with."""


@dataclass(frozen=True, slots=True)
class Range:
    """Numbers from `low` to `high`, both included; `whole` ones, or evenly in their logarithm."""

    low: float
    high: float
    whole: bool = False
    log: bool = False


Choice = tuple[Param, ...]
"""One of these."""
Space = tuple[tuple[str, Range | Choice], ...]
"""Parameters with the values to search for each."""


def parse_space(search: Mapping[str, str]) -> Space:
    """Parse the values to search; raise `Refused` with the parameter, its fault and the right form."""
    space = tuple((name, _read(name, text)) for name, text in search.items())
    n = sum(len(each) for _, each in space if isinstance(each, tuple))
    if n > MOST_CHOICES:
        raise Refused(
            Reason.INVALID,
            msg(
                "the search chooses from {n} values, and the limit of all its parameters together is {most}; give fewer, or ranges",
                n=n,
                most=MOST_CHOICES,
            ),
        )
    return space


def parse_value(text: str) -> Param:
    """Return what a value's text means: a number, true or false, or the text itself."""
    if text.lower() in {"true", "false"}:
        return text.lower() == "true"
    if _INT.fullmatch(text):
        return int(text)
    try:
        number = float(text)
    except ValueError:
        return text
    return number if math.isfinite(number) else text


def check_grid(grid: Mapping[str, Sequence[Param]]) -> Grid:
    """Return a grid; raises `Refused` where there is nothing to try."""
    for name, values in grid.items():
        if not values:
            _refuse(name, msg("no value is given; give some, such as {name}=0.1,0.01", name=name))
        if len(set(map(repr, values))) < len(values):
            _refuse(name, msg("a value appears twice"))
        if len(values) > MOST_CHOICES:
            _refuse(
                name, msg("{n} values are more than the limit of {most}", n=len(values), most=MOST_CHOICES)
            )
        for value in values:
            if isinstance(value, float) and not math.isfinite(value):
                _refuse(name, msg("{value} is not a finite number", value=str(value)))
    return tuple((name, tuple(values)) for name, values in grid.items())


def size_of(grid: Grid) -> int:
    """Return how many points a grid has."""
    return math.prod(len(values) for _, values in grid)


def point_of(grid: Grid, number: int) -> dict[str, Param]:
    """Return one point of a grid, in which the last parameter varies fastest; beyond its end it repeats."""
    point: dict[str, Param] = {}
    for name, values in reversed(grid):
        number, at = divmod(number, len(values))
        point[name] = values[at]
    return {name: point[name] for name, _ in grid}


@lru_cache(maxsize=64)
def shuffled(size: int, seed: int) -> tuple[int, ...]:
    """Return the order in which a grid's points are tried at random, each point once.

    The order is the same for the same seed. It comes from digests, because the draws of Python's
    generator differ between versions of Python, and a sweep outlives upgrades.
    """
    order: dict[int, None] = {}
    for draw in count():
        if len(order) >= min(size, MOST_CHOICES):
            break
        digest = blake2b(f"{seed}/{draw}".encode(), digest_size=8).digest()
        order.setdefault(int.from_bytes(digest, "big") % size)
    return tuple(order)


def parse_array(text: str) -> tuple[tuple[int, ...], int | None]:
    """Return the indices of `0-31%8`, and how many run at most at a time; raises `Refused`."""
    indices, percent, most = text.replace(" ", "").partition("%")
    found: list[int] = []
    for part in indices.split(","):
        match = _ARRAY.fullmatch(part)
        if match is None or (percent and not re.fullmatch(r"[1-9]\d{0,5}", most)):
            raise Refused(
                Reason.INVALID,
                msg(
                    "--array {text} cannot be read; write 0-31, 0-30:2, 1,5,9 or 0-31%8 for 8 at a time",
                    text=text[:100],
                ),
            )
        first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        if last < first or not step:
            raise Refused(
                Reason.INVALID,
                msg("--array {text} is empty; write FIRST-LAST, such as 0-31", text=text[:100]),
            )
        found += range(first, last + 1, step)[: MOST_CHOICES + 1]
    if len(set(found)) < len(found):
        raise Refused(Reason.INVALID, msg("--array {text} has an index twice", text=text[:100]))
    if len(found) > MOST_CHOICES:
        raise Refused(
            Reason.INVALID,
            msg("--array {text} has more than {most} members", text=text[:100], most=MOST_CHOICES),
        )
    return tuple(found), int(most) if most else None


def _read(name: str, text: str) -> Range | Choice:
    match = _WRITTEN.fullmatch(text)
    kind = match[1] if match else ""
    if match is None or kind not in {"uniform", "loguniform", "int", "logint", "choice"}:
        _refuse(name, msg("{text} is not a space; write one of {forms}", text=text[:100], forms=FORMS))
    parts = [part.strip() for part in match[2].split(",")] if match[2].strip() else []
    if kind == "choice":
        return _choice(name, parts)
    whole, log = kind.endswith("int"), kind.startswith("log")
    numbers = [parse_value(part) for part in parts]
    if len(numbers) != 2:
        _refuse(name, msg("{kind} needs a minimum and a maximum, such as {forms}", kind=kind, forms=FORMS))
    low, high = numbers
    if isinstance(low, str | bool) or isinstance(high, str | bool):
        _refuse(name, msg("{text} needs two finite numbers", text=text[:100]))
    if whole and not (isinstance(low, int) and isinstance(high, int)):
        _refuse(name, msg("{text} needs whole numbers; write uniform for others", text=text[:100]))
    if low >= high:
        _refuse(
            name,
            msg(
                "{text} is empty: {low} is not below {high}",
                text=text[:100],
                low=f"{low:g}",
                high=f"{high:g}",
            ),
        )
    if not _NARROWEST <= float(high) - float(low) < math.inf:
        _refuse(
            name,
            msg("{text} is too wide or too narrow for numbers of 64 bits; use other bounds", text=text[:100]),
        )
    if log and low <= 0:
        _refuse(
            name,
            msg(
                "{text} begins at {low}, and logarithms need a number above 0",
                text=text[:100],
                low=f"{low:g}",
            ),
        )
    return Range(float(low), float(high), whole=whole, log=log)


def _choice(name: str, parts: Sequence[str]) -> Choice:
    if not all(parts) or not parts:
        _refuse(name, msg("choice is empty; write values, such as choice(a, b)"))
    options = tuple(parse_value(part) for part in parts)
    check_grid({name: options})
    return options


def _refuse(name: str, text: Message) -> NoReturn:
    raise Refused(Reason.INVALID, msg("parameter {name}: {text}", name=name, text=text))
