"""From a job's timeline to its attempts: when each began and ended, and how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

STOPS = ("suspended", "resized", "preempted")
_ASKED = {"suspending": "suspended", "resizing": "resized", "preempting": "preempted"}


@dataclass
class Attempt:
    """One attempt. `end` is a cause of failure (`signal`, `node-lost`, ...), one of `STOPS`, `ok` or `cancelled`.

    `asked` is when it was asked to stop for another reason than to be cancelled.
    """

    number: int
    began: float | None = None
    over: float | None = None
    end: str = ""
    message: str = ""
    asked: float | None = None


def of(events: Sequence[dict[str, Any]]) -> list[Attempt]:
    """Walk the timeline."""
    attempt = Attempt(0)
    found = [attempt]
    asked = ""
    for event in events:
        kind, at = event["kind"], datetime.fromisoformat(event["time"]).timestamp()
        if kind == "starting":
            attempt.began = at
        elif kind in _ASKED:
            asked, attempt.asked = _ASKED[kind], at
        elif kind in ("ended", "attempt-failed", "start-failed"):
            attempt.end = "ok" if kind == "ended" else event["reason"] or kind
            attempt.over, attempt.message = at, event["message"]
        elif kind == "requeued" or (kind in ("suspended", "resized") and asked == kind):
            attempt.end = attempt.end or asked or kind
            attempt.over = attempt.over or at
            attempt = Attempt(attempt.number + 1)
            found.append(attempt)
            asked = ""
        elif kind in ("finished", "failed", "cancelled"):
            attempt.over = attempt.over or at
            attempt.end = "cancelled" if kind == "cancelled" else attempt.end or "ok"
    return found
