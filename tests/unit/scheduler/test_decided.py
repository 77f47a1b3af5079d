"""What stands behind decisions: other places, whom a job could have stopped, and why not the others."""

from __future__ import annotations

from typing import Any

from mlp_hub.domain.resources import Quota
from mlp_hub.scheduler.core import Core, plan_cycle
from mlp_hub.scheduler.decided import MOST_CANDIDATES, MOST_PLACES, Explained, explain_decisions
from mlp_hub.scheduler.model import RunningJob, Snapshot
from scheduler_builders import job, node, runs, snapshot, tenant


def explained(s: Snapshot, now: float = 0.0) -> list[Explained]:
    return explain_decisions(Core.of(s, now), plan_cycle(s, now), now)


def test_an_admission_names_its_nodes_and_the_next_best_ones() -> None:
    nodes = tuple(node(f"n-{i}", cpu=4 + i) for i in range(8))
    (told,) = explained(snapshot(job("a", workers=2), nodes=nodes))
    chosen = [p for p in told.places if p.chosen]
    assert [(p.node, p.ranks, p.free_after.cpu) for p in chosen] == [("n-0", 2, 2000)]
    assert len(told.places) == 1 + MOST_PLACES
    assert all(chosen[0].score <= p.score for p in told.places)
    assert not told.only
    assert told.share == 0.0


def test_the_only_place_is_told_as_such_and_each_step_sees_the_one_before() -> None:
    first, second = explained(snapshot(job("a", workers=3), job("b", at=1.0)))
    assert (first.only, second.only) == (True, True)
    assert (first.alone, second.alone) == (True, True)
    assert second.places[0].free_after.cpu == 0
    assert second.share == 0.75


def test_a_gang_over_nodes_tells_of_all_of_them() -> None:
    nodes = (node("n-0"), node("n-1"), node("n-2"))
    (told,) = explained(snapshot(job("a", workers=6), nodes=nodes))
    assert sum(p.ranks for p in told.places if p.chosen) == 6
    assert [p.node for p in told.places if not p.chosen] == ["n-2"]


def test_a_preemption_tells_what_each_candidate_would_have_cost_and_who_was_out_of_reach() -> None:
    running = (
        runs(job("cheap", priority=50), "n", since=90.0),
        runs(job("dear", priority=50), "n", since=0.0),
        runs(job("equal", priority=200), "n", since=0.0),
        runs(job("fixed", priority=50, preemptible=False), "n", since=0.0),
    )
    told = explained(snapshot(job("urgent", priority=200, at=95.0), running=running), now=100.0)
    stopped = next(e for e in told if e.kind == "preempted")
    assert (stopped.uid, stopped.for_uid) == ("cheap", "urgent")
    assert [(c.uid, c.cost, c.chosen) for c in stopped.candidates] == [
        ("cheap", 10.0, True),
        ("dear", 100.0, False),
    ]
    assert stopped.candidates[1].why == "more work would have been lost"
    assert stopped.spared == (("has no lower priority", 1), ("may not be preempted", 1))
    admitted = next(e for e in told if e.kind == "admitted")
    assert [c.uid for c in admitted.candidates] == ["cheap"]


def test_what_had_not_run_long_enough_to_be_stopped_is_told() -> None:
    running = (
        *(runs(job(f"old-{i}", priority=50), "n", since=0.0) for i in range(3)),
        runs(job("young", priority=50), "n", since=90.0),
    )
    urgent = job("urgent", priority=200, at=95.0)
    told = explained(snapshot(urgent, running=running, min_run_s=30.0), now=100.0)
    stopped = next(e for e in told if e.kind == "preempted")
    assert {c.uid: c.why for c in stopped.candidates}["young"] == (
        "it had not run for 30 s yet; nothing is stopped before that"
    )


def test_who_is_inside_its_quota_is_told_to_be_safe_and_who_borrows_to_be_over() -> None:
    tenants = (
        tenant("red", cpu=2, cohort="lab"),
        tenant("blue", cpu=2, cohort="lab"),
        tenant("green", cpu=0, cohort="lab", borrowing_limit=Quota(cpu=0)),
    )
    running = (
        runs(job("own", workers=2, tenant="red"), "n", "n"),
        runs(job("lent", workers=2, tenant="red"), "n", "n"),
    )
    told = explained(snapshot(job("back", workers=2, tenant="blue"), tenants=tenants, running=running), 10.0)
    stopped = [e for e in told if e.kind == "preempted"]
    assert len(stopped) == 1
    assert all(c.over_nominal for c in stopped[0].candidates)


def test_many_candidates_are_told_in_part() -> None:
    running = tuple(runs(job(f"j-{i:02}", priority=50), "n", since=float(i)) for i in range(40))
    s = snapshot(job("urgent", priority=200, at=99.0), nodes=(node(cpu=40),), running=running)
    stopped = next(e for e in explained(s, 100.0) if e.kind == "preempted")
    assert len(stopped.candidates) == 1 + MOST_CANDIDATES


def elastic(name: str, *nodes: str, **more: Any) -> RunningJob:
    return runs(job(name, workers=1, workers_max=4, **more), *nodes)


