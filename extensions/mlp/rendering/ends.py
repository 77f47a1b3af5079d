"""Ends of jobs, attempts and ranks as they read: how, when and why."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from typing import Any

from mlp.language import say
from mlp.rendering.format import clock_time, span
from mlp.rendering.history import FINAL
from mlp.rendering.times import ran_in_all
from mlp.rendering.words import bare, capital, phase_word, stopped_early, title

CAUSES: Mapping[str, Callable[[], str]] = {
    "program-error": lambda: say("The program ended with an error"),
    "signal": lambda: say("A rank was killed by a signal"),
    "out-of-memory": lambda: say("Memory ran out"),
    "disk": lambda: say("Wrote too much to the disk"),
    "time-limit": lambda: say("The time limit was reached"),
    "node-lost": lambda: say("The node was lost"),
    "start-failed": lambda: say("The ranks could not be started"),
}


def ending(thing: Mapping[str, Any]) -> str:
    """Write how a rank ended."""
    number_ = thing.get("signal")
    if number_ is not None:
        try:
            return signal.Signals(number_).name
        except ValueError:
            return say("signal {n}", n=number_)
    code = thing.get("exit_code")
    return "" if code is None else say("exit code {n}", n=code)


def cause(job: Mapping[str, Any]) -> str:
    """Write in a few words what went wrong and where, empty when nothing did."""
    found = job.get("failure")
    return _cause_and_place(found) if isinstance(found, Mapping) else ""


def _cause(found: Mapping[str, Any]) -> str:
    known = CAUSES.get(str(found.get("cause")))
    return known() if known else str(found.get("cause") or say("It failed"))


def _where(found: Mapping[str, Any]) -> str:
    """Write which rank failed and how it ended, as far as that is known."""
    rank = [say("rank {rank}", rank=found["rank"])] if found.get("rank") is not None else []
    return say(", ").join([*rank, *filter(None, [ending(found)])])


def _cause_and_place(found: Mapping[str, Any]) -> str:
    text, where = _cause(found), _where(found)
    return say("{what} ({where})", what=text, where=where) if where else text


def failure(job: Mapping[str, Any]) -> str:
    """Write what went wrong in one sentence, with the way out; empty when nothing did."""
    found = job.get("failure")
    if not isinstance(found, Mapping):
        return ""
    text = _cause_and_place(found)
    if found.get("message"):
        message = str(found["message"])
        if found.get("rank") is not None and message.startswith(say("rank {rank}", rank=found["rank"])):
            text = _cause(found)  # the message says where
        text = say("{what}: {why}", what=text, why=message)
    return say("{what}; {way_out}", what=text, way_out=str(found["remedy"])) if found.get("remedy") else text


def rank_state(job: Mapping[str, Any], rank: Mapping[str, Any]) -> str:
    """Return the state of a rank, in words; one that another rank stopped names that one."""
    state_, how = str(rank.get("state", "")), ending(rank)
    if state_ == "stopped":
        first = (job.get("failure") or {}).get("rank")
        if first is not None and first != rank.get("rank"):
            return say("stopped because rank {rank} failed", rank=first)
        return say("stopped") if how else say("never started")
    return (
        say("failed, {how}", how=how) if state_ == "failed" and how else phase_word(state_) if state_ else ""
    )


def ended(job: Mapping[str, Any]) -> str:
    """Write how and when a job ended, in one sentence; empty for one that has not."""
    phase, at = str(job.get("phase")), clock_time(job.get("finished_at"))
    if phase not in FINAL:
        return ""
    name, seconds = title(job), ran_in_all(job)
    if phase == "finished":
        how = say("{job} finished at {time}", job=name, time=at) if at else say("{job} finished", job=name)
    elif phase == "failed":
        how = say("{job} failed at {time}", job=name, time=at) if at else say("{job} failed", job=name)
    elif stopped_early(job):
        how = (
            say("{job} was stopped early at {time}", job=name, time=at)
            if at
            else say("{job} was stopped early", job=name)
        )
    elif at:
        how = say("{job} was cancelled at {time}", job=name, time=at)
    else:
        how = say("{job} was cancelled", job=name)
    if not seconds:
        return say("{text}.", text=how)
    if job.get("started_at"):
        return say("{what} after {span}.", what=how, span=span(seconds))
    return say("{what}; it had run for {span}.", what=how, span=span(seconds))


def stopped(why: Mapping[str, Any]) -> list[str]:
    """Write what became of the last attempt of a job that waits again, and what of its work is kept; or nothing."""
    found = why.get("stopped")
    if not isinstance(found, Mapping) or not found.get("message"):
        return []
    kept = str(found.get("kept") or "")
    return [
        say(
            "Its last attempt ended {time}: {what}.",
            time=clock_time(found.get("time")),
            what=bare(str(found["message"])),
        ),
        *([say("{text}.", text=capital(kept))] if kept else []),
    ]


def restarts(job: Mapping[str, Any]) -> int:
    """Return how many attempts began after another; the one that a job waits for has not."""
    counted = int(job.get("restarts") or 0)
    return counted if job.get("started_at") else max(counted - 1, 0)
