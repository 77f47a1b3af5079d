"""Attempts of a job as its timeline has them: how the last one ended and what of its work is kept, how wide they ran."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mlp_hub.domain.errors import Reason
from mlp_hub.store.records import EndedJob, JobEvent
from mlp_language.message import NOTHING, Message, Span, msg

AT_ITS_END_S = 2.0
"""Tuning: seconds before a stop in which a checkpoint counts as written because of it."""
LOOKS_BACK = 200
"""Tuning: steps from a timeline's end in which an attempt's begin and end are looked for: time of an answer, for how far it
looks."""
ATTEMPT_STEPS = (
    "starting",
    "running",
    "resized",
    "ended",
    "attempt-failed",
    "requeued",
    "suspended",
    "cancelled",
)
"""Steps of a timeline at which an attempt begins or ends."""
_COVERED = 0.9
"""Tuning: part of a job's running time that a timeline must cover to count as whole: long ones lose their first steps."""
_SOON_S = 1.0
"""Tuning: seconds of a job's running time that a timeline may lack and still count as whole."""


@dataclass(frozen=True, slots=True)
class RecordedStop:
    """The end of an attempt that was not the job's: `message` is as its timeline has it."""

    kind: str  # preempted, suspended, requeued
    time: float
    message: Message
    began: float


def last_stop(events: Iterable[JobEvent]) -> RecordedStop | None:
    """Find the last attempt that was stopped and followed by waiting; None where none was."""
    found: RecordedStop | None = None
    began: float | None = None
    asked = NOTHING
    for event in events:
        if event.kind in ("starting", "running"):
            began, asked = event.time, asked if event.kind == "running" else NOTHING
        elif event.kind == "preempted" and began is not None:
            asked = event.message
        elif event.kind == "resized":
            began = None  # it went on at once
        elif event.kind in ("requeued", "suspended") and began is not None:
            kind = "preempted" if asked and event.kind == "requeued" else event.kind
            message = asked if kind == "preempted" else event.message
            if kind == "suspended":
                message = event.message if event.reason == Reason.IDLE_GPUS else msg("suspended by its user")
            found = RecordedStop(kind, event.time, message, began)
            began, asked = None, NOTHING
    return found


def suspended_at(events: Sequence[JobEvent]) -> float | None:
    """Return when a job was suspended last, with an attempt or without; None where it never was."""
    return next((e.time for e in reversed(events) if e.kind == "suspended"), None)


def kept_words(stop: RecordedStop, checkpoint: float | None) -> Message:
    """Say what of the work up to the stop is kept."""
    if checkpoint is None:
        return msg(
            "it left no checkpoint in MLP_CHECKPOINT_DIR, so the next attempt starts from the beginning"
        )
    before = stop.time - checkpoint
    if before <= AT_ITS_END_S:
        return msg("it saved a checkpoint when it was stopped, and the next attempt can continue from there")
    if checkpoint < stop.began:
        return msg(
            "its newest checkpoint is of an earlier attempt, {span} before it was stopped; later work must be repeated",
            span=Span(before),
        )
    return msg(
        "its newest checkpoint was written {span} before it was stopped; later work must be repeated",
        span=Span(before),
    )


def at_full_width(ended: EndedJob, events: Iterable[JobEvent]) -> float | None:
    """Return how long it would have run with all its ranks, for the work is theirs together; None: that is not told.

    That is its rank-seconds, of all attempts, divided by the most ranks it may have.
    """
    seconds = work = 0.0
    ranks: int | None = None
    began: float | None = None
    for event in events:
        if event.kind == "starting":
            count = event.message.args.get("n")
            ranks, began = (count, event.time) if isinstance(count, int) else (None, None)
        elif event.kind == "running":
            began = event.time
        elif ranks is not None and began is not None:
            ran = max(event.time - began, 0.0)
            seconds, work, began = seconds + ran, work + ran * ranks, None
    if seconds <= 0 or seconds < _COVERED * ended.ran - _SOON_S:
        return None
    most = ended.shape.workers_max + ended.shape.ps
    return ended.ran * min(work / seconds / most, 1.0)