def test_a_resize_is_told_with_for_whom_what_it_loses_and_who_else_there_was() -> None:
    running = (
        elastic("wide", "n", "n", "n"),
        runs(job("low", priority=50), "n", since=4.0),
    )
    told = explained(snapshot(job("a", at=5.0, workers=2, priority=200), running=running), 10.0)
    shrunk, admitted = told
    assert (shrunk.uid, shrunk.kind, shrunk.for_uid, shrunk.was) == ("wide", "resized", "a", 3)
    assert [(c.uid, c.gives, c.chosen, c.cost) for c in shrunk.candidates] == [
        ("low", 0, False, 6.0),
        ("wide", 2, True, 30.0),
    ]
    assert [c.why for c in shrunk.candidates] == [
        "no job had to be stopped: the workers that elastic jobs give up are enough",
        "extra workers of elastic jobs go before any job is stopped, and its least is 1",
    ]
    assert [(p.node, p.ranks, p.free_after.cpu) for p in shrunk.places] == [("n", 1, 2000)]
    assert (admitted.uid, admitted.kind, admitted.size) == ("a", "admitted", "")
    assert [(c.uid, c.gives) for c in admitted.candidates] == [("wide", 2)]


def test_who_is_stopped_and_who_gives_up_workers_for_one_job_are_told_apart() -> None:
    running = (elastic("wide", "n", "n"), runs(job("low", workers=2, priority=50), "n", "n"))
    told = explained(snapshot(job("a", at=5.0, workers=3, priority=200), running=running), 10.0)
    assert {(e.uid, e.kind) for e in told} == {("wide", "resized"), ("low", "preempted"), ("a", "admitted")}
    admitted = next(e for e in told if e.kind == "admitted")
    assert {(c.uid, c.gives) for c in admitted.candidates} == {("wide", 1), ("low", 0)}


def test_an_elastic_job_that_had_not_run_long_enough_or_was_not_needed_is_told_as_that() -> None:
    running = (
        elastic("late", "n"),
        runs(job("old", workers=1, workers_max=4), "n", "n", since=0.0),
        runs(job("young", workers=1, workers_max=4), "n", "n", since=9.0),
        runs(job("spare", workers=1, workers_max=4, priority=150), "n", "n", since=0.0),
    )
    s = snapshot(job("a", at=5.0, priority=200), nodes=(node(cpu=7),), running=running, min_run_s=5.0)
    shrunk, _ = explained(s, 10.0)
    assert shrunk.uid == "old"
    whys = {c.uid: c.why for c in shrunk.candidates}
    assert whys["young"] == "it had not run for 5 s yet; nothing is stopped before that"
    assert whys["spare"].startswith("no job had to be stopped")


def test_a_growth_is_told_with_where_and_why_no_more() -> None:
    nodes = (node("n", cpu=2), node("m", cpu=2), node("o", cpu=1))
    (told,) = explained(snapshot(nodes=nodes, running=(elastic("wide", "n"),)), 10.0)
    assert (told.uid, told.kind, told.for_uid, told.was) == ("wide", "resized", None, 1)
    assert told.size == "with 4 workers, its most"
    assert sum(p.ranks for p in told.places if p.chosen) == 4
    (small,) = explained(snapshot(nodes=(node(cpu=3),), running=(elastic("wide", "n"),)), 10.0)
    assert small.size == "with 3 of at most 4 workers, since the nodes have no room for one more"
    assert small.only
    poor = snapshot(tenants=(tenant("red", cpu=2),), running=(elastic("wide", "n", tenant="red"),))
    (poor_told,) = explained(poor, 10.0)
    assert poor_told.size == "with 2 of at most 4 workers, since its tenant has no quota for one more"


def test_an_elastic_job_is_admitted_with_the_reason_for_its_size() -> None:
    wide = job("wide", workers=1, workers_max=8)
    (most,) = explained(snapshot(wide, nodes=(node(cpu=9),)))
    assert most.size == "with 8 workers, its most"
    (some,) = explained(snapshot(wide))
    assert some.size == "with 4 of at most 8 workers, since the nodes have no room for one more"
    running = (runs(job("low", priority=50), "n"), runs(job("equal", workers=3, priority=200), "n", "n", "n"))
    urgent = job("urgent", workers=1, workers_max=8, priority=200, at=5.0)
    made = next(
        e
        for e in explained(snapshot(urgent, running=running), 10.0)
        if e.uid == "urgent" and e.kind == "admitted"
    )
    assert made.size == "with 1 of at most 8 workers, since the nodes have no room for one more"


def test_a_job_that_is_shrunk_for_two_is_told_what_each_of_them_gets() -> None:
    two = (job("a", at=5.0, priority=200), job("b", at=6.0, priority=200))
    told = explained(snapshot(*two, running=(elastic("wide", "n", "n", "n", "n"),)), 10.0)
    assert {e.uid: [(c.uid, c.gives) for c in e.candidates] for e in told if e.kind == "admitted"} == {
        "a": [("wide", 1)],
        "b": [("wide", 1)],
    }
    assert {e.was for e in told if e.kind == "resized"} == {4}
