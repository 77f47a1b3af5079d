"""With how many ranks an elastic job ran, and for how long with each number, as its timeline tells."""

from __future__ import annotations

import re
from collections.abc import Iterable

from mlp_hub.store.records import EndedJob, JobEvent

KINDS = ("starting", "running", "resized", "ended", "attempt-failed", "requeued", "suspended", "cancelled")
"""Steps of a timeline at which an attempt begins or ends."""
_STARTING = re.compile(r"starting (\d+) rank")
_COVERED = 0.9
"""Part of a job's running time that its timeline has to tell of, for what it tells to be taken for all: long timelines
lose their first steps."""
_SOON_S = 1.0


def at_full_width(ended: EndedJob, events: Iterable[JobEvent]) -> float | None:
    """Return how long it would have run with all its ranks, for the work is theirs together; None: that is not told.

    That is its rank-seconds, of all attempts, divided by the most ranks it may have.
    """
    seconds = work = 0.0
    ranks: int | None = None
    began: float | None = None
    for event in events:
        if event.kind == "starting":
            told = _STARTING.match(event.message)
            ranks, began = (None, None) if told is None else (int(told[1]), event.time)
        elif event.kind == "running":
            began = event.time
        elif ranks is not None and began is not None:
            ran = max(event.time - began, 0.0)
            seconds, work, began = seconds + ran, work + ran * ranks, None
    if seconds <= 0 or seconds < _COVERED * ended.ran - _SOON_S:
        return None
    most = ended.shape.workers_max + ended.shape.ps
    return ended.ran * min(work / seconds / most, 1.0)
