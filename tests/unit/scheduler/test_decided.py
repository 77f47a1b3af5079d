"""What stands behind decisions: other places, whom a job could have stopped, and why not the others."""

from __future__ import annotations

from mlp_hub.domain.resources import Quota
from mlp_hub.scheduler.core import Core, plan_cycle
from mlp_hub.scheduler.decided import MOST_CANDIDATES, MOST_PLACES, Explained, explain_decisions
from mlp_hub.scheduler.model import Snapshot
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


def test_a_resize_is_told_with_for_whom() -> None:
    elastic = runs(job("elastic", workers=1, workers_max=4), "n", "n", "n", "n")
    told = explained(snapshot(job("a", at=5.0, priority=200), running=(elastic,)), 10.0)
    assert [(e.uid, e.kind, e.for_uid) for e in told] == [
        ("elastic", "resized", "a"),
        ("a", "admitted", None),
    ]
