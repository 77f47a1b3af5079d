"""Amounts as the cluster's API writes them: `100m`, `1.5Gi`, `2e3`."""

from __future__ import annotations

import math
import re
from decimal import Decimal, DecimalException
from functools import lru_cache

_UNITS = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_QUANTITY = re.compile(r"([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)([KMGTPE]i|[numkMGTPE]?)")
LARGEST = Decimal(10) ** 24
"""Safety: amount that nothing has: operators' objects can have any exponent, which would fill the memory."""
MOST = 8192
"""Safety: texts whose amount is remembered: bounds memory. A cluster has few, and each many times."""


@lru_cache(MOST)
def whole(text: str | float) -> int:
    """Return an amount in its unit, as bytes or devices; a part of one counts as one, as the API counts it."""
    return math.ceil(_amount(text))


@lru_cache(MOST)
def milli(text: str | float) -> int:
    """Return an amount in thousandths of its unit, as of a processor; a part of one counts as one."""
    return math.ceil(_amount(text) * 1000)


def _amount(text: str | float) -> Decimal:
    """Read it; raises `ValueError` where it is none."""
    found = _QUANTITY.fullmatch(str(text))
    if found is None:
        raise ValueError(f"{text!r} is no quantity, such as 100m, 2 or 1.5Gi")
    number, unit = found.groups()
    try:
        value = Decimal(number)
        amount = value * (1 << _BINARY[unit]) if unit in _BINARY else value.scaleb(_UNITS[unit])
    except DecimalException:
        raise ValueError(f"{text!r} is no quantity, such as 100m, 2 or 1.5Gi") from None
    if not abs(amount) < LARGEST:
        raise ValueError(f"{text!r} is more than there is")
    return amount
