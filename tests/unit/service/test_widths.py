"""How long an elastic job that ended would have run with all its workers, by the steps of its timeline."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mlp_hub.domain.resources import Resources
from mlp_hub.service.jobs.history import at_full_width
from mlp_hub.store.records import EndedJob, JobEvent, SchedulingShape
from mlp_language.message import Message, msg, msgs

SHAPE = SchedulingShape(Resources(cpu=1000), workers_min=1, workers_max=3)
CHEAP = EndedJob("u1", "cheap", "ann", "red", "finished", 1, 0.0, 0.0, 101.0, 302.0, 0.0, 100.0, SHAPE)


def starting(ranks: int) -> Message:
    return msgs("starting {n} rank", "starting {n} ranks", n=ranks) if ranks else msg("went on")


def timeline(*steps: tuple[float, str, int]) -> list[JobEvent]:
    return [JobEvent(n, time, kind, starting(message)) for n, (time, kind, message) in enumerate(steps, 1)]


STEPS = timeline(
    (0.0, "starting", 3),
    (0.0, "running", 0),
    (100.0, "resized", 0),
    (100.5, "starting", 1),
    (101.0, "running", 0),
    (302.0, "ended", 0),
)


def test_the_worker_seconds_of_all_attempts_are_divided_by_the_most_workers() -> None:
    assert CHEAP.ran == 301.0
    assert at_full_width(CHEAP, STEPS) == pytest.approx((100 * 3 + 201) / 3)


def test_a_job_that_had_all_its_workers_all_the_time_ran_as_long_as_it_did() -> None:
    always = timeline((0.0, "starting", 3), (301.0, "ended", 0))
    once = replace(CHEAP, started_at=0.0, finished_at=301.0, ran_before=0.0)
    assert at_full_width(once, always) == 301.0


def test_a_parameter_server_works_like_one_more_worker() -> None:
    served = replace(CHEAP, shape=replace(SHAPE, ps=1), started_at=0.0, finished_at=300.0, ran_before=0.0)
    steps = timeline((0.0, "starting", 2), (300.0, "ended", 0))
    assert at_full_width(served, steps) == pytest.approx(150.0)


def test_a_timeline_without_its_first_steps_tells_nothing() -> None:
    assert at_full_width(CHEAP, STEPS[3:]) is None
    assert at_full_width(CHEAP, []) is None
