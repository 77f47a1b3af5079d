"""What the cycle records of its decisions: whom a job passed, other places, whom it could have stopped, and why not the others."""

from __future__ import annotations

from typing import Any

from mlp_hub.domain.errors import Reason
from mlp_hub.domain.resources import Quota
from mlp_hub.scheduler.cache.news import NodeNews
from mlp_hub.scheduler.core import Core
from mlp_hub.scheduler.cycle.grounds import Grounds, Limit, Workers
from mlp_hub.scheduler.cycle.nominate import MOST_PASSED
from mlp_hub.scheduler.model.types import Admit, AdmittedWorkload, Preempt, Snapshot, Wait
from mlp_hub.scheduler.nodes.compared import MOST_PLACES, NodeChoice
from mlp_hub.scheduler.preemption.choice import MOST_CANDIDATES, Candidate, Outcome, Right
from mlp_hub.scheduler.preemption.eligibility import Spared
from support.scheduler.scheduler_builders import job, node, runs, snapshot, tenant


def decided(s: Snapshot, now: float = 0.0) -> dict[str, Grounds]:
    """Return the grounds of one plan, by job, in its order."""
    core = Core.from_snapshot(s, now)
    plan = core.plan(now)
    acts = dict.fromkeys(d.uid for d in plan if not isinstance(d, Wait))
    assert acts.keys() == core.grounds.keys()
    return {uid: core.grounds[uid] for uid in acts}


def places(g: Grounds) -> tuple[NodeChoice, ...]:
    assert g.placed is not None
    return g.placed.nodes


def free(g: Grounds) -> list[tuple[str, int, int]]:
    """Return the chosen nodes: name, ranks, cpu that is free after that."""
    return [(p.node, p.ranks, p.free_after(g.job.per_worker).cpu) for p in places(g) if p.chosen]


def candidates(g: Grounds) -> tuple[Candidate, ...]:
    assert g.choice is not None
    return g.choice.candidates


def test_an_admission_names_its_nodes_and_the_next_best_ones() -> None:
    nodes = tuple(node(f"n-{i}", cpu=4 + i) for i in range(8))
    told = decided(snapshot(job("a", workers=2), nodes=nodes))["a"]
    assert free(told) == [("n-0", 2, 2000)]
    assert len(places(told)) == 1 + MOST_PLACES
    assert all(places(told)[0].score <= p.score for p in places(told))
    assert told.placed is not None
    assert (told.placed.rule, told.placed.only) == ("fgd", False)
    assert told.share == 0.0


def test_the_only_place_is_told_as_such_and_each_step_sees_the_one_before() -> None:
    told = decided(snapshot(job("a", workers=3), job("b", at=1.0)))
    for g in told.values():
        assert g.placed is not None
        assert (g.placed.only, g.placed.alone) == (True, True)
    assert free(told["b"]) == [("n", 1, 0)]
    assert told["b"].share == 0.75


def test_the_decision_about_a_gang_lists_all_its_nodes() -> None:
    nodes = (node("n-0"), node("n-1"), node("n-2"))
    told = decided(snapshot(job("a", workers=6), nodes=nodes))["a"]
    assert sum(p.ranks for p in places(told) if p.chosen) == 6
    assert [p.node for p in places(told) if not p.chosen] == ["n-2"]


def test_a_gang_that_has_to_stay_in_one_rack_names_no_places_that_nobody_compared() -> None:
    nodes = tuple(node(f"n-{i}", cpu=1, labels={"rack": f"r-{i % 2}"}) for i in range(4))
    told = decided(snapshot(job("a", workers=2, topology="same-rack"), nodes=nodes))["a"]
    assert told.placed is not None
    assert not told.placed.compared
    assert not told.placed.only
    assert all(p.chosen for p in places(told))


def test_an_admission_names_the_first_of_those_it_passed_and_why_they_did_not_start() -> None:
    tenants = (tenant("red", cpu=2), tenant("blue"))
    large = job("large", workers=9, tenant="blue", at=0.0)
    poor = job("poor", workers=3, tenant="red", at=1.0)
    told = decided(snapshot(poor, large, job("small", tenant="red", at=2.0), tenants=tenants))["small"]
    assert {(j.uid, why) for j, why in told.passed.first} == {
        ("poor", Reason.WAITING_FOR_QUOTA),
        ("large", Reason.WAITING_FOR_RESOURCES),
    }
    assert told.passed.count == 2
    assert told.order == "priority"


def test_of_many_that_were_passed_the_first_are_named_and_all_are_counted() -> None:
    large = [job(f"large-{i}", workers=20 + i, at=float(i)) for i in range(MOST_PASSED + 3)]
    told = decided(snapshot(*large, job("small", at=99.0, time_limit=5.0)))["small"]
    assert [j.uid for j, _ in told.passed.first] == [f"large-{i}" for i in range(MOST_PASSED)]
    assert told.passed.count == MOST_PASSED + 3


