"""How a job's facts read: shared by picture, text, tables."""

from __future__ import annotations

import math
import signal
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from mlp.history import FINAL

CAUSES = {
    "program-error": "The program ended with an error",
    "signal": "A rank was killed by a signal",
    "out-of-memory": "Memory ran out",
    "time-limit": "The time limit was reached",
    "node-lost": "The node was lost",
    "start-failed": "The ranks could not be started",
}

REASONS = {
    "Invalid": "not allowed",
    "NotFound": "not there",
    "Conflict": "there already",
    "WrongState": "not in this state",
    "Forbidden": "no right to it",
    "ExceedsMaxQuota": "more than the whole quota",
    "WaitingForQuota": "waits for quota",
    "NoMatchingFlavor": "no such device here",
    "WaitingForResources": "waits for room on the nodes",
    "TopologyPlacementFailed": "waits for room in the right place",
    "WaitingForPreempted": "waits for others to stop",
    "Reserved": "the room is kept for others",
    "Suspended": "suspended",
    "Gated": "held back",
}
"""Typed reasons in words, as the hub and the widget have them; a test compares them."""


def reason(typed: object) -> str:
    """Write a typed reason as people read it: "Waits for quota"; one that is newer than this program as it is."""
    text = REASONS.get(str(typed), str(typed or ""))
    return f"{text[:1].upper()}{text[1:]}"


def shell() -> Any:
    """Return the IPython that this process is; None where it is none."""
    module = sys.modules.get("IPython")
    return None if module is None else module.get_ipython()


def command(line: str) -> str:
    """Write a command of ours as one would type it here: `%mlp watch digits` in IPython, `mlp watch digits` else."""
    return f"mlp {line}" if shell() is None else f"%mlp {line}"


def first_command() -> str:
    """Write how one would start a first job here."""
    return "mlp submit SCRIPT --workers 2" if shell() is None else "%%mlp submit --workers 2"


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


_PRIORITIES = {200: "high", 100: "normal", 50: "low"}


def priority(value: object) -> str:
    """Write a priority by the name of its class: "high"; another number as it is."""
    return _PRIORITIES.get(value, str(value)) if isinstance(value, int) else str(value)


def starts(text: object, now: datetime | None = None) -> str:
    """Write when something is expected: "in 26 s" where that is soon, "any moment now" where it is due, else the time of day."""
    at = parse_time(text)
    if at is None:
        return ""
    left = (at - (now or datetime.now(UTC))).total_seconds()
    if left >= SOON_S or left <= -SOON_S:
        return clock_time(text)
    return f"in {span(left)}" if left >= 0.5 else "any moment now"


SOON_S = 120.0
"""Up to so many seconds from now an expected time is told as how long it is until then: a clock's minutes say too little."""


def number(value: float) -> str:
    """Write a metric's value with four digits that count."""
    if not math.isfinite(value):
        return str(value)
    if value == int(value) and abs(value) < 1e6:
        return str(int(value))
    return f"{value:.4g}"


def rounded(value: float, digits: int) -> str:
    """Write a number with at most so many decimals, halves up, without trailing zeros."""
    scale = 10**digits
    whole = math.floor(value * scale + 0.5)
    return f"{whole / scale:.{digits}f}".rstrip("0").rstrip(".") if digits else str(whole)


def amount(value: float | None) -> str:
    """Write cores or devices; None has no limit of its own."""
    return "no limit" if value is None else rounded(value, 2)


def _sized(value: float, units: tuple[str, ...]) -> str:
    """Write an amount in the largest unit of which there is one: three digits that count, the first unit whole.

    The widget does the same (`widgets/src/core/format.ts`), and one table tests both.
    """
    at = 0
    while math.floor(value + 0.5) >= 1024 and at < len(units) - 1:
        value /= 1024
        at += 1
    digits = 0 if at == 0 or value >= 100 else 1 if value >= 10 else 2
    return f"{rounded(value, digits)} {units[at]}"


def memory(mib: float | None) -> str:
    """Write an amount of memory, given in MiB: 512 MiB, 1.46 GiB."""
    return "no limit" if mib is None else _sized(mib, ("MiB", "GiB", "TiB", "PiB"))


def workers(job: Mapping[str, Any]) -> str:
    """Write the gang: 2 workers, 2 to 4 workers + 1 ps; of an elastic one that was placed first how many it has."""
    low, _, high = str(job.get("workers", 1)).partition(":")
    text = f"{low} to {high} workers" if high else f"{low} worker{'' if low == '1' else 's'}"
    now = sum(1 for rank in job.get("ranks") or () if rank.get("role") != "ps")
    if high and now:
        text = f"{now} worker{'' if now == 1 else 's'} ({low} to {high})"
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
    if where and str(found.get("message") or "").startswith(where[0]):
        where = []  # the message says it
    text += f" ({', '.join(where)})" if where else ""
    return f"{text}: {found['message']}" if found.get("message") else text


