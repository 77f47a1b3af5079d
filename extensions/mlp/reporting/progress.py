"""`mlp.progress()`: a loop that reports how far it is."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from mlp.language import say
from mlp.reporting import measured, points
from mlp.standard_error import write

T = TypeVar("T")
EVERY = 0.5


def progress(
    iterable: Iterable[T], total: int | None = None, *, clock: Callable[[], float] = time.monotonic
) -> Iterator[T]:
    """Yield from `iterable` and report `progress` (0 to 100) at most twice a second, and at the end.

    Without a `total` and without a length only `step` is reported. A `total` that is not a number is
    reported and left out. Only rank 0 reports: one bar for a job.
    """
    if total is None:
        try:
            total = len(iterable)  # type: ignore[arg-type]
        except Exception:  # noqa: BLE001 - an own class may raise what it likes; the loop goes on all the same
            total = None
    count = _count(total)
    if points.rank() != 0:
        yield from iterable
        return
    last = -EVERY
    done = 0
    for done, item in enumerate(iterable, 1):
        yield item
        now = clock()
        if now - last >= EVERY and done != count:
            last = now
            _tell(done, count)
    if done:
        _tell(done, count)


def _count(total: object) -> float | None:
    """Return the count; None if it is unknown, or not a number, which is reported."""
    if total is None:
        return None
    try:
        return measured.number("total", total)
    except measured.Unfit as unfit:
        write(say("mlp.progress: {why}. The value is ignored.", why=str(unfit)))
        return None


def _tell(done: int, total: float | None) -> None:
    if total is not None and total > 0:
        points.report(progress=min(100.0, round(100 * done / total, 2)), step=done)
    else:
        points.report(step=done)
