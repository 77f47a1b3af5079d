"""For whom and by what right work is stopped, and until when its own quota is lent out: whole sentences."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mlp_hub.domain.errors import Reason
from mlp_hub.domain.resources import Quota
from mlp_hub.scheduler.core import Core, plan_cycle
from mlp_hub.scheduler.model import Booking, Preempt, Snapshot, Wait
from mlp_hub.scheduler.verdicts import waits_for_preempted
from mlp_hub.scheduler.why import explain, offered
from mlp_hub.scheduler.words import when
from scheduler_builders import job, node, runs, snapshot, tenant

TEAMS = (tenant("red", cpu=3, cohort="main"), tenant("blue", cpu=3, cohort="main"))


def stops(s: Snapshot, now: float = 100.0) -> list[str]:
    return [d.verdict.message for d in plan_cycle(s, now) if isinstance(d, Preempt)]


@pytest.mark.parametrize("priority", [50, 100, 200])
def test_who_takes_back_its_own_is_said_to_do_so_whatever_its_priority(priority: int) -> None:
    older, cheap = (
        runs(job("older", workers=3), *["n"] * 3),
        runs(job("cheap", workers=2), *["n"] * 2, since=50.0),
    )
    own = job("own", workers=2, tenant="blue", user="bob", at=60.0, priority=priority)
    assert stops(snapshot(own, tenants=TEAMS, nodes=(node(cpu=6),), running=(older, cheap))) == [
        "stopped to make room for own of bob in blue: blue takes back what red had borrowed; it keeps its place in the "
        "queue by age"
    ]


@pytest.mark.parametrize(
    ("mine", "theirs", "right"),
    [
        (200, 100, "its priority is high, that of this job normal"),
        (100, 50, "its priority is normal, that of this job low"),
        (170, 7, "its priority is 170, that of this job 7"),
    ],
)
def test_priorities_are_called_by_their_names(mine: int, theirs: int, right: str) -> None:
    low = runs(job("low", workers=4, priority=theirs), *["n"] * 4)
    assert stops(snapshot(job("urgent", workers=2, priority=mine), running=(low,))) == [
        f"stopped to make room for urgent of ann in red: {right}; it keeps its place in the queue by age"
    ]


def lent_out(*, now: float, asks: float = 2.0, reserved: float = 0.0) -> Snapshot:
    """Blue's own is lent to red, whose job runs since `now` - 12."""
    older, cheap = (
        runs(job("older", workers=3), *["n"] * 3),
        runs(job("cheap", cpu=2), "n", since=now - 12.0),
    )
    blue = replace(TEAMS[1], reserved=Quota(cpu=round(reserved * 1000)) if reserved else None)
    own = job("own", cpu=asks, tenant="blue", user="bob", at=now)
    s = snapshot(own, tenants=(TEAMS[0], blue), nodes=(node(cpu=6),), running=(older, cheap), min_run_s=30)
    return replace(s, running=(replace(older, started_at=now - 20.0), cheap))


def test_whose_own_is_lent_out_is_told_from_whom_it_comes_back_and_when() -> None:
    s = lent_out(now=100.0)
    core = Core.of(s, 100.0)
    core.plan(100.0)
    told = "red: jobs of red may be stopped for it once they have run for 30 s, the first in "
    head = (
        "blue may use 6 cpu, 3 of its own and 3 when others leave it idle; 0 in use; 5 held by red, 2 of it lent out of "
        "the quota of blue; 1 free now; this job asks for 2; blue takes back its own from "
    )
    wait = core.verdict("own")
    assert wait is not None
    assert (wait.verdict.reason, wait.verdict.message) == (
        Reason.WAITING_FOR_QUOTA,
        f"{head}{told}10 s",
    )
    later = core.verdict("own", 107.0)  # no cycle in between
    assert later is not None
    assert later.verdict.message == f"{head}{told}3 s"
    due = core.verdict("own", 110.0)
    assert due is not None
    assert due.verdict.message == f"{head}red: jobs of red may be stopped for it once they have run for 30 s"


def test_its_expected_start_is_when_the_first_of_them_has_run_long_enough() -> None:
    why = explain(lent_out(now=100.0), "own", 100.0)
    assert (why.expected_start, why.expected_because) == (
        110.0,
        "job older of ann is stopped for it then; nothing is stopped before it has run for 30 s",
    )


def test_who_asks_for_more_than_its_own_is_told_of_nothing_that_comes_back() -> None:
    (wait,) = plan_cycle(lent_out(now=100.0, asks=4), 100.0)
    assert isinstance(wait, Wait)
    assert wait.verdict.message == (
        "blue may use 6 cpu, 3 of its own and 3 when others leave it idle; 0 in use; 5 held by red, 2 of it lent out of "
        "the quota of blue; 1 free now; this job asks for 4"
    )


def test_who_needs_nodes_is_told_when_others_may_be_stopped_for_it() -> None:
    low = runs(job("low", workers=4, priority=50), *["n"] * 4, since=90.0)
    (wait,) = plan_cycle(snapshot(job("urgent", workers=2), running=(low,), min_run_s=30), 100.0)
    assert isinstance(wait, Wait)
    assert wait.verdict.message == (
        "needs 2 ranks of 1 cpu and 100 MiB ram at once; 0 would fit now; free: n has 7792 MiB ram; jobs may be stopped "
        "for it once they have run for 30 s, the first in 20 s"
    )


