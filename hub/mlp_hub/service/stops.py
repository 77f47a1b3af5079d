"""What became of the last attempt of a job that waits again: when it was stopped, for whom, and what of its work is kept."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mlp_hub.scheduler.words import span
from mlp_hub.store.records import JobEvent

MOST_FILES = 2000
"""Entries of the checkpoint directory that are looked at; programs write what they like there."""
DEEP = 3
AT_ITS_END_S = 2.0
LOOKS_BACK = 200
"""Of a timeline's end, in which an attempt's begin and end are looked for."""
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Stop:
    """The end of an attempt that was not the job's: `message` is in words for its tenant, as its timeline has it."""

    kind: str  # preempted, suspended, requeued
    time: float
    message: str
    began: float


def last_stop(events: Iterable[JobEvent]) -> Stop | None:
    """Find the last attempt that was stopped and followed by waiting; None where none was."""
    found: Stop | None = None
    began: float | None = None
    asked = ""
    for event in events:
        if event.kind in ("starting", "running"):
            began, asked = event.time, asked if event.kind == "running" else ""
        elif event.kind == "preempted" and began is not None:
            asked = event.message
        elif event.kind == "resized":
            began = None  # it went on at once
        elif event.kind in ("requeued", "suspended") and began is not None:
            kind = "preempted" if asked and event.kind == "requeued" else event.kind
            message = asked if kind == "preempted" else event.message
            if kind == "suspended":
                message = "suspended by its user"
            found = Stop(kind, event.time, message, began)
            began, asked = None, ""
    return found


def suspended_at(events: Sequence[JobEvent]) -> float | None:
    """Return when a job was suspended last, with an attempt or without; None where it never was."""
    return next((e.time for e in reversed(events) if e.kind == "suspended"), None)


def newest_checkpoint(workspace: Path) -> float | None:
    """Return when the newest file below the job's `ckpt` was written; None where there is none. Follows no links."""
    try:
        top = os.open(workspace, _DIRECTORY)
    except OSError:
        return None
    try:
        newest, _ = _newest("ckpt", top, DEEP, MOST_FILES)
    finally:
        os.close(top)
    return newest


def _newest(name: str, above: int, deep: int, left: int) -> tuple[float | None, int]:
    try:
        directory = os.open(name, _DIRECTORY, dir_fd=above)
    except OSError:
        return None, left
    newest: float | None = None
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                if left <= 0:
                    break
                left -= 1
                written: float | None = None
                if entry.is_dir(follow_symlinks=False):
                    if deep > 1:
                        written, left = _newest(entry.name, directory, deep - 1, left)
                elif entry.is_file(follow_symlinks=False):
                    written = entry.stat(follow_symlinks=False).st_mtime
                if written is not None and (newest is None or written > newest):
                    newest = written
    except OSError:
        pass  # it goes away while it is looked at: what was seen counts
    finally:
        os.close(directory)
    return newest, left


def kept_words(stop: Stop, checkpoint: float | None) -> str:
    """Say what of the work up to the stop is kept."""
    if checkpoint is None:
        return "it left no checkpoint in MLP_CHECKPOINT_DIR, so the next attempt begins anew"
    before = stop.time - checkpoint
    if before <= AT_ITS_END_S:
        return "it saved a checkpoint when it was stopped, and the next attempt may go on from there"
    since = span(before)
    if checkpoint < stop.began:
        return f"its newest checkpoint is of an earlier attempt, {since} before it was stopped; what came after it is to be done again"
    return f"its newest checkpoint was written {since} before it was stopped; what came after it is to be done again"
