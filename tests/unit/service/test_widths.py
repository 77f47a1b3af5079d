"""How long an elastic job that ended would have run with all its workers, by the steps of its timeline."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mlp_hub.domain.resources import Resources
from mlp_hub.service.widths import at_full_width
from mlp_hub.store.records import EndedJob, JobEvent, JobShape

SHAPE = JobShape(Resources(cpu=1000), workers_min=1, workers_max=3)
CHEAP = EndedJob("u1", "cheap", "ann", "red", "finished", 1, 0.0, 0.0, 101.0, 302.0, 0.0, 100.0, SHAPE)


def timeline(*steps: tuple[float, str, str]) -> list[JobEvent]:
    return [JobEvent(n, time, kind, message) for n, (time, kind, message) in enumerate(steps, 1)]


STEPS = timeline(
    (0.0, "starting", "starting 3 ranks on node n1"),
    (0.0, "running", "running on node n1"),
    (100.0, "resized", "goes on with 1 worker on node n1"),
    (100.5, "starting", "starting 1 rank on node n1"),
    (101.0, "running", "running on node n1"),
    (302.0, "ended", "all ranks ended well"),
)


def test_the_worker_seconds_of_all_attempts_are_divided_by_the_most_workers() -> None:
    assert CHEAP.ran == 301.0
    assert at_full_width(CHEAP, STEPS) == pytest.approx((100 * 3 + 201) / 3)


def test_a_job_that_had_all_its_workers_all_the_time_ran_as_long_as_it_did() -> None:
    always = timeline(
        (0.0, "starting", "starting 3 ranks on node n1"), (301.0, "ended", "all ranks ended well")
    )
    once = replace(CHEAP, started_at=0.0, finished_at=301.0, ran_before=0.0)
    assert at_full_width(once, always) == 301.0


def test_a_parameter_server_works_like_one_more_worker() -> None:
    served = replace(CHEAP, shape=replace(SHAPE, ps=1), started_at=0.0, finished_at=300.0, ran_before=0.0)
    steps = timeline(
        (0.0, "starting", "starting 2 ranks on node n1"), (300.0, "ended", "all ranks ended well")
    )
    assert at_full_width(served, steps) == pytest.approx(150.0)


def test_a_timeline_without_its_first_steps_tells_nothing() -> None:
    assert at_full_width(CHEAP, STEPS[3:]) is None
    assert at_full_width(CHEAP, []) is None