def test_events_since_the_last_cycle_are_recorded_with_the_decision_that_follows() -> None:
    core = Core.from_snapshot(snapshot(job("a", workers=6), running=(runs(job("done"), "n"),)), 0.0)
    core.plan(0.0)
    assert core.grounds == {}
    core.end("done", 1.0)
    core.add_node(node("m"))
    core.set_tenant(tenant(cpu=99))
    core.plan(1.0)
    news = core.grounds["a"].news
    assert news.complete
    assert list(news.ended) == ["done"]
    assert news.nodes == {"m": NodeNews.NEW}
    assert list(news.tenants) == ["red"]
    core.submit(job("b", at=2.0))
    core.plan(2.0)
    assert not core.grounds["b"].news.ended


def test_a_server_that_has_its_room_is_not_told_to_have_ended() -> None:
    core = Core.from_snapshot(
        snapshot(job("a", workers=6), running=(runs(job("s", kind="server"), "n"),)), 0.0
    )
    core.plan(0.0)
    core.end("s", 1.0)
    core.add_node(node("m"))
    core.plan(1.0)
    assert not core.grounds["a"].news.ended


def test_a_preemption_tells_what_each_candidate_would_have_cost_and_who_was_out_of_reach() -> None:
    running = (
        runs(job("cheap", priority=50), "n", since=90.0),
        runs(job("dear", priority=50), "n", since=0.0),
        runs(job("equal", priority=200), "n", since=0.0),
        runs(job("fixed", priority=50, preemptible=False), "n", since=0.0),
    )
    told = decided(snapshot(job("urgent", priority=200, at=95.0), running=running), now=100.0)
    stopped = told["cheap"]
    assert stopped.heir is not None
    assert stopped.heir.uid == "urgent"
    assert [(c.job.uid, c.cost, c.outcome, c.right) for c in candidates(stopped)] == [
        ("cheap", 10.0, Outcome.STOPPED, Right.PRIORITY),
        ("dear", 100.0, Outcome.DEARER, None),
    ]
    assert stopped.choice is not None
    assert stopped.choice.spared == ((Spared.NOT_PREEMPTIBLE, 1), (Spared.PRIORITY, 1))
    assert told["urgent"].choice is stopped.choice


def test_jobs_below_the_minimum_runtime_are_recorded_as_too_young_to_stop() -> None:
    running = (
        *(runs(job(f"old-{i}", priority=50), "n", since=0.0) for i in range(3)),
        runs(job("young", priority=50), "n", since=90.0),
    )
    urgent = job("urgent", priority=200, at=95.0)
    choice = decided(snapshot(urgent, running=running, min_run_s=30.0), now=100.0)["urgent"].choice
    assert choice is not None
    young = choice.finding_of("young")
    assert young is not None
    assert (young.outcome, choice.min_run_s) == (Outcome.TOO_YOUNG, 30.0)


def test_jobs_inside_their_quota_are_recorded_as_safe_and_borrowing_ones_as_over() -> None:
    tenants = (
        tenant("red", cpu=2, cohort="lab"),
        tenant("blue", cpu=2, cohort="lab"),
        tenant("green", cpu=0, cohort="lab", borrowing_limit=Quota(cpu=0)),
    )
    running = (
        runs(job("own", workers=2, tenant="red"), "n", "n"),
        runs(job("lent", workers=2, tenant="red"), "n", "n"),
    )
    told = decided(snapshot(job("back", workers=2, tenant="blue"), tenants=tenants, running=running), 10.0)
    (chosen,) = [c for c in candidates(told["back"]) if c.chosen]
    assert chosen.right is Right.RECLAIM
    assert all(c.over_nominal for c in candidates(told["back"]))


def test_jobs_inside_the_quota_of_another_tenant_are_counted_as_spared() -> None:
    tenants = (tenant("red", cpu=2), tenant("blue", cpu=2))
    running = (
        runs(job("safe", workers=2, tenant="red", priority=50), "n", "n"),
        runs(job("own", workers=2, tenant="blue", priority=50), "n", "n"),
    )
    s = snapshot(job("a", tenant="blue", priority=200, at=5.0), tenants=tenants, running=running)
    choice = decided(s, 10.0)["a"].choice
    assert choice is not None
    assert [c.job.uid for c in choice.candidates] == ["own"]
    assert choice.spared == ((Spared.INSIDE_QUOTA, 1),)


def test_many_candidates_are_told_in_part() -> None:
    running = tuple(runs(job(f"j-{i:02}", priority=50), "n", since=float(i)) for i in range(40))
    s = snapshot(job("urgent", priority=200, at=99.0), nodes=(node(cpu=40),), running=running)
    assert len(candidates(decided(s, 100.0)["urgent"])) == 1 + MOST_CANDIDATES


def elastic(name: str, *nodes: str, **more: Any) -> AdmittedWorkload:
    return runs(job(name, workers=1, workers_max=4, **more), *nodes)