def test_what_others_hold_is_told_whole_where_a_part_of_it_is_meant() -> None:
    kept = (
        tenant("red", cpu=3, cohort="main"),
        tenant("blue", cpu=3, cohort="main", reserved=Quota(cpu=2500)),
    )
    theirs, mine = (
        runs(job("theirs", cpu=5.2, tenant="blue", user="bob"), "n"),
        runs(job("mine", cpu=0.7), "n"),
    )
    s = snapshot(job("asked", cpu=3), tenants=kept, nodes=(node(cpu=6),), running=(theirs, mine))
    (wait,) = plan_cycle(s, 0.0)
    assert isinstance(wait, Wait)
    assert wait.verdict.message == (
        "red may use 3.5 cpu, 3 of its own and 0.5 when others leave it idle; 0.7 in use by job mine of ann (0.7); 2.7 of "
        "the 3.5 taken by blue, which holds 5.2, 2.2 of it lent out of the quota of red; 0.1 free now; this job asks for 3"
    )


def test_what_several_hold_is_told_in_one_sum_where_a_part_of_it_is_meant() -> None:
    kept = (
        tenant("red", cpu=3, cohort="main"),
        tenant("blue", cpu=3, cohort="main", reserved=Quota(cpu=2000)),
        tenant("green", cpu=3, cohort="main"),
    )
    running = (
        runs(job("b", cpu=5, tenant="blue", user="bob"), "n"),
        runs(job("g", cpu=3, tenant="green", user="eve"), "n"),
    )
    (wait,) = plan_cycle(
        snapshot(job("asked", cpu=3), tenants=kept, nodes=(node(cpu=9),), running=running, preemption=False),
        0.0,
    )
    assert isinstance(wait, Wait)
    assert wait.verdict.message == (
        "red may use 7 cpu, 3 of its own and 4 when others leave it idle; 0 in use; 6 of the 7 taken by blue and green, "
        "which together hold 8, 2 of it lent out of the quota of red to blue; 1 free now; this job asks for 3"
    )


def test_a_window_that_opens_while_others_are_stopped_is_not_all_that_is_told() -> None:
    teams = (tenant("red", cpu=2, cohort="main"), tenant("blue", cpu=4, cohort="main"))
    theirs = runs(job("theirs", workers=3, tenant="red"), "n", "n", "n")
    s = snapshot(
        job("own", workers=4, tenant="blue", user="bob"), tenants=teams, running=(theirs,), min_run_s=30
    )
    s = replace(s, bookings=(Booking("blue", 30.0, 500.0, Quota(cpu=1000), "demo"),))
    why = explain(s, "own", 10.0)
    assert (why.expected_start, why.expected_because) == (
        30.0,
        "window demo (30 s to 500 s) of blue opens then and job theirs of ann is stopped for it then",
    )


def test_who_starts_as_a_job_ends_and_another_gives_up_workers_is_told_both() -> None:
    busy = runs(job("busy", workers=2, preemptible=False), "n", "n", until=50.0)
    wide = runs(job("wide", workers=1, workers_max=2, user="eve"), "n", "n")
    why = explain(snapshot(job("a", workers=3, priority=200), running=(busy, wide)), "a", 0.0)
    assert why.expected_start is not None
    assert why.expected_because == (
        "job busy of ann ends by then at the latest and job wide of eve gives up workers for it then"
    )


def test_who_is_stopped_for_a_job_is_told_to_be() -> None:
    assert waits_for_preempted(["job low of ann"], ("1",), for_it=True).message == (
        "starts as soon as job low of ann has ended, which is stopped for it"
    )
    assert waits_for_preempted(["job a of ann", "a job of tenant blue"], ("1", "2"), for_it=True).message == (
        "starts as soon as job a of ann and a job of tenant blue have ended, which are stopped for it"
    )
    assert waits_for_preempted(["job low of ann"], ("1",)).message == (
        "starts as soon as job low of ann has ended"
    )
    assert waits_for_preempted([], ()).message == "starts as soon as the room that is made for it is free"


def test_who_starts_now_is_told_who_gives_way_for_it() -> None:
    wide = runs(job("wide", workers=1, workers_max=3, user="eve", priority=50), "n", "n", "n")
    low = runs(job("low", priority=50), "n")
    core = Core.of(snapshot(running=(wide, low)), 100.0)
    why, start = offered(core, job("urgent", workers=3, priority=200), 100.0)
    assert start is not None
    assert why.gives_way == (
        "job wide of eve gives up 2 workers for it",
        "job low of ann is stopped for it and goes back into the queue",
    )
    assert why.expected_because == (
        "it starts as soon as there is room: job wide of eve gives up 2 workers for it and job low of ann is stopped for "
        "it and goes back into the queue"
    )
    assert offered(Core.of(snapshot(), 0.0), job("a"), 0.0)[0].gives_way == ()


def test_on_a_hub_it_is_a_time_of_day_for_what_is_written_down_is_read_later() -> None:
    now = 1_900_000_000.0
    low = runs(job("low", workers=4, priority=50), *["n"] * 4, since=now - 10)
    (wait,) = plan_cycle(snapshot(job("urgent", workers=2), running=(low,), min_run_s=30), now)
    assert isinstance(wait, Wait)
    assert wait.verdict.message.endswith(
        "jobs may be stopped for it once they have run for 30 s, the first at 17:47:00 UTC"
    )
    assert when(now + 86_400, now) == "at 2030-03-18 17:46:40 UTC"
