"""What is reserved or booked is kept free, and only that."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mlp_hub.domain.resources import Quota
from mlp_hub.scheduler.core import Core
from mlp_hub.scheduler.model.types import Admit, CapacityWindow, Wait
from mlp_hub.scheduler.quota.reserved import ReservedCapacity
from mlp_hub.simulate.engine import Simulation
from mlp_hub.simulate.scenario_reader import read_value
from support.scheduler.scheduler_builders import job, runs, snapshot, tenant

Line = dict[str, Any]
NODE = {"name": "n", "cpu": 8}


def run(jobs: list[Line], tenants: list[Line], **more: Any) -> list[Line]:
    scenario = {"version": 1, "nodes": [NODE], "tenants": tenants, "jobs": jobs, **more}
    return list(Simulation(read_value(scenario)).lines())


def when(lines: list[Line], event: str) -> list[tuple[float, str]]:
    return [(line["t"], line["job"]) for line in lines[:-1] if line["event"] == event]


def why(lines: list[Line], job: str) -> str:
    return next(line["message"] for line in lines if line.get("job") == job and "message" in line)


RED, BLUE = {"name": "red"}, {"name": "blue", "reserved": {"cpu": 3}}


def test_capacity_reserved_by_a_tenant_is_left_free_by_the_others() -> None:
    lines = run(
        [
            {"name": "r", "tenant": "red", "count": 8, "duration": 10},
            {"name": "b", "tenant": "blue", "submit": 5, "workers": 3, "duration": 10},
        ],
        [RED, BLUE],
    )
    started = when(lines, "started")
    assert [s for s in started if s[0] == 0] == [(0, f"r-{i}") for i in range(5)]
    assert (5, "b") in started
    assert why(lines, "r-5").startswith("Needs 1 cpu, 0 free.")


def test_a_tenant_that_uses_more_than_its_reservation_keeps_nothing_else_free() -> None:
    lines = run(
        [
            {"name": "b", "tenant": "blue", "workers": 4, "duration": 10},
            {"name": "r", "tenant": "red", "submit": 1, "workers": 4, "duration": 10},
        ],
        [RED, BLUE],
    )
    assert when(lines, "started") == [(0, "b"), (1, "r")]


def test_a_job_that_needs_what_is_reserved_for_good_is_refused_with_the_numbers() -> None:
    lines = run([{"name": "r", "tenant": "red", "workers": 6}], [RED, BLUE])
    assert when(lines, "refused") == [(0, "r")]
    assert why(lines, "r") == "Needs 6 cpu, red may use 5. Use --workers 5."


def test_a_job_waiting_for_capacity_of_another_tree_is_requeued_when_it_is_returned() -> None:
    """red and green share nothing but the machine; what green ends lets red start."""
    lines = run(
        [
            {"name": "g", "tenant": "green", "workers": 5, "duration": 10},
            {"name": "r", "tenant": "red", "submit": 1, "workers": 2, "duration": 10},
        ],
        [RED, {"name": "green"}, BLUE],
    )
    assert when(lines, "started") == [(0, "g"), (10, "r")]


BOOKED = [{"tenant": "blue", "from": 100, "until": 200, "amount": {"cpu": 8}}]


def test_before_a_booked_window_only_work_starts_that_is_gone_by_then() -> None:
    lines = run(
        [
            {"name": "long", "tenant": "red", "workers": 2, "duration": 50, "time_limit": 120},
            {"name": "endless", "tenant": "red", "workers": 2, "duration": 50},
            {"name": "short", "tenant": "red", "workers": 8, "duration": 50, "time_limit": 90},
            {"name": "b", "tenant": "blue", "submit": 110, "workers": 8, "duration": 20},
        ],
        [RED, {"name": "blue"}],
        bookings=BOOKED,
    )
    assert when(lines, "started") == [(0, "short"), (110, "b"), (200, "long"), (200, "endless")]
    assert why(lines, "endless") == "blue booked it in 100 s. Use --time-limit 100s or less."


def test_the_booking_tenant_can_start_work_that_runs_into_its_window() -> None:
    lines = run(
        [
            {"name": "b", "tenant": "blue", "workers": 8, "duration": 150},
            {"name": "r", "tenant": "red", "submit": 1, "workers": 8, "duration": 10, "time_limit": 10},
        ],
        [RED, {"name": "blue"}],
        bookings=BOOKED,
    )
    assert when(lines, "started") == [(0, "b"), (200, "r")]


def test_work_fits_beside_a_window_that_books_only_a_part() -> None:
    lines = run(
        [{"name": "r", "tenant": "red", "count": 2, "workers": 4, "duration": 300}],
        [RED, {"name": "blue"}],
        bookings=[{**BOOKED[0], "amount": {"cpu": 4}}],
    )
    assert when(lines, "started") == [(0, "r-0"), (200, "r-1")]


def test_a_start_that_only_a_closing_window_allows_is_foretold() -> None:
    lines = run(
        [{"name": "r", "tenant": "red", "submit": 120, "workers": 8, "duration": 10, "time_limit": 10}],
        [RED, {"name": "blue"}],
        bookings=BOOKED,
    )
    waiting = next(line for line in lines if line["event"] == "waiting")
    assert waiting["expected_start"] == 200
    assert when(lines, "started") == [(200, "r")]


amounts = st.integers(0, 6)
steps = st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 4), st.booleans()), max_size=20)


@given(st.integers(0, 12), st.dictionaries(st.sampled_from("ab"), amounts), steps)
def test_nobody_is_ever_refused_what_is_kept_for_it(capacity: int, kept: dict[str, int], moves: Any) -> None:
    if sum(kept.values()) > capacity:
        return
    reserve = ReservedCapacity({"cpu": capacity}, {t: {"cpu": v} for t, v in kept.items()}, {})
    used = dict.fromkeys("abc", 0)
    for who, amount, gives_back in moves:
        room = reserve.room(who, "cpu")
        if gives_back:
            given_up = min(amount, used[who])
            reserve.charge(who, {"cpu": given_up}, -1)
            used[who] -= given_up
        elif any(kept.values()) and room is not None and amount <= room:
            reserve.charge(who, {"cpu": amount})
            used[who] += amount
        rebuilt = ReservedCapacity(
            {"cpu": capacity},
            {t: {"cpu": v} for t, v in kept.items()},
            {t: {"cpu": v} for t, v in used.items()},
        )
        for t in "abc":
            assert reserve.room(t, "cpu") == rebuilt.room(t, "cpu")
            if any(kept.values()):
                assert (reserve.room(t, "cpu") or 0) >= kept.get(t, 0) - used[t]
        assert not any(kept.values()) or sum(max(used[t], kept.get(t, 0)) for t in "abc") <= capacity


def test_a_window_opens_also_where_a_job_ends_in_the_same_moment() -> None:
    teams = (tenant("red", cpu=4), tenant("blue", cpu=4))
    s = snapshot(tenants=teams, running=(runs(job("x"), "n"),))
    core = Core.from_snapshot(
        replace(s, bookings=(CapacityWindow("blue", 50.0, 500.0, Quota(cpu=4000)),)), 0.0
    )
    core.plan(0.0)
    core.end("x", 60.0)
    assert core.next_wake() == 50.0
    core.submit(job("late", at=60.0))
    assert [type(d) for d in core.plan(60.0)] == [Wait]
    assert core.next_wake() == 500.0
    assert [d.uid for d in core.plan(500.0) if isinstance(d, Admit)] == ["late"]