def test_a_resize_is_told_with_for_whom_what_it_loses_and_who_else_there_was() -> None:
    running = (
        elastic("wide", "n", "n", "n"),
        runs(job("low", priority=50), "n", since=4.0),
    )
    told = decided(snapshot(job("a", at=5.0, workers=2, priority=200), running=running), 10.0)
    shrunk, admitted = told["wide"], told["a"]
    assert shrunk.heir is not None
    assert (shrunk.heir.uid, shrunk.was) == ("a", 3)
    assert [(c.job.uid, c.gives, c.cost, c.outcome, c.right) for c in candidates(shrunk)] == [
        ("low", 0, 6.0, Outcome.NONE_STOPPED, None),
        ("wide", 2, 30.0, Outcome.SHRUNK, Right.EXTRA),
    ]
    assert free(shrunk) == [("n", 1, 2000)]
    assert (admitted.heir, admitted.workers) == (None, None)
    assert admitted.choice is shrunk.choice


def test_stopped_jobs_and_jobs_that_give_up_workers_are_recorded_separately() -> None:
    running = (elastic("wide", "n", "n"), runs(job("low", workers=2, priority=50), "n", "n"))
    told = decided(snapshot(job("a", at=5.0, workers=3, priority=200), running=running), 10.0)
    assert set(told) == {"wide", "low", "a"}
    assert {(c.job.uid, c.gives, c.right) for c in candidates(told["a"])} == {
        ("wide", 1, Right.EXTRA),
        ("low", 0, Right.PRIORITY),
    }


def test_an_elastic_job_that_had_not_run_long_enough_or_was_not_needed_is_told_as_that() -> None:
    running = (
        elastic("late", "n"),
        runs(job("old", workers=1, workers_max=4), "n", "n", since=0.0),
        runs(job("young", workers=1, workers_max=4), "n", "n", since=9.0),
        runs(job("spare", workers=1, workers_max=4, priority=150), "n", "n", since=0.0),
    )
    s = snapshot(job("a", at=5.0, priority=200), nodes=(node(cpu=7),), running=running, min_run_s=5.0)
    found = {c.job.uid: c.outcome for c in candidates(decided(s, 10.0)["old"])}
    assert found["young"] is Outcome.TOO_YOUNG
    assert found["spare"] is Outcome.NONE_STOPPED


def test_a_growth_is_told_with_where_and_why_no_more() -> None:
    nodes = (node("n", cpu=2), node("m", cpu=2), node("o", cpu=1))
    told = decided(snapshot(nodes=nodes, running=(elastic("wide", "n"),)), 10.0)["wide"]
    assert (told.heir, told.was) == (None, 1)
    assert told.workers == Workers(4, 4, Limit.MOST)
    assert sorted(free(told)) == [("m", 2, 0), ("n", 2, 0)]
    small = decided(snapshot(nodes=(node(cpu=3),), running=(elastic("wide", "n"),)), 10.0)["wide"]
    assert small.workers == Workers(3, 4, Limit.NODES)
    assert small.placed is not None
    assert small.placed.only
    poor = snapshot(tenants=(tenant("red", cpu=2),), running=(elastic("wide", "n", tenant="red"),))
    assert decided(poor, 10.0)["wide"].workers == Workers(2, 4, Limit.QUOTA)


def test_an_elastic_job_is_admitted_with_the_reason_for_its_size() -> None:
    wide = job("wide", workers=1, workers_max=8)
    assert decided(snapshot(wide, nodes=(node(cpu=9),)))["wide"].workers == Workers(8, 8, Limit.MOST)
    assert decided(snapshot(wide))["wide"].workers == Workers(4, 8, Limit.NODES)
    running = (runs(job("low", priority=50), "n"), runs(job("equal", workers=3, priority=200), "n", "n", "n"))
    urgent = job("urgent", workers=1, workers_max=8, priority=200, at=5.0)
    made = decided(snapshot(urgent, running=running), 10.0)["urgent"]
    assert made.workers == Workers(1, 8, Limit.NODES)


def test_a_job_that_is_shrunk_for_two_is_told_what_each_of_them_gets() -> None:
    two = (job("a", at=5.0, priority=200), job("b", at=6.0, priority=200))
    told = decided(snapshot(*two, running=(elastic("wide", "n", "n", "n", "n"),)), 10.0)
    assert {uid: [(c.job.uid, c.gives) for c in candidates(told[uid])] for uid in "ab"} == {
        "a": [("wide", 1)],
        "b": [("wide", 1)],
    }
    assert told["wide"].was == 4


def test_plans_of_a_forecast_do_not_change_the_grounds_of_the_last_plan() -> None:
    core = Core.from_snapshot(snapshot(job("a")), 0.0)
    plan = core.plan(0.0)
    before = core.grounds
    ahead = core.fork()
    ahead.submit(job("b", at=1.0))
    ahead.plan(1.0)
    assert [d.uid for d in plan if isinstance(d, Admit | Preempt)] == list(core.grounds)
    assert core.grounds is before
