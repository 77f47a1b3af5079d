"""Values that a program reports: which can be drawn, and what is said, once, of those that cannot.

A training of hours must not end because of a number that it reports, so nothing here raises: a value that cannot be
stored is left out of its point, and the sentence why goes to standard error once for each kind of mistake and name.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from typing import NoReturn, SupportsFloat

from mlp.language import say
from mlp.standard_error import write

MAX_METRICS = 100
NAME_MAX = 100
"""Characters of a metric's name."""
TOLD_MAX = 50
"""Sentences of one process: a program that makes up names is not answered for each of them."""


class Unfit(Exception):  # noqa: N818 - what it is
    """A value that cannot be stored; `kind` names the mistake, whatever the value."""

    def __init__(self, kind: str, sentence: str) -> None:
        super().__init__(sentence)
        self.kind = kind


class Complaints:
    """Complaints so far: each kind of mistake once for each name."""

    def __init__(self) -> None:
        self._told: set[tuple[str, str]] = set()
        self._lock = threading.Lock()

    def tell(self, kind: str, name: str, sentence: str) -> None:
        """Write the sentence to standard error, unless this kind was already reported for this name."""
        with self._lock:
            if (kind, name) in self._told or len(self._told) > TOLD_MAX:
                return
            self._told.add((kind, name))
            last = len(self._told) > TOLD_MAX
        write(sentence)
        if last:
            write(say("mlp.report: further mistakes of this kind are not shown"))


def fitting(metrics: Mapping[str, object], complaints: Complaints) -> dict[str, float | int]:
    """Return the values that can be stored, as finite Python numbers; complain about all others."""
    values: dict[str, float | int] = {}
    for name, value in metrics.items():
        try:
            if len(values) >= MAX_METRICS:
                _refuse_more(len(metrics))
            values[_name(name)] = number(name, value)
        except Unfit as unfit:
            # a report with too many is one mistake, whichever names are over
            of = "" if unfit.kind == "many" else str(name)[: 2 * NAME_MAX]
            left_out = say("mlp.report: {why}. The value is ignored.", why=str(unfit))
            complaints.tell(unfit.kind, of, left_out)
    if "progress" in values:
        values["progress"] = min(max(values["progress"], 0), 100)
    return values


def _refuse_more(count: int) -> NoReturn:
    raise Unfit("many", say("{n} metrics in one report; at most {most}", n=count, most=MAX_METRICS))


def _name(name: object) -> str:
    if isinstance(name, str) and 0 < len(name) <= NAME_MAX:
        return name
    raise Unfit("name", say("metric {name}...: a name has 1 to 100 characters", name=str(name)[:20]))


def number(name: str, value: object) -> float | int:
    """Return a metric's value as a finite Python number; raises `Unfit` for any other, naming the metric."""
    if type(value) is not float and type(value) is not int:
        value = _plain(name, value)
    if isinstance(value, int):
        if -(2**53) <= value <= 2**53:
            return int(value)
        try:
            return float(value)
        except OverflowError:
            raise Unfit("large", say("metric {name}: the number is too large", name=name)) from None
    if not math.isfinite(value):
        raise Unfit(
            "not finite",
            say("metric {name} is {value}: only finite numbers can be drawn", name=name, value=str(value)),
        )
    return float(value)


def _plain(name: str, value: object) -> float | int:
    """Convert numpy's and the frameworks' numbers to Python's; report errors of a program's own class."""
    kind = type(value).__name__
    try:
        item = getattr(value, "item", None)  # numpy, torch, jax
        if callable(item):
            value = item()
        elif hasattr(value, "numpy"):  # an eager tensor of TensorFlow
            value = value.numpy()
    except Exception:  # noqa: BLE001 - whatever a framework raises for several values, or for one that is no value yet
        said = say("metric {name}: a single number is needed, not {kind} of several", name=name, kind=kind)
        raise Unfit("several", said) from None
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if not isinstance(value, SupportsFloat):
        raise Unfit("kind", say("metric {name}: a number is needed, not {kind}", name=name, kind=kind))
    try:
        return float(value)
    except Exception:  # noqa: BLE001 - likewise
        said = say("metric {name}: a single number is needed, not {kind}", name=name, kind=kind)
        raise Unfit("several", said) from None
