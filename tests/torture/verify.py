"""Compares what the hub tells of a job with what its program wrote down; pure, so that it is tested itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from torture import attempts
from torture.attempts import Attempt
from torture.findings import Violation
from torture.program import NO_ROOM, RankTruth, Truth
from torture.recipes import Recipe
from torture.toll import Hit, Outage

SLACK_S = 3.0  # a full disk is felt so long beside the time in which it is full
FROZEN_S = 5.0  # so long a frozen process is, at most
EXIT_S = 4.0  # so long a program may take for its exit: it delivers its last points then
LOST_WORDS = re.compile(
    r"\b(lost|dropped|missing|left out|not written|could not be written)\b", re.IGNORECASE
)
_LINE = re.compile(r"LINE (\d+) (\d+) (\d+)")


@dataclass
class Case:
    """All that is known of a job that has ended. `logs` are (stream, text) by rank, `points` as the stream replays them."""

    recipe: Recipe
    uid: str
    asked: list[str]
    job: dict[str, Any]
    events: list[dict[str, Any]]
    points: list[dict[str, Any]]
    logs: dict[int, list[tuple[str, str]]]
    truth: Truth
    hits: list[Hit] = field(default_factory=list)
    outages: list[Outage] = field(default_factory=list)

    def full(self, start: float | None, end: float | None = None) -> bool:
        """Whether the disk was full at that time, or at some moment between the two."""
        if start is None:
            return False
        until = start if end is None else end
        return any(
            o.kind == "disk" and o.start - SLACK_S <= until and (o.end is None or start <= o.end + SLACK_S)
            for o in self.outages
        )

    def killed(self, attempt: int, *kinds: str) -> bool:
        """Whether a process of that attempt was killed, of these kinds (any, where none is named)."""
        name = f"{self.uid}.{attempt}"
        return any(h.attempt == name and not h.frozen and (not kinds or h.kind in kinds) for h in self.hits)

    def wrote_late(self, attempt: int, printed: float) -> bool:
        """Whether the attempt's shim was frozen, so that what was printed was written later: while the disk was full."""
        name = f"{self.uid}.{attempt}"
        frozen = any(h.attempt == name and h.frozen and h.kind == "shim" for h in self.hits)
        return frozen and self.full(printed, printed + FROZEN_S)

    def tells_of_loss(self) -> bool:
        """Whether timeline or log say that something was lost; a log that had no room to the end cannot."""
        if any(event["kind"] in ("output-lost", "metrics-lost") for event in self.events):
            return True
        texts = [text for lines in self.logs.values() for _, text in lines]
        return any(LOST_WORDS.search(text) for text in texts if not _LINE.fullmatch(text))


def check(case: Case) -> list[Violation]:
    """Return everything that is wrong with a job."""
    tries = attempts.of(case.events)
    found = [*_whole(case, tries), *_truth(case, tries), *_points(case), *_lines(case)]
    for attempt in tries:
        found += _attempt(case, attempt, last=attempt is tries[-1])
    return [Violation(kind, text, f"{case.recipe.user}/{case.recipe.name}") for kind, text in found]


Found = Iterator[tuple[str, str]]


def _whole(case: Case, tries: list[Attempt]) -> Found:
    """The job as a whole: its attempts are counted, its retries kept to, and its end is one that can be explained."""
    job, recipe = case.job, case.recipe
    if job["uid"] != case.uid:
        yield "job-replaced", f"acknowledged as {case.uid}, now it is {job['uid']}"
    if job["restarts"] != len(tries) - 1:
        yield (
            "restarts-miscounted",
            f"{job['restarts']} restarts, but its timeline tells of {len(tries)} attempts",
        )
    retries = recipe.shape.get("retries", 0)
    used = sum(a.end in ("signal", "program-error", "out-of-memory") for a in tries[:-1])
    if used > retries:
        yield "too-many-retries", f"{used} retries used, {retries} are allowed"
    if job["phase"] == "failed" and tries[-1].end in ("signal", "program-error") and used < retries:
        yield "retries-not-used", f"failed after {used} of {retries} retries: {job['message']}"
    if job["phase"] == "cancelled" and "cancel" not in case.asked:
        yield "cancelled-unasked", job["message"]
    if job["phase"] == "finished":
        ranks = case.truth.of(job["restarts"])
        if not any(r.rank == 0 and r.ended for r in ranks):
            yield "finished-without-its-end", f"attempt {job['restarts']} never came to its end: {ranks}"


def _attempt(case: Case, attempt: Attempt, *, last: bool) -> Found:
    """One attempt: how it ended is explained by what was done to it, and who ended well is not run again."""
    number, end = attempt.number, attempt.end
    ranks = case.truth.of(number)
    what = f"attempt {number} ended with {end}: {attempt.message}"
    shot = case.killed(number)
    full = case.full(attempt.began, attempt.over)
    match end:
        case "node-lost" if full and not case.killed(number, "shim"):
            if ranks:  # who was about to start may be started again
                yield "lost-on-full-disk", f"{what}; its shim was not killed"
        case "node-lost" if not case.killed(number, "shim"):
            yield "lost-for-nothing", f"{what}; its shim was not killed"
        case "signal" if not shot:
            yield "signal-from-nobody", f"{what}; none of its processes was killed"
        case "program-error" if not (
            shot or number < case.recipe.fails or (full and _no_room(case, attempt))
        ):
            yield "failed-for-nothing", what
        case "start-failed" if not case.killed(number, "rank", "sandbox"):
            yield "start-failed", what
        case "time-limit" if "time_limit" not in case.recipe.shape:
            yield "time-limit-for-nothing", what
        case "out-of-memory":
            yield "out-of-memory-for-nothing", what
        case "suspended" if "suspend" not in case.asked:
            yield "suspended-unasked", what
        case "" if case.job["phase"] in ("finished", "failed"):
            yield "end-untold", f"attempt {number} has no end in the timeline"
    if not last and ranks and all(r.ended for r in ranks) and not _may_run_again(case, attempt, ranks):
        yield "run-again", f"{what}, though all its ranks had come to their end"


