"""What an administrator is told before a quota is changed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mlp_api.teams.previews import TenantPreview
from mlp_hub.domain.resources import Quota, Resources
from mlp_hub.domain.tenants.tenant import Tenant
from mlp_hub.scheduler.model.types import Snapshot
from mlp_hub.service.tenants.previews import starts
from mlp_hub.service.tenants.previews.preview import preview
from support.scheduler.scheduler_builders import job, node, runs, snapshot, tenant

NOW = 1000.0


def shown(before: Snapshot, cpu: float | None, name: str = "red", **more: Any) -> TenantPreview:
    quota = Quota(cpu=None if cpu is None else round(cpu * 1000))
    return preview(before, Tenant(name, quota, **more), NOW)


def texts(found: TenantPreview) -> list[tuple[str, str]]:
    return [(n.tone, str(n.text)) for n in found.notes]


def holding(name: str, workers: int, *, until: float | None = None, of: str = "red", since: float = 0.0):
    return runs(
        job(name, workers=workers, tenant=of, user=f"{of}s"), *["n"] * workers, since=since, until=until
    )


def cohort(red: float, blue: float, **more: Any):
    return (tenant("red", red, cohort="main", **more), tenant("blue", blue, cohort="main"))


def test_no_change_for_anybody_is_said_too() -> None:
    found = shown(snapshot(tenants=(tenant("red", 4),)), 4)
    assert texts(found) == [
        ("idle", "No running or waiting job is affected: red has no waiting jobs and no running jobs")
    ]
    running = snapshot(nodes=(node(cpu=8),), tenants=(tenant("red", 4),), running=(holding("x", 2),))
    assert texts(shown(running, 3)) == [
        (
            "idle",
            "No running or waiting job is affected: red has no waiting jobs, and its running jobs are inside the quota",
        )
    ]


def test_where_nobody_waits_for_quota_it_says_what_they_wait_for() -> None:
    waiting = (job("a", workers=2, at=400.0), job("b", at=900.0))
    world = snapshot(*waiting, nodes=(node(cpu=2),), tenants=(tenant("red", 8),), running=(holding("x", 2),))
    assert texts(shown(world, 16)) == [
        ("idle", "Nothing changes now: no job of red waits for quota"),
        ("idle", "2 jobs would still wait for room on the nodes: a and b (the longest for 10 min now)"),
    ]


def test_a_requeued_job_is_shown_as_waiting_since_its_return() -> None:
    waiting = (job("a", workers=2, at=400.0, requeued_at=985.0), job("b", at=850.0))
    world = snapshot(*waiting, nodes=(node(cpu=2),), tenants=(tenant("red", 8),), running=(holding("x", 2),))
    found = shown(world, 16)
    assert texts(found)[1] == (
        "idle",
        "2 jobs would still wait for room on the nodes: a and b (the longest for 2.5 min now)",
    )
    assert {w.name: w.since.timestamp() for w in found.waiting} == {"a": 985.0, "b": 850.0}


def test_a_job_with_enough_quota_but_no_room_is_mentioned() -> None:
    world = snapshot(
        job("a", workers=3, at=880.0),
        nodes=(node(cpu=4),),
        tenants=(tenant("red", 4),),
        running=(holding("x", 2),),
    )
    assert texts(shown(world, 8)) == [
        ("wait", "1 job would have the quota, but would then wait for room on the nodes: a"),
    ]


def test_a_job_that_waits_in_vain_and_would_have_enough_quota_is_also_mentioned() -> None:
    world = snapshot(
        job("a", workers=4, at=880.0),
        nodes=(node(cpu=4),),
        tenants=(tenant("red", 3),),
        running=(holding("x", 2),),
    )
    assert texts(shown(world, 8)) == [
        ("wait", "1 job would have the quota, but would then wait for room on the nodes: a"),
    ]


def test_where_the_quota_stays_too_small_its_numbers_are_said() -> None:
    world = snapshot(
        job("a", workers=4, at=880.0),
        nodes=(node(cpu=16),),
        tenants=(tenant("red", 4),),
        running=(holding("x", 2),),
    )
    assert texts(shown(world, 5)) == [
        ("idle", "Nothing changes now: the quota is still too small for 1 waiting job"),
        (
            "idle",
            "1 job would still wait for quota: a (for 2 min now). Of a: Needs 4 cpu, 3 free. "
            "Starts when jobs of red end.",
        ),
    ]


def test_an_elastic_job_that_would_grow_is_named() -> None:
    grown = runs(job("e", workers=1, workers_max=4, tenant="red", user="reds"), "n", since=0.0)
    world = snapshot(nodes=(node(cpu=8),), tenants=(tenant("red", 1),), running=(grown,))
    assert texts(shown(world, 3)) == [("good", "Could grow: job e of reds to 3 workers")]


def test_a_tenant_inside_its_quota_causes_no_alarm_when_another_holds_too_much() -> None:
    # red borrows 3 of blue's 4; with less of its own it is red that is over, and blue's one core is its own
    running = (holding("x", 7), holding("y", 1, of="blue"))
    world = snapshot(nodes=(node(cpu=8),), tenants=cohort(4, 4), running=running)
    found = shown(world, 2, cohort="main")
    assert [(o.tenant, o.inuse, o.may_hold) for o in found.over] == [("red", 7.0, 5.0)]
    assert not [n for n in found.notes if "blue" in str(n.text)]


def test_a_reservation_from_capacity_in_use_by_others_is_shown_without_an_alarm() -> None:
    running = (holding("y", 3, of="blue"),)
    world = snapshot(nodes=(node(cpu=8),), tenants=(tenant("red", 8), tenant("blue", 4)), running=running)
    found = shown(world, 8, reserved=Quota(cpu=6000))
    assert texts(found) == [
        (
            "wait",
            "Team blue is inside its quota; of the 3 cpu in use there, 1 cpu would be kept for others. Running work continues",
        )
    ]


def test_a_larger_quota_names_what_could_start_and_what_asks_for_too_much() -> None:
    waiting = (job("a", workers=2, at=1), job("b", workers=1, at=2), job("c", workers=9, at=3))
    world = snapshot(*waiting, nodes=(node(cpu=16),), tenants=(tenant("red", 1),))
    found = shown(world, 3)
    assert texts(found) == [
        ("good", "1 waiting job could start: a"),
        ("bad", "c could still never start: each asks for more than the whole quota"),
    ]
    assert [(j.user, j.name, j.tenant) for j in found.could_start] == [("ann", "a", "red")]
    assert [(w.name, w.reason, w.since.timestamp()) for w in found.waiting] == [("c", "ExceedsMaxQuota", 3.0)]


def test_a_lower_quota_names_who_could_never_start_any_more_and_calls_that_a_change() -> None:
    world = snapshot(
        job("big", workers=4, at=900.0),
        nodes=(node(cpu=8),),
        tenants=(tenant("red", 8),),
        running=(holding("x", 6),),
    )
    assert ("bad", "big could never start any more: each asks for more than the whole quota") in texts(
        shown(world, 3)
    )
    waits = snapshot(
        job("big", workers=4, at=900.0),
        nodes=(node(cpu=8),),
        tenants=(tenant("red", 5),),
        running=(holding("x", 2),),
    )
    assert texts(shown(waits, 3)) == [
        ("bad", "big could never start any more: each asks for more than the whole quota")
    ]


def test_a_quota_below_its_use_says_until_when_from_the_time_limits() -> None:
    running = (holding("x", 2, until=2000), holding("y", 1, until=1500), holding("z", 1))
    world = snapshot(nodes=(node(cpu=8),), tenants=(tenant("red", 4),), running=running)
    found = shown(world, 1)
    assert texts(found) == [
        ("bad", "4 cpu in use, 3 cpu above the new quota"),
        (
            "idle",
            "3 running jobs continue; the change stops nothing, and nothing new starts until enough is given back",
        ),
    ]
    assert (found.back_inside.timestamp(), str(found.back_inside_because)) == (
        2000.0,
        "job x of reds ends by then at the latest",
    )
    assert shown(world, 2.5).back_inside.timestamp() == 2000.0
    assert shown(world, 3).back_inside.timestamp() == 1500.0
    endless = shown(world, 0.5)
    assert (endless.back_inside, str(endless.back_inside_because)) == (
        None,
        "no time can be estimated: job z of reds has no time limit",
    )


def test_resources_of_notebooks_have_no_predictable_end() -> None:
    held = tenant("red", 4, used=Resources(cpu=2000), others=("ann's notebook",))
    found = shown(snapshot(tenants=(held,)), 1)
    assert (
        str(found.back_inside_because)
        == "no time can be estimated: ann's notebook ends only when somebody ends it"
    )


def test_those_who_would_have_their_own_taken_back_are_named_with_the_job_that_waits_for_it() -> None:
    # red holds 6 of its 6; with 2 of its own blue's waiting job takes back
    running = (holding("old", 3, since=0), holding("new", 3, since=900))
    waiting = job("w", workers=2, tenant="blue", user="bob", at=5)
    world = snapshot(waiting, nodes=(node(cpu=6),), tenants=cohort(6, 0), running=running)
    assert shown(world, 6, cohort="main").stopped == []
    found = preview(world, Tenant("blue", Quota(cpu=4000), cohort="main"), NOW)
    assert found.stopped == [], "red is inside its own"
    change = snapshot(waiting, nodes=(node(cpu=6),), tenants=cohort(6, 4), running=running)
    found = shown(change, 2, cohort="main")
    assert [(s.name, s.for_name, s.for_tenant, s.shrunk) for s in found.stopped] == [
        ("new", "w", "blue", False)
    ]
    assert ("bad", "job new of reds would be stopped and queued again for job w of bob in blue") in texts(
        found
    )


def test_a_future_borrower_is_announced_and_a_leaving_lender_puts_the_borrower_over_its_limit() -> None:
    running = (holding("x", 3),)
    world = snapshot(nodes=(node(cpu=8),), tenants=cohort(4, 4), running=running)
    assert texts(shown(world, 1, cohort="main")) == [
        ("wait", "2 cpu of its use would be borrowed, and could be taken back")
    ]
    borrowed = snapshot(nodes=(node(cpu=8),), tenants=cohort(4, 4), running=(holding("x", 7),))
    found = preview(borrowed, Tenant("blue", Quota(cpu=4000)), NOW)
    assert [(o.tenant, o.inuse, o.may_hold, o.above) for o in found.over] == [("red", 7.0, 4.0, 3.0)]
    assert texts(found) == [("bad", "Team red: 7 cpu in use, 3 cpu more than it could hold then")]


def test_a_lower_borrowing_limit_counts_like_a_lower_quota() -> None:
    world = snapshot(nodes=(node(cpu=8),), tenants=cohort(4, 4), running=(holding("x", 7),))
    found = shown(world, 4, cohort="main", borrowing_limit=Quota(cpu=1000))
    assert texts(found)[0] == ("bad", "7 cpu in use, 2 cpu more than it could hold then")


@pytest.mark.parametrize("many", [30])
def test_lists_end_and_sentences_count_all(many: int) -> None:
    waiting = [job(f"j{i}", at=float(i)) for i in range(many)]
    world = snapshot(*waiting, nodes=(node(cpu=64),), tenants=(tenant("red", 0),))
    found = shown(world, None)
    assert len(found.could_start) == 20
    assert texts(found) == [("good", f"{many} waiting jobs could start: j0, j1, j2 and 27 more")]


def waits_for_two() -> Snapshot:
    """Blue's job waits until one of green's ends, which is in half an hour, or the other, in two hours."""
    return snapshot(
        job("b", workers=2, tenant="blue", user="bo", at=900.0),
        nodes=(node(cpu=4),),
        tenants=(tenant("red", 4), tenant("blue", 4), tenant("green", 4)),
        running=(
            holding("x", 2, of="green", until=NOW + 1800),
            holding("y", 2, of="green", until=NOW + 7200),
        ),
    )


def test_a_new_reservation_names_the_jobs_whose_expected_start_moves_back() -> None:
    of_use, of_start = texts(shown(waits_for_two(), 4, reserved=Quota(cpu=2000)))
    assert of_use[1].startswith("Team green is inside its quota; of the 4 cpu in use there, 2 cpu would be ")
    assert of_start == ("wait", "1 waiting job would start later: job b of bo in 2 h instead of in 30 min")
    assert texts(shown(waits_for_two(), 4, reserved=Quota(cpu=3000)))[1] == (
        "wait",
        "1 waiting job would start later: job b of bo at an unknown time instead of in 30 min",
    )


def test_a_released_reservation_names_the_jobs_that_are_expected_sooner() -> None:
    world = waits_for_two()
    for cpu, told in (
        (2000, "job b of bo in 30 min instead of in 2 h"),
        (3000, "job b of bo in 30 min; now no time can be estimated"),
    ):
        red = tenant("red", 4, reserved=Quota(cpu=cpu))
        kept = replace(world, tenants=(red, *world.tenants[1:]))
        assert texts(shown(kept, 4)) == [("good", f"1 waiting job would start sooner: {told}")]


def test_of_many_starts_that_move_a_few_are_told_and_all_are_counted() -> None:
    jobs = [
        job(f"b{n}", workers=2, tenant="blue", user="bo", at=900.0 + n, time_limit=3600.0) for n in range(5)
    ]
    many = replace(waits_for_two(), waiting=tuple(jobs))
    assert texts(shown(many, 4, reserved=Quota(cpu=3000)))[1] == (
        "wait",
        "5 waiting jobs would start later: job b0 of bo at an unknown time instead of in 30 min, "
        "job b1 of bo at an unknown time instead of in 90 min, "
        "job b2 of bo at an unknown time instead of in 2 h and 2 more",
    )
    assert texts(shown(many, 4)) == [
        ("idle", "No running or waiting job is affected: red has no waiting jobs and no running jobs")
    ]


def test_a_look_that_had_to_end_early_makes_no_start_vanish(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starts, "MOST_STEPS", 1)
    assert texts(shown(waits_for_two(), 4, reserved=Quota(cpu=2000)))[1:] == []
