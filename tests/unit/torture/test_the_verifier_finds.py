"""A checker that finds nothing proves nothing: each kind of loss is made up here, and must be found."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from torture import verify
from torture.program import RankTruth, Truth
from torture.recipes import Recipe
from torture.toll import Hit, Outage

UID = "01m81r1t7f8s37213bnc7yp34x"
STEPS = 4


def at(second: float) -> str:
    return datetime.fromtimestamp(second, UTC).isoformat()


def event(second: float, kind: str, reason: str | None = None) -> dict[str, Any]:
    return {"time": at(second), "kind": kind, "message": kind, "reason": reason}


def rank_of(attempt: int = 0, *, done: int = STEPS, start: float = 10.0, ended: bool = True) -> RankTruth:
    times = {n: start + 1 + n for n in range(done)}
    last = start + 1 + done
    return RankTruth(
        attempt, 0, start, last if ended else None, False, dict(times), dict(times), dict(times), last
    )


def points_of(*ranks: RankTruth) -> list[dict[str, Any]]:
    pairs = [(one, n) for one in ranks for n in one.reported]
    return [
        {"seq": seq, "rank": one.rank, "values": {"attempt": one.attempt, "step": n}}
        for seq, (one, n) in enumerate(pairs, 1)
    ]


def lines_of(*ranks: RankTruth) -> list[tuple[str, str]]:
    return [("stdout", f"LINE {one.rank} {one.attempt} {n}") for one in ranks for n in one.printed]


def good() -> verify.Case:
    """A job that ran once and well."""
    one = rank_of()
    return verify.Case(
        Recipe("ann", "j", STEPS, 1.0, shape={"retries": 1}),
        UID,
        [],
        {"uid": UID, "restarts": 0, "phase": "finished", "message": ""},
        [event(9, "starting"), event(16, "ended"), event(16, "finished")],
        points_of(one),
        {0: lines_of(one)},
        Truth([one]),
    )


def retried(cause: str, *, first: RankTruth | None = None) -> verify.Case:
    """A job whose first attempt ended by that cause."""
    case = good()
    before = first or rank_of(done=2, ended=False)
    after = rank_of(1, start=20)
    case.truth.ranks = [before, after]
    case.job["restarts"] = 1
    case.events = [
        event(9, "starting"),
        event(16, "attempt-failed", cause),
        event(17, "requeued"),
        event(19, "starting"),
        event(26, "ended"),
        event(26, "finished"),
    ]
    case.points = points_of(before, after)
    case.logs = {0: lines_of(before, after)}
    return case


def kill(kind: str, attempt: int = 0) -> Hit:
    return Hit(14.0, kind, 1, f"{UID}.{attempt}")


def kinds(case: verify.Case) -> list[str]:
    return sorted({violation.kind for violation in verify.check(case)})


def test_a_job_that_ran_once_successfully_is_not_a_violation() -> None:
    assert kinds(good()) == []


@pytest.mark.parametrize(
    ("cause", "victim"), [("node-lost", "shim"), ("signal", "rank"), ("signal", "sandbox")]
)
def test_an_attempt_killed_by_the_test_is_not_a_violation(cause: str, victim: str) -> None:
    case = retried(cause)
    case.hits = [kill(victim)]
    assert kinds(case) == []


@pytest.mark.parametrize(
    ("cause", "found"),
    [
        ("node-lost", "lost-for-nothing"),
        ("signal", "signal-from-nobody"),
        ("program-error", "failed-for-nothing"),
        ("time-limit", "time-limit-for-nothing"),
        ("out-of-memory", "out-of-memory-for-nothing"),
        ("start-failed", "start-failed"),
    ],
)
def test_an_attempt_that_ended_badly_without_a_fault_of_ours_is_found(cause: str, found: str) -> None:
    assert found in kinds(retried(cause))


def test_a_kill_of_another_attempt_explains_nothing() -> None:
    case = retried("node-lost")
    case.hits = [kill("shim", 1)]
    assert "lost-for-nothing" in kinds(case)


def test_a_job_that_ended_well_and_is_run_again_is_found() -> None:
    case = retried("signal", first=rank_of())
    assert "run-again" in kinds(case)


def test_more_retries_than_allowed_are_found() -> None:
    case = retried("signal")
    case.hits = [kill("rank")]
    case.recipe.shape["retries"] = 0
    assert kinds(case) == ["too-many-retries"]


def test_a_job_that_fails_with_retries_left_is_found() -> None:
    case = good()
    case.hits = [kill("rank")]
    case.job["phase"] = "failed"
    case.events[1:] = [event(16, "attempt-failed", "signal"), event(16, "failed")]
    assert "retries-not-used" in kinds(case)


def test_a_restart_missing_from_the_timeline_is_found() -> None:
    case = good()
    case.job["restarts"] = 1
    assert "restarts-miscounted" in kinds(case)


def test_a_job_that_finished_without_coming_to_its_end_is_found() -> None:
    case = good()
    case.truth.ranks[0].ended = None
    assert kinds(case) == ["finished-without-its-end"]


def test_an_unrequested_cancellation_is_found() -> None:
    case = good()
    case.job["phase"] = "cancelled"
    case.events[1:] = [event(16, "cancelled")]
    assert kinds(case) == ["cancelled-unasked"]


def test_two_living_copies_and_a_second_start_are_found() -> None:
    case = good()
    case.truth.ranks[0].double = True
    case.truth.twice.append((0, 0))
    assert kinds(case) == ["started-twice", "two-at-a-time"]


def test_attempts_that_overlap_are_found() -> None:
    case = retried("signal")
    case.hits = [kill("rank")]
    case.truth.ranks[0].last = 21.0
    assert kinds(case) == ["attempts-overlap"]


def test_a_missing_point_is_found_also_of_a_killed_attempt() -> None:
    case = retried("node-lost")
    case.hits = [kill("shim")]
    del case.points[1]
    assert kinds(case) == ["points-missing"]


def test_a_point_that_was_begun_and_not_reported_may_be_there_or_not() -> None:
    case = retried("node-lost")
    case.hits = [kill("shim")]
    case.truth.ranks[0].begun[2] = 13.0
    assert kinds(case) == []


def test_points_stored_twice_invented_or_in_another_order_are_found() -> None:
    for change, found in (
        (lambda p: [*p, {**p[-1], "seq": 99}], "points-twice"),
        (lambda p: [*p, {"seq": 99, "rank": 0, "values": {"attempt": 0, "step": 7}}], "points-invented"),
        (lambda p: p[::-1], "points-out-of-order"),
        (lambda p: [*p, {"seq": 99, "rank": 1, "values": {"attempt": 0, "step": 0}}], "points-of-nobody"),
    ):
        case = good()
        case.points = change(case.points)
        assert found in kinds(case)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda t: t[:1] + t[2:], "lines-missing"),
        (lambda t: t[:2] + t[1:], "lines-twice"),
        (lambda t: [*t, ("stdout", "LINE 0 0 9")], "lines-invented"),
        (lambda t: [*t[:-1], ("stdout", "LINE 0 0 22026-11-22T13:45:09Z stdout F LINE 0 0 3")], "line-torn"),
        (lambda t: [*t, ("stdout", "LINE 1 0 0")], "line-of-another"),
    ],
)
def test_a_log_that_is_not_what_was_printed_is_found(change: Any, found: str) -> None:
    case = good()
    case.logs = {0: change(case.logs[0])}
    assert found in kinds(case)


def test_a_killed_shim_may_take_the_last_lines_and_no_others() -> None:
    case = retried("node-lost")
    case.hits = [kill("shim")]
    lines = case.logs[0]
    case.logs = {0: lines[:1] + lines[2:]}
    assert kinds(case) == []
    case.logs = {0: lines[1:]}
    assert kinds(case) == ["lines-missing"]


def test_losses_by_a_full_disk_are_excused_only_where_they_are_reported() -> None:
    case = good()
    case.outages = [Outage("disk", 11.5, 12.5)]
    del case.points[1]
    case.logs = {0: case.logs[0][:1] + case.logs[0][2:]}
    assert kinds(case) == ["lines-lost-untold", "points-lost-untold"]
    in_timeline = {**case.events[1], "kind": "output-lost", "message": "1 line could not be kept"}
    case.events.insert(2, in_timeline)
    assert kinds(case) == []
    case.events.remove(in_timeline)
    case.logs[0].append(("stderr", "1 line and 1 point were lost: the disk was full"))
    assert kinds(case) == []


def test_losses_outside_the_time_of_the_full_disk_are_not_excused_by_it() -> None:
    case = good()
    case.outages = [Outage("disk", 100.0, 105.0)]
    del case.points[1]
    assert kinds(case) == ["points-missing"]


def test_a_frozen_shim_writes_late_what_was_printed_in_time_and_a_full_disk_takes_that_too() -> None:
    case = good()
    case.outages = [Outage("disk", 19.0, 25.0)]
    case.events.insert(2, {**case.events[1], "kind": "output-lost", "message": "1 line could not be kept"})
    case.logs = {0: case.logs[0][:-1]}
    assert kinds(case) == ["lines-missing"]
    case.hits = [Hit(14.0, "shim", 1, f"{UID}.0", frozen=True)]
    assert kinds(case) == []
