"""Times and amounts, to and from their wire form.

Inside: thousandths of cores and devices, seconds since the epoch. On the wire: cores and devices as
floats, times as RFC 3339 UTC.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Protocol

from mlp_api import types as api
from mlp_hub.domain.dimensions import BY_NAME, COUNTED, DIMENSIONS, MILLI, NAMES, WHOLE, WITHIN
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.resources import Pairs, Quota, Resources, counted, milli, quota_of, units
from mlp_language.message import msg

LONGEST_KIND = 64
"""Safety: characters in the name of a kind of GPU, at most: bounds what one request can make us keep."""
MOST_KINDS = 64
"""Limit of teams: kinds of GPU in one limit of a team."""


def when(time: float) -> datetime:
    """Turn seconds since the epoch into a time."""
    return datetime.fromtimestamp(time, UTC)


def utc_text(time: float) -> str:
    """Return seconds since the epoch as a date and a time in UTC; numbers outside of the calendar stay numbers."""
    try:
        return f"{when(time):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, ValueError, OSError):
        return str(time)


def maybe_when(time: float | None) -> datetime | None:
    """Turn seconds since the epoch, if any, into a time."""
    return None if time is None else when(time)


def amount_of_try(asked: api.ResourceRequestTry) -> Resources:
    """Return the amount of a resource request, to the nearest thousandth: its applier may have computed it."""
    gpu = _nearest("gpu", asked.gpu)
    kinds = ((asked.gpu_kind, gpu),) if asked.gpu_kind and gpu else ()
    return Resources(
        _nearest("cpu", asked.cpu), gpu, asked.ram, asked.rom, kinds, pairs_from("amounts", asked.amounts)
    )


def check_no_parts(field: str, kept: Quota) -> None:
    """Refuse a dimension that is a part of another one where amounts are kept free on nodes."""
    for dimension in kept.amounts:
        if dimension in WITHIN:
            raise Refused(
                Reason.INVALID,
                msg(
                    "{field} has {dimension}, which is a part of {whole} and is not kept free by itself; leave it out",
                    field=field,
                    dimension=dimension,
                    whole=str(BY_NAME[dimension].within),
                ),
            )


def limit_to(quota: Quota | None) -> dict[str, float] | None:
    """Return a limit as the wire has it: only the dimensions that it limits, gpu kinds as `gpu:KIND`."""
    if quota is None:
        return None
    return amounts_to({**dict(quota.items()), **{f"gpu:{k}": v for k, v in quota.kinds.items()}})


def amounts_to(amounts: Mapping[str, int]) -> dict[str, float]:
    """Return amounts by dimension as the wire has them: cores, devices, MiB, bytes."""
    return {d: amount_to(d, v) for d, v in amounts.items()}


def amount_to(dimension: str, value: int) -> float:
    """Return an amount of one dimension as the wire has it."""
    return value if dimension in WHOLE else units(value)


def counted_from(field: str, amounts: Mapping[str, int]) -> dict[str, int]:
    """Return amounts of counted dimensions. Refuses other names."""
    for dimension in amounts:
        if dimension not in COUNTED:
            raise _no_resource(field, dimension)
    return dict(amounts)


def pairs_from(field: str, amounts: Mapping[str, int]) -> Pairs:
    """Return amounts of counted dimensions, as those of resources. Refuses other names."""
    return counted(counted_from(field, amounts)) if amounts else ()


def amount_from(field: str, amounts: Mapping[str, float]) -> Quota:
    """Return amounts of the wire by dimension. Raises `Invalid` for unknown resources or infinite amounts."""
    return limit_from(field, amounts) or Quota()


def kinds_from(limits: Mapping[str, float]) -> dict[str, int]:
    """Return limits by kind of gpu. Refuses what no kind can be called, and too many of them."""
    check_kinds("gpu_kinds", len(limits))
    for kind in limits:
        if not _is_kind(kind):
            raise Refused(
                Reason.INVALID,
                msg(
                    "gpu_kinds has {kind}, which is not a name of a kind of GPU; use 1 to {longest_kind} printable characters",
                    kind=repr(kind[:LONGEST_KIND]),
                    longest_kind=LONGEST_KIND,
                ),
            )
    return {kind: finite_thousandths(f"gpu_kinds.{kind}", value) for kind, value in limits.items()}


def _is_kind(kind: str) -> bool:
    return 0 < len(kind) <= LONGEST_KIND and kind.isprintable()


def limit_from(field: str, limits: Mapping[str, float] | None) -> Quota | None:
    """Return a limit of the wire as a quota. Refuses dimensions that do not exist."""
    if limits is None:
        return None
    found: dict[str, int | None] = {}
    check_kinds(field, sum(":" in dimension for dimension in limits))
    for dimension, value in limits.items():
        base, colon, kind = dimension.partition(":")
        if dimension in WHOLE:
            found[dimension] = _whole_number(f"{field}.{dimension}", value)
        elif dimension in DIMENSIONS or (colon and base == "gpu" and _is_kind(kind)):
            found[dimension] = finite_thousandths(f"{field}.{dimension}", value)
        else:
            raise _no_resource(field, dimension)
    return quota_of(found)


def _no_resource(field: str, dimension: str) -> Refused:
    return Refused(
        Reason.INVALID,
        msg(
            "{field} has {dimension}, which is not a resource; the resources are {resources}",
            field=field,
            dimension=repr(dimension[:LONGEST_KIND]),
            resources=NAMES,
        ),
    )


class FlatAmounts(Protocol):
    """A request with an amount for each dimension, None where it has none."""

    cpu: float | None
    gpu: float | None
    ram: int | None
    rom: int | None
    amounts: dict[str, int]


def quota_from(asked: FlatAmounts, gpu_kinds: Mapping[str, float] | None = None) -> Quota:
    """Return the quota that a request describes, with limits by kind of gpu. Refuses what is not an amount."""
    return Quota(
        cpu=maybe_thousandths("cpu", asked.cpu),
        gpu=maybe_thousandths("gpu", asked.gpu),
        ram=asked.ram,
        rom=asked.rom,
        kinds=kinds_from(gpu_kinds or {}),
        amounts=counted_from("amounts", asked.amounts),
    )


def finite(field: str, value: float) -> float:
    if not math.isfinite(value) or value < 0 or value > 2**60:
        raise Refused(
            Reason.INVALID,
            msg("{field} is {value}; it must be a number from 0 to 2^60", field=field, value=value),
        )
    return value


def finite_thousandths(field: str, value: float) -> int:
    return thousandths(field, finite(field, value))


def maybe_thousandths(field: str, value: float | None) -> int | None:
    """Return cores or devices, if any, in thousandths. Refuses what is not a finite amount of them."""
    return None if value is None else finite_thousandths(field, value)


def thousandths(field: str, value: float) -> int:
    """Return cores or devices in thousandths. Refuses what has more digits than they have."""
    _check_least(field, value)
    less = math.floor(value * MILLI)
    if not math.isclose(value * MILLI, milli(value), rel_tol=1e-12, abs_tol=1e-6):
        raise Refused(
            Reason.INVALID,
            msg(
                "{field} is {value}, but amounts have at most three digits after the point; use {less} or {more}",
                field=field,
                value=f"{value:.12g}",
                less=f"{units(less):.12g}",
                more=f"{units(less + 1):.12g}",
            ),
        )
    return milli(value)


def _nearest(field: str, value: float) -> int:
    _check_least(field, finite(field, value))
    return milli(value)


def _check_least(field: str, value: float) -> None:
    """Refuse what is more than nothing and less than one thousandth."""
    if 0 < value < 1 / MILLI:
        raise Refused(
            Reason.INVALID,
            msg(
                "{field} is {value}, but the smallest amount is 0.001; use 0.001 or more, or 0",
                field=field,
                value=f"{value:g}",
            ),
        )


def check_kinds(field: str, kinds: int) -> None:
    """Refuse a limit that names too many kinds of gpu."""
    if kinds > MOST_KINDS:
        raise Refused(
            Reason.INVALID,
            msg(
                "{field} names {kinds} kinds of gpu; the limit is {most_kinds}",
                field=field,
                kinds=kinds,
                most_kinds=MOST_KINDS,
            ),
        )


def _whole_number(field: str, value: float) -> int:
    if finite(field, value) != int(value):
        raise Refused(
            Reason.INVALID, msg("{field} is {value}; it must be a whole number", field=field, value=value)
        )
    return int(value)
