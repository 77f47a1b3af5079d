"""Times of a job as they read: for how long it runs or waits, and how long it takes yet."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from mlp.language import say
from mlp.rendering.format import between, parse_time, span
from mlp.rendering.words import bare


def time_limit(job: Mapping[str, Any]) -> str:
    """Return the time limit of an attempt as text, empty without a limit."""
    limit = job.get("time_limit")
    return say("time limit {span}", span=span(float(limit))) if limit else ""


def age(job: Mapping[str, Any], now: datetime | None = None) -> str:
    """Write for how long the job waits now, runs, or ran, and how long all its attempts together did."""
    now = now or datetime.now(UTC)
    started, submitted = parse_time(job.get("started_at")), parse_time(job.get("submitted_at"))
    whole = ran_in_all(job, now)
    ran = say("ran {span}", span=span(whole)) if whole else ""
    if job.get("finished_at"):
        return ran
    if started:
        runs = span((now - started).total_seconds())
        if job.get("ran_s"):
            return say("for {span}, {whole} in all", span=runs, whole=span(whole))
        return say("for {span}", span=runs)
    if since := parse_time(job.get("waiting_since")):
        waits = say("waits {wait}", wait=span((now - since).total_seconds()))
        return say(", ").join(filter(None, [waits, ran]))
    if submitted and job.get("phase") == "suspended" and not ran:
        return say("submitted {span} ago", span=span((now - submitted).total_seconds()))
    waited = job.get("waited_s")
    return ran or ("" if waited is None else say("waited {span}", span=span(float(waited))))


def ran_in_all(job: Mapping[str, Any], now: datetime | None = None) -> float:
    """Return the seconds that all attempts of a job ran, the one that runs included."""
    started, ended = parse_time(job.get("started_at")), parse_time(job.get("finished_at"))
    last = (
        0.0 if started is None else max(((ended or now or datetime.now(UTC)) - started).total_seconds(), 0.0)
    )
    over = job.get("ran_s")
    if ended:
        return last if over is None else float(over)  # a picture that an older hub saved does not have it
    return float(over or 0) + last


_ENOUGH = ((5, 10), (2, 60))
"""Tuning: percentage points of progress, and seconds, from which an estimate is made: either pair.

They are as in `widgets/src/core/stream/eta.ts`. A job begins with one-time work, whose first points alone
would give a quarter of an hour.
"""


def left_or_end(job: Mapping[str, Any]) -> str:
    """Return the time left of a running job by its progress, or its end by its earlier runs; empty where neither is known."""
    return time_left(job) or (forecast_end(job) if job.get("phase") == "running" else "")


def time_left(job: Mapping[str, Any], now: datetime | None = None) -> str:
    """Return an estimate of the time left from this attempt's progress, empty while none is sound."""
    began, progress = parse_time(job.get("progress_since")), float(job.get("progress") or 0)
    done = progress - float(job.get("progress_from") or 0)
    if job.get("phase") != "running" or began is None or progress >= 100:
        return ""
    passed = ((now or datetime.now(UTC)) - began).total_seconds()
    if not any(done >= points and passed >= seconds for points, seconds in _ENOUGH):
        return ""
    return say("about {span} left", span=span(passed * (100 - progress) / done))


def forecast_end(job: Mapping[str, Any]) -> str:
    """Write when a job ends by its earlier runs, or that it runs longer than these; empty if nothing is known."""
    told = job.get("forecast") or {}
    if when := between(told.get("end")):
        return say("expected to end {time} ({because})", time=when, because=str(told.get("because")))
    return "" if told.get("start") else bare(str(told.get("because") or ""))
