"""Where the time of a job's attempts went before their first line of output, in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from mlp.language import say
from mlp.rendering.format import parse_time, span

Json = Mapping[str, Any]
PARTS: Mapping[str, Callable[[], str]] = {
    "admitted": lambda: say("in the queue"),
    "created": lambda: say("making its pods"),
    "bound": lambda: say("finding their nodes"),
    "pulled": lambda: say("images and containers"),
    "started": lambda: say("starting its program"),
    "first-line": lambda: say("waiting for output"),
}
"""Reason for the wait until each stage; the panel writes the same (`widgets/src/core/jobs/stages.ts`)."""
_NEXT = {
    "queued": "admitted",
    "admitted": "started",
    "created": "bound",
    "bound": "pulled",
    "pulled": "started",
}
_SHOWN = 3
"""Attempts that are written, the newest."""


def lines(attempts: Sequence[Json], now: datetime | None = None) -> list[str]:
    """Write a line for each of the newest attempts: how long to first output, and what took how long."""
    known = [a for a in attempts if isinstance(a, Mapping) and isinstance(a.get("stages"), list)]
    written = [_line(attempt, now or datetime.now(UTC), alone=len(known) == 1) for attempt in known[-_SHOWN:]]
    return [line for line in written if line]


def _line(attempt: Json, now: datetime, *, alone: bool) -> str:
    stages = [s for s in attempt["stages"] if isinstance(s, Mapping) and str(s.get("stage")) in _ALL]
    parts = [(str(s["stage"]), float(s["seconds"])) for s in stages if s.get("seconds") is not None]
    whole = sum(seconds for _, seconds in parts)
    said = [
        say("{what} {span}", what=PARTS[stage](), span=short(seconds))
        for stage, seconds in parts
        if stage in PARTS
    ]
    last = stages[-1] if stages else {}
    since, following = parse_time(last.get("time")), _NEXT.get(str(last.get("stage")))
    if attempt.get("ended") is None and following is not None and since is not None:
        passed = max(0.0, (now - since).total_seconds())
        whole += passed
        said.append(say("{what} {span} so far", what=PARTS[following](), span=short(passed)))
    if not said:
        return ""
    told = {"span": short(whole), "parts": say(", ").join(said)}
    if last.get("stage") == "first-line":
        text = say("{span} to first output: {parts}", **told)
    elif last.get("stage") == "started":
        text = say("{span} until it ran: {parts}", **told)
    else:
        text = say("{span} of startup: {parts}", **told)
    return text if alone else say("attempt {n}: {what}", n=int(attempt.get("attempt") or 0), what=text)


_ALL = frozenset({"queued", *PARTS})


def short(seconds: float) -> str:
    """Write a length of time, of less than a minute to a tenth of a second."""
    if seconds >= 59.95:
        return span(seconds)
    return say("{n} s", n=f"{round(seconds, 2 if seconds < 0.095 else 1):g}")
