"""Amounts in the units that people count them in, for messages."""

from __future__ import annotations

from mlp_hub.domain.dimensions import BY_NAME, MILLI
from mlp_hub.domain.resources import Resources
from mlp_language.message import Arg, Quantity, msg


def quantity(dimension: str, value: int) -> Quantity:
    """Return an amount of a dimension, `gpu:KIND` too: 2200 cpu thousandths are 2.2 cpu."""
    base, _, kind = dimension.partition(":")
    unit = BY_NAME[base].unit
    return Quantity(_counted(base, value), f"{kind} {unit}" if kind else unit)


def number(dimension: str, value: int) -> float:
    """Return an amount of a dimension without its unit: 2200 cpu thousandths are 2.2."""
    return _counted(dimension.partition(":")[0], value)


def _counted(base: str, value: int) -> float:
    scale = BY_NAME[base].scale
    return value if scale == 1 else value / scale if scale == MILLI else round(value / scale, 3)


def quantities(resources: Resources) -> Arg:
    """Return what is asked for or left, as a list: 2 cpu, 1 gpu and 2048 MiB ram."""
    return tuple([quantity(d, v) for d, v in resources.items() if v]) or msg("nothing")
