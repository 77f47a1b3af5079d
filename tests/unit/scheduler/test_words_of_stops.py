"""For whom and by what right work is stopped, and until when its own quota is lent out: whole sentences."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mlp_hub.domain.errors import Reason
from mlp_hub.domain.resources import Quota
from mlp_hub.scheduler.core import Core, plan_cycle
from mlp_hub.scheduler.forecast.why import explain, offered
from mlp_hub.scheduler.model.types import CapacityWindow, Preempt, Snapshot, Verdict, Wait
from mlp_hub.scheduler.reasons.verdicts import waits_for_preempted
from mlp_language.message import Message, Moment, Span, TenantRef, msg, msgs
from support.said import job_ref, named, who
from support.scheduler.scheduler_builders import job, node, runs, snapshot, tenant

TEAMS = (tenant("red", cpu=3, cohort="main"), tenant("blue", cpu=3, cohort="main"))


def stops(s: Snapshot, now: float = 100.0) -> list[Verdict]:
    return [d.verdict for d in plan_cycle(s, now) if isinstance(d, Preempt)]


@pytest.mark.parametrize("priority", [50, 100, 200])
def test_a_reclaiming_stop_is_described_as_such_at_any_priority(priority: int) -> None:
    older, cheap = (
        runs(job("older", workers=3), *["n"] * 3),
        runs(job("cheap", workers=2), *["n"] * 2, since=50.0),
    )
    own = job("own", workers=2, tenant="blue", user="bob", at=60.0, priority=priority)
    (stop,) = stops(snapshot(own, tenants=TEAMS, nodes=(node(cpu=6),), running=(older, cheap)))
    assert stop.headline == msg(
        "Stopped for {job}: {right}.",
        job=job_ref("own", "bob", "blue"),
        right=msg(
            "{tenant} takes back what {other} borrowed", tenant=TenantRef("blue"), other=TenantRef("red")
        ),
    )


@pytest.mark.parametrize(("mine", "theirs"), [(200, 100), (100, 50), (170, 7)])
def test_whom_a_higher_priority_stops_is_told_both(mine: int, theirs: int) -> None:
    low = runs(job("low", workers=4, priority=theirs), *["n"] * 4)
    (stop,) = stops(snapshot(job("urgent", workers=2, priority=mine), running=(low,)))
    assert stop.headline.args["right"] == msg("its priority is higher")
    assert (stop.numbers["preemptor_priority"], stop.numbers["priority"]) == (mine, theirs)


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


def test_a_tenant_whose_quota_is_lent_out_sees_from_whom_it_returns_and_when() -> None:
    s = lent_out(now=100.0)
    core = Core.from_snapshot(s, 100.0)
    core.plan(100.0)
    for now, comes in ((None, 110.0), (107.0, 110.0), (110.0, None)):  # no cycle in between
        wait = core.verdict("own", now)
        assert wait is not None
        assert wait.verdict.reason is Reason.WAITING_FOR_QUOTA
        n = wait.verdict.numbers
        assert (n["cpu_asked"], n["cpu_nominal"], n["cpu_limit"], n["cpu_lent"], n["cpu_free"]) == (
            2,
            3,
            6,
            2,
            1,
        )
        assert who(wait.verdict, "cpu_others") == "red (5)"
        way = wait.verdict.headline.args["way"]
        assert isinstance(way, Message)
        assert named(way) == ["red"]
        at = way.args["at"]
        assert isinstance(at, Moment)
        assert at.at == (comes or 110.0)


def test_its_expected_start_is_when_the_first_of_them_has_run_long_enough() -> None:
    why = explain(lent_out(now=100.0), "own", 100.0)
    assert (why.expected_start, named(why.expected_because)) == (110.0, ["older"])
    assert why.expected_because.args["least"] == Span(30)


def test_a_request_above_its_quota_is_not_promised_any_returning_quota() -> None:
    (wait,) = plan_cycle(lent_out(now=100.0, asks=4), 100.0)
    assert isinstance(wait, Wait)
    assert wait.verdict.headline.args["way"] == msg("Others hold it; the job waits until they end.")
    assert wait.verdict.numbers["cpu_asked"] == 4


def test_a_job_that_needs_nodes_shows_when_others_may_be_stopped_for_it() -> None:
    low = runs(job("low", workers=4, priority=50), *["n"] * 4, since=90.0)
    (wait,) = plan_cycle(snapshot(job("urgent", workers=2), running=(low,), min_run_s=30), 100.0)
    assert isinstance(wait, Wait)
    assert wait.verdict.headline == msgs(
        "Needs {n} rank at once, {fitting} fit now. {way}",
        "Needs {n} ranks at once, {fitting} fit now. {way}",
        n=2,
        fitting=0,
        way=msg("Other jobs can be stopped {at}.", at=Moment(120.0, 100.0)),
    )
    free = next(f for f in wait.verdict.facts if f.key == "free_on")
    assert str(msg("{free}", free=free.value)) == "n: 7792 MiB ram"


def test_holdings_of_others_are_shown_whole_if_only_a_part_of_them_matters() -> None:
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
    n = wait.verdict.numbers
    assert (n["cpu_limit"], n["cpu_inuse"], n["cpu_others"], n["cpu_lent"], n["cpu_free"]) == (
        3.5, 0.7, 2.7, 2.2, 0.1
    )  # fmt: skip
    assert who(wait.verdict, "cpu_others") == "blue (5.2)"


def test_holdings_of_several_are_shown_as_one_sum_if_only_a_part_of_them_matters() -> None:
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
    n = wait.verdict.numbers
    assert (n["cpu_limit"], n["cpu_others"], n["cpu_lent"], n["cpu_free"]) == (7, 6, 2, 1)
    assert who(wait.verdict, "cpu_others") == "blue (5) and green (3)"


def test_a_window_that_opens_while_others_are_stopped_is_not_all_that_is_told() -> None:
    teams = (tenant("red", cpu=2, cohort="main"), tenant("blue", cpu=4, cohort="main"))
    theirs = runs(job("theirs", workers=3, tenant="red"), "n", "n", "n")
    s = snapshot(
        job("own", workers=4, tenant="blue", user="bob"), tenants=teams, running=(theirs,), min_run_s=30
    )
    s = replace(s, bookings=(CapacityWindow("blue", 30.0, 500.0, Quota(cpu=1000), "demo"),))
    why = explain(s, "own", 10.0)
    assert (why.expected_start, named(why.expected_because)) == (30.0, ["blue", "theirs"])


def test_a_start_that_needs_an_ending_job_and_released_workers_names_both() -> None:
    busy = runs(job("busy", workers=2, preemptible=False), "n", "n", until=50.0)
    wide = runs(job("wide", workers=1, workers_max=2, user="eve"), "n", "n")
    why = explain(snapshot(job("a", workers=3, priority=200), running=(busy, wide)), "a", 0.0)
    assert why.expected_start is not None
    assert named(why.expected_because) == ["busy", "wide"]


def test_a_job_stopped_for_another_is_described_as_stopped_for_it() -> None:
    low, other = job_ref("low"), job_ref("b", "bob", "blue")
    for_it = waits_for_preempted([low, other], ("low", "b"), for_it=True)
    assert for_it.headline == msg("Waits for the end of {jobs}, stopped for it.", jobs=(low, other))
    assert waits_for_preempted([low], ("low",)).headline == msg("Waits for the end of {jobs}.", jobs=(low,))
    assert waits_for_preempted([], ()).headline == msg("Waits for room that is made for it.")


def test_an_immediate_start_names_the_jobs_that_give_way() -> None:
    wide = runs(job("wide", workers=1, workers_max=3, user="eve", priority=50), "n", "n", "n")
    low = runs(job("low", priority=50), "n")
    core = Core.from_snapshot(snapshot(running=(wide, low)), 100.0)
    why, start = offered(core, job("urgent", workers=3, priority=200), 100.0)
    assert start is not None
    assert [(named(m), m.args.get("n")) for m in why.gives_way] == [(["wide"], 2), (["low"], None)]
    assert why.expected_because.args["gives_way"] == why.gives_way
    assert offered(Core.from_snapshot(snapshot(), 0.0), job("a"), 0.0)[0].gives_way == ()


def test_recorded_times_on_a_hub_are_times_of_day_since_they_are_read_later() -> None:
    now = 1_900_000_000.0
    low = runs(job("low", workers=4, priority=50), *["n"] * 4, since=now - 10)
    (wait,) = plan_cycle(snapshot(job("urgent", workers=2), running=(low,), min_run_s=30), now)
    assert isinstance(wait, Wait)
    way = wait.verdict.headline.args["way"]
    assert isinstance(way, Message)
    assert str(way) == "Other jobs can be stopped at 17:47:00 UTC."
