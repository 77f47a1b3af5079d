"""How a job's facts read: shared by picture, text, tables."""

from __future__ import annotations

import math
import signal
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

Json = dict[str, Any]

CAUSES = {
    "program-error": "The program ended with an error",
    "signal": "A rank was killed by a signal",
    "out-of-memory": "Memory ran out",
    "time-limit": "The time limit was reached",
    "node-lost": "The node was lost",
    "start-failed": "The ranks could not be started",
}


def parse_time(text: object) -> datetime | None:
    """Read an RFC 3339 time; None for nothing or nonsense."""
    try:
        return datetime.fromisoformat(str(text)) if text else None
    except ValueError:
        return None


def span(seconds: float) -> str:
    """Write a length of time: 8 s, 3 min 20 s, 2 h 5 min, 3 d 4 h."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        minutes, rest = divmod(whole, 60)
        return f"{minutes} min {rest} s" if rest and minutes < 10 else f"{minutes} min"
    hours, rest = divmod(whole // 60, 60)
    if hours < 24:
        return f"{hours} h {rest} min" if rest else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"


def clock_time(text: object) -> str:
    """Write a point in time in the reader's zone: 14:20, with the date when it is not today."""
    at = parse_time(text)
    if at is None:
        return ""
    local = at.astimezone()
    return local.strftime("%H:%M" if local.date() == datetime.now().astimezone().date() else "%Y-%m-%d %H:%M")


def number(value: float) -> str:
    """Write a metric's value with four digits that count."""
    if not math.isfinite(value):
        return str(value)
    if value == int(value) and abs(value) < 1e6:
        return str(int(value))
    return f"{value:.4g}"


def amount(value: float | None) -> str:
    """Write cores or devices; None has no limit of its own."""
    return "no limit" if value is None else f"{value:g}"


def memory(mib: float | None) -> str:
    """Write an amount of memory."""
    if mib is None:
        return "no limit"
    return f"{mib / 1024:.3g} GiB" if mib >= 1024 else f"{mib:g} MiB"


def workers(job: Mapping[str, Any]) -> str:
    """Write the gang: 2 workers, 2 to 4 workers + 1 ps."""
    low, _, high = str(job.get("workers", 1)).partition(":")
    text = f"{low} to {high} workers" if high else f"{low} worker{'' if low == '1' else 's'}"
    return text + (f" + {job['ps']} ps" if job.get("ps") else "")


def ending(thing: Mapping[str, Any]) -> str:
    """Write how a rank ended."""
    number_ = thing.get("signal")
    if number_ is not None:
        try:
            return signal.Signals(number_).name
        except ValueError:
            return f"signal {number_}"
    code = thing.get("exit_code")
    return "" if code is None else f"exit code {code}"


def failure(job: Mapping[str, Any]) -> str:
    """Write what went wrong in one sentence, empty when nothing did."""
    found = job.get("failure")
    if not isinstance(found, Mapping):
        return ""
    text = CAUSES.get(str(found.get("cause")), str(found.get("cause") or "It failed"))
    where = [f"rank {found['rank']}"] if found.get("rank") is not None else []
    where += [ending(found)] if ending(found) else []
    text += f" ({', '.join(where)})" if where else ""
    return f"{text}: {found['message']}" if found.get("message") else text


def age(job: Mapping[str, Any], now: datetime | None = None) -> str:
    """Write for how long the job has waited, runs, or ran."""
    now = now or datetime.now(UTC)
    started, ended = parse_time(job.get("started_at")), parse_time(job.get("finished_at"))
    submitted = parse_time(job.get("submitted_at"))
    if ended and started:
        return f"ran {span((ended - started).total_seconds())}"
    if ended:
        return ""
    if started:
        return f"for {span((now - started).total_seconds())}"
    return f"waits {span((now - submitted).total_seconds())}" if submitted else ""


def time_left(job: Mapping[str, Any], now: datetime | None = None) -> str:
    """Write an estimate of the time left from progress so far, empty while nothing sound can be said."""
    started, progress = parse_time(job.get("started_at")), float(job.get("progress") or 0)
    if job.get("phase") != "running" or started is None or not 2 <= progress < 100:
        return ""
    passed = ((now or datetime.now(UTC)) - started).total_seconds()
    return f"about {span(passed * (100 - progress) / progress)} left" if passed >= 3 else ""


def state(job: Mapping[str, Any]) -> str:
    """Write where the job stands, with the reason where there is one."""
    phase = str(job.get("phase", "unknown"))
    notes = []
    if phase == "queued":
        if job.get("position") is not None:
            notes.append(f"place {job['position']} in the queue")
        if job.get("expected_start"):
            notes.append(f"expected to start {clock_time(job['expected_start'])}")
    if job.get("message") and phase in {"queued", "suspended", "admitted", "starting"}:
        notes.append(str(job["message"]))
    return f"{phase}: {'; '.join(notes)}" if notes else phase
