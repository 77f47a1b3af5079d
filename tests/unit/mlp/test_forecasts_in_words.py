"""Forecasts by earlier runs as the command and cells write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from mlp.rendering import reasons, times, words
from mlp.rendering.format import between, clock_time, starts

NOON = datetime.now(UTC).astimezone().replace(hour=12, minute=0, second=0, microsecond=0) + timedelta(days=1)


def span(first: float, last: float) -> dict[str, str]:
    """Return a range of minutes after noon of tomorrow."""
    at = [NOON + timedelta(minutes=m) for m in (first, (first + last) / 2, last)]
    return dict(zip(("p10", "p50", "p90"), [t.isoformat() for t in at], strict=True))


def told(**change: Any) -> dict[str, Any]:
    return {
        "start": None,
        "end": None,
        "runs": 0,
        "because": "estimated from earlier runs of 2 other jobs",
    } | change


def day() -> str:
    return NOON.strftime("%Y-%m-%d")


def test_a_range_has_its_day_once_and_equal_minutes_are_one_time() -> None:
    assert between(span(20, 50)) == f"{day()} 12:20-12:50"
    assert between(span(20, 20.5)) == f"{day()} 12:20"
    late = span(20, 24 * 60)
    assert between(late) == f"{day()} 12:20-{clock_time(late['p90'])}"


def test_a_range_that_is_nearly_over_is_one_time_from_now() -> None:
    now = datetime.now(UTC)
    soon = {k: (now + timedelta(seconds=s)).isoformat() for k, s in (("p10", 5), ("p50", 30), ("p90", 60))}
    assert between(soon, now) == starts(soon["p50"], now) == "in 30 s"


def test_values_without_a_range_give_nothing() -> None:
    for odd in (None, "x", 3, {}, {"p10": None, "p90": None}, {"p10": "x", "p50": "y", "p90": "z"}):
        assert between(odd) == ""


def test_why_has_the_range_and_the_latest_time_by_limits() -> None:
    found = {
        "job": "a", "run": 1, "phase": "queued", "reasons": [], "position": None,
        "expected_start": span(90, 90)["p50"], "expected_because": "b ends by then at the latest",
        "forecast": told(start=span(20, 50)), "how_sure": "sure", "sure_because": "",
    }  # fmt: skip
    text = str(reasons.why(found))
    assert f"Expected to start {day()} 12:20-12:50 (estimated from earlier runs of 2 other jobs)." in text
    assert f"By time limits: {day()} 13:30 at the latest (b ends by then at the latest)." in text
    older = str(reasons.why({k: v for k, v in found.items() if k != "forecast"}))
    assert f"Expected to start {day()} 13:30 (b ends by then at the latest)." in older


def test_a_start_that_earlier_runs_tell_is_not_called_unknown_in_the_next_line() -> None:
    found = {
        "job": "a", "run": 1, "phase": "queued", "reasons": [], "position": 1, "expected_start": None,
        "expected_because": "fp@3 of bob has no time limit", "forecast": told(start=span(20, 50)),
    }  # fmt: skip
    text = str(reasons.why(found))
    assert f"Expected to start {day()} 12:20-12:50" in text
    assert "No time can be estimated" not in text
    assert words.prospects({**found, "forecast": None}) == [
        "No time can be estimated: fp@3 of bob has no time limit."
    ]


def test_a_job_in_a_list_has_the_range() -> None:
    job = {"phase": "queued", "expected_start": None, "forecast": told(start=span(20, 50))}
    assert words.standing(job) == f"expected to start {day()} 12:20-12:50"


def test_a_running_job_says_when_it_ends_or_that_it_runs_longer_than_before() -> None:
    job = {
        "phase": "running",
        "forecast": told(end=span(20, 50), because="estimated from its 5 earlier runs"),
    }
    assert (
        times.left_or_end(job) == f"expected to end {day()} 12:20-12:50 (estimated from its 5 earlier runs)"
    )
    longer = {
        "phase": "running",
        "forecast": told(because="it has run longer than its 5 earlier runs", runs=5),
    }
    assert times.left_or_end(longer) == "it has run longer than its 5 earlier runs"
    assert times.left_or_end({"phase": "running", "forecast": None}) == ""
    assert times.left_or_end({"phase": "running"}) == ""


def test_an_offer_says_when_it_would_start_and_end() -> None:
    asked = {
        "fits_now": False,
        "expected_start": None,
        "cpu": 1,
        "ram": 512,
        "reasons": [],
        "would_start_now": [],
    }
    text = str(reasons.offer({**asked, "forecast": told(start=span(20, 50), end=span(60, 90), runs=4)}))
    assert f"Would wait; expected to start {day()} 12:20-12:50" in text
    assert f"By its 4 earlier runs it would end {day()} 13:00-13:30." in text