def _may_run_again(case: Case, attempt: Attempt, ranks: list[RankTruth]) -> bool:
    """Whether something came between the last thing that a program wrote down and the end of its process being stored."""
    if attempt.end in attempts.STOPS:
        return attempt.asked is not None and attempt.asked <= max(r.last for r in ranks) + EXIT_S
    return case.killed(attempt.number, *(("shim",) if attempt.end == "node-lost" else ()))


def _no_room(case: Case, attempt: Attempt) -> bool:
    return attempt.message.endswith(f" {NO_ROOM}") or not case.truth.of(attempt.number)


def _truth(case: Case, tries: list[Attempt]) -> Found:
    """Each attempt ran once, none beside another one, and none that the timeline does not know of."""
    for number, rank in case.truth.twice:
        yield "started-twice", f"rank {rank} of attempt {number}"
    for one in case.truth.ranks:
        if one.double:
            yield "two-at-a-time", f"rank {one.rank} of attempt {one.attempt} met a living copy of itself"
        if one.attempt >= len(tries):
            yield "attempt-untold", f"attempt {one.attempt} ran, the timeline tells of {len(tries)}"
    for number in range(1, len(tries)):
        before = [r.last for r in case.truth.ranks if r.attempt < number]
        starts = [r.started for r in case.truth.of(number) if r.started]
        if before and starts and min(starts) < max(before):
            yield (
                "attempts-overlap",
                f"attempt {number} began at {min(starts)}, an earlier one lived at {max(before)}",
            )


def _points(case: Case) -> Found:
    """Each reported point is stored once, in order; only a full disk takes points, and it is said."""
    stored: dict[tuple[int, int], list[int]] = {}
    for point in case.points:
        key = (int(point["values"]["attempt"]), int(point["rank"]))
        stored.setdefault(key, []).append(int(point["values"]["step"]))
    seqs = [point["seq"] for point in case.points]
    if seqs != sorted(set(seqs)):
        yield "points-out-of-order", "the numbers of the points do not grow"
    for one in case.truth.ranks:
        yield from _points_of(case, one, stored.pop((one.attempt, one.rank), []))
    for (attempt, rank), steps in stored.items():
        yield (
            "points-of-nobody",
            f"{len(steps)} points of rank {rank} of attempt {attempt}, which wrote nothing",
        )


def _points_of(case: Case, one: RankTruth, steps: list[int]) -> Found:
    who = f"rank {one.rank} of attempt {one.attempt}"
    if steps != sorted(set(steps)):
        yield "points-twice", f"{who}: {steps}"
    if invented := set(steps) - one.begun.keys():
        yield "points-invented", f"{who} never reported {sorted(invented)}"
    missing = one.reported.keys() - set(steps)
    unexplained = [n for n in sorted(missing) if not case.full(one.reported[n])]
    if unexplained:
        yield "points-missing", f"{who}: {unexplained} of {len(one.reported)} reported"
    elif missing and not case.tells_of_loss():
        yield (
            "points-lost-untold",
            f"{who}: {len(missing)} points lost while the disk was full, and nothing says so",
        )


def _lines(case: Case) -> Found:
    """Each printed line is in the log once, whole and in order; only a killed shim or a full disk takes any."""
    seen: dict[tuple[int, int], list[int]] = {}
    for rank, lines in case.logs.items():
        order: list[int] = []
        for stream, text in lines:
            if found := _LINE.fullmatch(text):
                who, attempt, n = map(int, found.groups())
                if who != rank:
                    yield "line-of-another", f"in the log of rank {rank}: {text}"
                seen.setdefault((attempt, who), []).append(n)
                order.append(attempt)
            elif "LINE " in text and not LOST_WORDS.search(text):
                yield "line-torn", f"in the log of rank {rank}, {stream}: {text[:200]}"
        if order != sorted(order):
            yield "lines-out-of-order", f"the attempts of rank {rank} are mixed"
    for one in case.truth.ranks:
        yield from _lines_of(case, one, seen.pop((one.attempt, one.rank), []))
    for (attempt, rank), numbers in seen.items():
        yield (
            "lines-of-nobody",
            f"{len(numbers)} lines of rank {rank} of attempt {attempt}, which wrote nothing",
        )


def _lines_of(case: Case, one: RankTruth, numbers: list[int]) -> Found:
    who = f"rank {one.rank} of attempt {one.attempt}"
    if numbers != sorted(set(numbers)):
        yield "lines-twice", f"{who}: {numbers}"
    if invented := set(numbers) - one.begun.keys():
        yield "lines-invented", f"{who} never printed {sorted(invented)}"
    missing = sorted(one.printed.keys() - set(numbers))
    if case.killed(one.attempt, "shim"):  # what was still in the pipe went with it, and only that
        missing = [n for n in missing if numbers and n < max(numbers)]
    unexplained = [
        n
        for n in missing
        if not case.full(one.printed[n]) and not case.wrote_late(one.attempt, one.printed[n])
    ]
    if unexplained:
        yield "lines-missing", f"{who}: {unexplained} of {len(one.printed)} printed"
    elif missing and not case.tells_of_loss():
        yield (
            "lines-lost-untold",
            f"{who}: {len(missing)} lines lost while the disk was full, and nothing says so",
        )