def rank_state(job: Mapping[str, Any], rank: Mapping[str, Any]) -> str:
    """Write how a rank stands; one that another took along says which."""
    state_, how = str(rank.get("state", "")), ending(rank)
    if state_ == "stopped":
        first = (job.get("failure") or {}).get("rank")
        if first is not None and first != rank.get("rank"):
            return f"stopped because rank {first} failed"
        return "stopped" if how else "never started"
    return f"{state_}, {how}" if state_ == "failed" and how else state_


def unknown_start(why: Mapping[str, Any]) -> str:
    """Write why nobody can tell when a waiting job starts; empty where it can be told, or nothing is known."""
    because = str(why.get("expected_because") or "")
    if why.get("phase") != "queued" or why.get("expected_start") or not because:
        return ""
    text = because if because.startswith("no time can be told") else f"no time can be told: {because}"
    return f"{text[0].upper()}{text[1:]}."


def stopped(why: Mapping[str, Any]) -> list[str]:
    """Write what became of the last attempt of a job that waits again, and what of its work is kept; or nothing."""
    found = why.get("stopped")
    if not isinstance(found, Mapping) or not found.get("message"):
        return []
    kept = str(found.get("kept") or "")
    return [
        f"Its last attempt ended {clock_time(found.get('time'))}: {found['message']}.",
        *([f"{kept[0].upper()}{kept[1:]}."] if kept else []),
    ]


def prospects(why: Mapping[str, Any]) -> list[str]:
    """Write what the state of a waiting job does not say: why no start can be told, and what would start now."""
    unknown, ways = unknown_start(why), why.get("would_start_now")
    short = str(why.get("cut_short") or "")
    return [
        *([unknown] if unknown else []),
        *(_smaller(why, str(way)) for way in (ways if isinstance(ways, list) else [])),
        *([f"{short[0].upper()}{short[1:]}."] if short else []),
    ]


def _smaller(why: Mapping[str, Any], way: str) -> str:
    """Write with what a job would start now, how to have it so, and what of its work that costs."""
    name, before = str(why.get("job")), why.get("stopped")
    again = command(f"resubmit {name} {way}")
    saved = isinstance(before, Mapping) and before.get("checkpoint_at")
    cost = (
        f"; that is a new job, which begins anew: the checkpoint of {name} is not taken along"
        if saved
        else ""
    )
    return f"Would start now with {way}: {command(f'cancel {name}')}, then {again}{cost}"


def ended(job: Mapping[str, Any]) -> str:
    """Write how and when a job ended, in one sentence; empty for one that has not."""
    phase, at = str(job.get("phase")), clock_time(job.get("finished_at"))
    if phase not in FINAL:
        return ""
    how = {"cancelled": "was cancelled"}.get(phase, phase)
    ran = ""
    if seconds := ran_in_all(job):
        ran = f" after {span(seconds)}" if job.get("started_at") else f"; it had run for {span(seconds)}"
    return f"{job.get('name')} {how}{f' at {at}' if at else ''}{ran}."


def age(job: Mapping[str, Any], now: datetime | None = None) -> str:
    """Write for how long the job waits now, runs, or ran, and how long all its attempts together did."""
    now = now or datetime.now(UTC)
    started, submitted = parse_time(job.get("started_at")), parse_time(job.get("submitted_at"))
    whole = ran_in_all(job, now)
    if job.get("finished_at"):
        return f"ran {span(whole)}" if whole else ""
    if started:
        runs = f"for {span((now - started).total_seconds())}"
        return f"{runs}, {span(whole)} in all" if job.get("ran_s") else runs
    ran = f"ran {span(whole)}" if whole else ""
    if since := parse_time(job.get("waiting_since")):
        return ", ".join(filter(None, (f"waits {span((now - since).total_seconds())}", ran)))
    if submitted and job.get("phase") == "suspended" and not ran:
        return f"submitted {span((now - submitted).total_seconds())} ago"
    return ran or (f"waited {span(float(job['waited_s']))}" if job.get("waited_s") is not None else "")


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


def time_left(job: Mapping[str, Any], now: datetime | None = None) -> str:
    """Write an estimate of the time left from what this attempt has done, empty while nothing sound can be said."""
    began, progress = parse_time(job.get("progress_since")), float(job.get("progress") or 0)
    done = progress - float(job.get("progress_from") or 0)
    if job.get("phase") != "running" or began is None or done < 2 or progress >= 100:
        return ""
    passed = ((now or datetime.now(UTC)) - began).total_seconds()
    return f"about {span(passed * (100 - progress) / done)} left" if passed >= 3 else ""


def state(job: Mapping[str, Any]) -> str:
    """Write where the job stands, with the reason where there is one."""
    phase, notes = str(job.get("phase", "unknown")), standing(job)
    return f"{phase}: {notes}" if notes else phase


def standing(job: Mapping[str, Any]) -> str:
    """Write why the job stands where it stands: its place, its expected start, its reason; empty for one that runs."""
    phase = str(job.get("phase", "unknown"))
    notes = []
    if phase == "queued":
        if job.get("position") is not None:
            notes.append(f"place {job['position']} in the queue")
        if job.get("expected_start"):
            notes.append(f"expected to start {starts(job['expected_start'])}")
    if job.get("message") and phase in {"queued", "suspended", "admitted", "starting"}:
        notes.append(str(job["message"]))
    return "; ".join(notes)
