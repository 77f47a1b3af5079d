"""Why a job waits and when it starts; and what can never run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mlp_hub.domain.errors import Reason
from mlp_hub.domain.facts import Fact
from mlp_hub.domain.resources import Quota, Resources
from mlp_hub.scheduler.assign.feasible import check_possible
from mlp_hub.scheduler.core import Core
from mlp_hub.scheduler.forecast.smaller_request import Tries
from mlp_hub.scheduler.forecast.why import (
    NEVER,
    NOT_HELD_BY_JOBS,
    explain,
    explain_planned,
    no_time_limit,
    offered,
)
from mlp_hub.scheduler.model.types import CapacityWindow, Node, PendingWorkload, Snapshot, Wait, Why
from mlp_hub.scheduler.nodes.states import GROUP, Shut
from mlp_hub.scheduler.reasons.quota import FactCache
from mlp_hub.scheduler.reasons.verdicts import reason_of, verdict_of
from mlp_language.message import NOTHING, Message, Moment, msg
from support.said import job_ref, named, who
from support.scheduler.scheduler_builders import job, node, runs, snapshot, tenant

TRIED = {
    Reason.WAITING_FOR_QUOTA,
    Reason.WAITING_FOR_RESOURCES,
    Reason.WAITING_FOR_PREEMPTED,
    Reason.RESERVED,
}


def test_the_expected_start_is_when_the_job_in_the_way_must_end() -> None:
    busy = runs(job("busy", workers=3, user="bob"), "n", "n", "n", until=100.0)
    why = explain(snapshot(job("a", workers=4), running=(busy,)), "a", 10.0)
    assert (why.expected_start, named(why.expected_because)) == (100.0, ["busy"])
    assert why.position == 1
    assert why.would_start_now == ("--workers 1", "--cpu 0.2")


def test_without_time_limits_it_says_that_no_time_can_be_told_and_whose() -> None:
    busy = runs(job("busy", workers=4), "n", "n", "n", "n")
    why = explain(snapshot(job("a"), running=(busy,)), "a", 0.0)
    assert why.expected_start is None
    assert why.expected_because == no_time_limit([job_ref("busy")])


def test_the_forecast_counts_those_ahead_in_the_queue() -> None:
    busy = runs(job("busy", workers=4), "n", "n", "n", "n", until=50.0)
    ahead = job("ahead", workers=4, time_limit=30)
    why = explain(snapshot(ahead, job("a", workers=4, at=1.0), running=(busy,)), "a", 0.0)
    assert (why.position, why.queue_length, why.expected_start) == (2, 2, 80.0)


def test_a_job_does_not_wait_in_vain_for_resources_of_a_notebook() -> None:
    s = snapshot(
        job("a", workers=2), tenants=(tenant(cpu=2, used=Resources(cpu=500), others=("bob's notebook",)),)
    )
    why = explain(s, "a", 0.0)
    assert why.expected_start is None
    (verdict,) = why.reasons
    assert (verdict.reason, verdict.numbers["cpu_held"]) == (Reason.WAITING_FOR_QUOTA, 0.5)
    assert (who(verdict, "cpu_inuse"), who(verdict, "cpu_held")) == ("bob's notebook (0.5)", "bob's notebook")
    assert why.expected_because == msg(
        "servers hold the rest; use --workers {n} or {less}", n=1, less="--cpu 0.7"
    )
    assert why.would_start_now == ("--workers 1", "--cpu 0.7")


@pytest.mark.parametrize(
    ("asked", "way"),
    [
        ({"cpu": 2}, msg("Servers hold the rest. Use {less}.", less="--cpu 1.5")),
        ({"cpu": 2, "ram": 2048}, msg("Servers hold the rest. Use {less}.", less="--cpu 1.5 --ram 1024")),
        ({"workers": 3, "cpu": 0.6}, msg("Servers hold the rest. Use --workers {n} or {less}.", n=2, less="--cpu 0.5")),
        ({"workers": 20, "cpu": 0.1}, msg("Servers hold the rest. Use --workers {n}.", n=15)),
    ],
)  # fmt: skip
def test_a_job_that_cannot_start_beside_a_notebook_gets_a_request_that_can(
    asked: dict[str, float], way: Message
) -> None:
    beside = tenant(cpu=2, ram=2048, used=Resources(cpu=500, ram=1024), others=("bob's notebook",))
    (verdict,) = explain(snapshot(job("a", **{"ram": 50, **asked}), tenants=(beside,)), "a", 0.0).reasons
    assert verdict.headline.args["way"] == way


@pytest.mark.parametrize(
    ("servers", "jobs", "way"),
    [
        (0, {"cpu": 4}, "Starts when jobs of red end."),
        (2, {"cpu": 2}, "Starts when jobs or notebook servers of red end."),
        (4, {"cpu": 0, "gpu": 1}, "Starts when notebook servers of red end."),
        (0, {"cpu": 0, "gpu": 1}, "Others hold it; the job waits until they end."),
    ],
)
def test_it_is_told_whether_jobs_or_servers_hold_what_it_waits_for(
    servers: int, jobs: dict[str, float], way: str
) -> None:
    """A job that holds none of it changes nothing by its end."""
    red = tenant(cpu=4, cohort="c", used=Resources(cpu=servers * 1000), others=("bob's notebook",))
    blue = tenant("blue", cpu=1, cohort="c", used=Resources(cpu=1000 if servers or jobs["cpu"] else 5000))
    scene = snapshot(
        job("a"), nodes=(node(cpu=64, gpu=1),), tenants=(red, blue), running=(runs(job("b", **jobs), "n"),)
    )
    (verdict,) = explain(scene, "a", 0.0).reasons
    assert str(verdict.headline.args["way"]) == way


def test_resources_of_apps_are_not_expected_to_be_released() -> None:
    replica = job("r", cpu=4, replica=("lin", 0))
    scene = snapshot(job("a"), nodes=(node(cpu=64),), tenants=(tenant(cpu=4),), running=(runs(replica, "n"),))
    (verdict,) = explain(scene, "a", 0.0).reasons
    assert str(verdict.headline.args["way"]) == "Apps of red hold it: scale one down."


@pytest.mark.parametrize(
    ("asked", "way"),
    [
        (3, "Apps of red hold it: scale one down."),
        (2, "Starts when notebook servers of red end."),
    ],
)
def test_apps_are_named_where_the_end_of_all_else_would_not_be_enough(asked: float, way: str) -> None:
    red = tenant(cpu=4, used=Resources(cpu=1000), others=("bob's notebook",))
    replica = job("r", cpu=2, replica=("lin", 0))
    scene = snapshot(
        job("a", cpu=asked), nodes=(node(cpu=64),), tenants=(red,), running=(runs(replica, "n"),)
    )
    (verdict,) = explain(scene, "a", 0.0).reasons
    assert str(verdict.headline.args["way"]) == way


def test_a_job_that_fits_starts_with_the_next_cycle() -> None:
    assert explain(snapshot(job("a")), "a", 5.0) == Why(
        (),
        None,
        1,
        5.0,
        msg("it fits and starts with the next scheduling cycle"),
        (),
        "sure",
        msg("it fits now"),
    )
    with pytest.raises(KeyError):
        explain(snapshot(), "a", 0.0)


@pytest.mark.parametrize(
    ("limit", "sure", "because"),
    [
        (30.0, "sure", []),
        (None, "likely", ["ahead"]),
    ],
)
def test_it_says_how_sure_the_expected_start_is(limit: float | None, sure: str, because: list[str]) -> None:
    busy = runs(job("busy", workers=4, time_limit=50.0), "n", "n", "n", "n", until=50.0)
    ahead = job("ahead", workers=2, time_limit=limit)
    behind = job("behind", workers=1, at=2.0)
    why = explain(snapshot(ahead, job("a", workers=2, at=1.0), behind, running=(busy,)), "a", 0.0)
    assert why.expected_start is not None
    assert (why.how_sure, named(why.sure_because)) == (sure, because)


def test_where_no_time_can_be_told_nothing_is_sure() -> None:
    busy = runs(job("busy", workers=4), "n", "n", "n", "n")
    why = explain(snapshot(job("a"), running=(busy,)), "a", 0.0)
    assert (why.how_sure, why.sure_because) == ("unknown", why.expected_because)


@pytest.mark.parametrize(
    ("asked", "reason", "numbers", "way"),
    [
        (
            job("a", workers=9),
            Reason.EXCEEDS_MAX_QUOTA,
            {"cpu_asked": 9, "cpu_limit": 6},
            msg("Use --workers {n}.", n=6),
        ),
        (
            job("a", cpu=5),
            Reason.EXCEEDS_MAX_QUOTA,
            {"ranks": 1, "nodes": 2, "cpu_asked": 5, "cpu_limit": 4},
            None,
        ),
        (
            job("a", workers=3, cpu=1, ram=8192),
            Reason.EXCEEDS_MAX_QUOTA,
            {"ranks": 3, "nodes": 2},
            msg("Use --workers {n}.", n=2),
        ),
        (
            job("a", gpu=1, gpu_kind="h100"),
            Reason.NO_MATCHING_FLAVOR,
            {"kinds": 0},
            None,
        ),
        (
            job("a", workers=5, topology="same-node"),
            Reason.TOPOLOGY_PLACEMENT_FAILED,
            {"ranks": 5, "nodes": 2},
            msg("Use --workers {n}.", n=4),
        ),
        (job("a", tenant="blue"), Reason.NOT_FOUND, {}, None),
    ],
)
def test_a_job_that_can_never_run_gets_the_limit_and_the_way_out(
    asked: PendingWorkload, reason: Reason, numbers: dict[str, float], way: Message | None
) -> None:
    s = snapshot(nodes=(node("n-0"), node("n-1")), tenants=(tenant(cpu=6),))
    verdict = check_possible(s, asked)
    assert verdict is not None
    assert (verdict.reason, verdict.numbers, verdict.headline.args.get("way")) == (reason, numbers, way)


def test_a_job_that_only_has_to_wait_is_possible() -> None:
    busy = runs(job("busy", workers=4), "n", "n", "n", "n")
    assert check_possible(snapshot(running=(busy,)), job("a", workers=4)) is None
    assert check_possible(snapshot(nodes=(node(up=False),)), job("a")) is None


def crowded(n: int) -> tuple[Snapshot, list[PendingWorkload]]:
    """One tenant holds all that it may; another has room left, and big jobs of it wait."""
    busy = runs(job("busy", workers=4, tenant="blue"), *["n"] * 4)
    waiting = [
        job(f"j{i}", workers=3, cpu=2, ram=1000, at=float(i), tenant=("red", "blue")[i % 2]) for i in range(n)
    ]
    tenants = (tenant("red", 4), tenant("blue", 4))
    return snapshot(*waiting, nodes=(node(cpu=32),), tenants=tenants, running=(busy,)), waiting


def planned(s: Snapshot) -> Core:
    core = Core.from_snapshot(s, 0.0)
    core.plan(0.0)
    return core


def test_a_core_that_is_kept_answers_with_the_same_changes_however_much_waits() -> None:
    s, waiting = crowded(400)
    answers = [explain_planned(planned(s), j.uid, 0.0) for j in waiting[:2]]
    assert answers == [explain(s, j.uid, 0.0) for j in waiting[:2]]
    assert [a and a.would_start_now for a in answers] == [("--workers 2", "--cpu 1.3"), ()]
    assert [a and a.cut_short for a in answers] == [NOTHING, NOTHING]


def test_a_look_for_smaller_requests_ends_at_its_bound_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    s, waiting = crowded(400)
    monkeypatch.setattr("mlp_hub.scheduler.forecast.why.MOST_TRYING", 1)
    why = explain_planned(planned(s), waiting[0].uid, 0.0)
    assert why is not None
    assert why.would_start_now == ("--workers 1",)
    assert why.cut_short.args == {"n": 1, "waiting": 400, "found": msg("better ones are possible")}
    monkeypatch.setattr("mlp_hub.scheduler.forecast.why.MOST_TRYING", 0)
    none = explain_planned(planned(s), waiting[0].uid, 0.0)
    assert none is not None
    assert none.would_start_now == ()
    assert none.cut_short.args == {"waiting": 400, "found": msg("one that starts now is possible")}


def test_tries_leave_the_core_as_it_is() -> None:
    s, waiting = crowded(40)
    core = planned(s)
    before = core.snapshot(0.0)
    tries = Tries(core, waiting[0], 1e9)
    less = replace(waiting[0], workers_min=1, workers_max=1)
    assert [tries.starts(j) for j in (less, waiting[0], less)] == [True, False, True]
    assert core.snapshot(0.0) == before
    assert core.plan(0.0) == []


def test_a_job_above_its_quota_is_reported_as_impossible_with_a_request_that_can_start() -> None:
    mine = runs(job("mine", workers=1), "n")
    why = explain(snapshot(job("a", workers=3), tenants=(tenant(cpu=2),), running=(mine,)), "a", 0.0)
    (verdict,) = why.reasons
    assert verdict.reason is Reason.EXCEEDS_MAX_QUOTA
    assert verdict.headline.args["way"] == msg("Use --workers {n}.", n=2)
    assert verdict.numbers == {"cpu_limit": 2.0, "cpu_asked": 3.0}
    assert (why.expected_start, why.expected_because) == (None, NEVER)
    assert why.would_start_now == ("--workers 1", "--cpu 0.3")


def test_the_reason_of_a_waiting_job_follows_a_quota_lowered_below_it_and_raised_again() -> None:
    core = Core.from_snapshot(
        snapshot(job("a", workers=3), tenants=(tenant(cpu=3, used=Resources(cpu=1000)),)), 0.0
    )
    (wait,) = core.plan(0.0)
    assert isinstance(wait, Wait)
    assert wait.verdict.reason is Reason.WAITING_FOR_QUOTA
    core.set_tenant(tenant(cpu=2, used=Resources(cpu=1000)))
    (never,) = core.plan(1.0)
    assert isinstance(never, Wait)
    assert never.verdict.reason is Reason.EXCEEDS_MAX_QUOTA
    core.set_tenant(tenant(cpu=3, used=Resources(cpu=1000)))
    (again,) = core.plan(2.0)
    assert isinstance(again, Wait)
    assert again.verdict.headline.args["way"] == msg(
        "Servers hold the rest. Use --workers {n} or {less}.", n=2, less="--cpu 0.6"
    )
    assert again.verdict.numbers["cpu_held"] == 1


def test_an_open_window_of_another_makes_no_job_one_that_can_never_start() -> None:
    s = replace(
        snapshot(job("a", workers=4), tenants=(tenant(cpu=4), tenant("blue", cpu=4))),
        bookings=(CapacityWindow("blue", 0.0, 100.0, Quota(cpu=2000)),),
    )
    why = explain(s, "a", 50.0)
    assert [v.reason for v in why.reasons] == [Reason.WAITING_FOR_QUOTA]
    assert why.expected_start == 100.0


@pytest.mark.parametrize(
    ("used", "blue", "beside"),
    [
        (200, 0, (5, "ann's notebook")),
        (0, 200, (5, "notebooks of other teams")),
        (6000, 0, (0, "ann's notebook")),
        (0, 0, None),
    ],
)
def test_a_refusal_includes_the_request_that_can_start_beside_notebooks(
    used: int, blue: int, beside: tuple[int, str] | None
) -> None:
    teams = (
        tenant(cpu=3, cohort="c", used=Resources(cpu=used), others=("ann's notebook",) if used else ()),
        tenant("blue", cpu=3, cohort="c", used=Resources(cpu=blue)),
    )
    verdict = check_possible(snapshot(nodes=(node(cpu=64),), tenants=teams), job("a", workers=20))
    assert verdict is not None
    assert verdict.headline.args["way"] == msg("Use --workers {n}.", n=6)
    told = verdict.numbers.get("beside")
    assert (None if told is None else (told, who(verdict, "beside"))) == beside


def test_a_job_behind_a_reservation_gets_the_time_limit_that_can_pass_it() -> None:
    busy = runs(job("busy", workers=3), "n", "n", "n", until=90.0)
    s = snapshot(job("ahead", workers=4), job("a", at=1.0), running=(busy,))
    (verdict,) = explain(s, "a", 10.0).reasons
    assert verdict.reason is Reason.RESERVED
    assert verdict.headline == msg(
        "{said} {way}",
        said=msg("Would delay {job}.", job=job_ref("ahead")),
        way=msg("Use --time-limit {n}s or less.", n=80),
    )
    assert Fact("ahead_starts", Moment(90.0, 10.0)) in verdict.facts
    short = replace(s, waiting=(s.waiting[0], job("a", at=1.0, time_limit=80.0)))
    assert explain(short, "a", 10.0).expected_start == 10.0
    longer = replace(s, waiting=(s.waiting[0], job("a", at=1.0, time_limit=81.0)))
    assert explain(longer, "a", 10.0).expected_start != 10.0


def test_where_nobody_knows_when_who_is_ahead_starts_any_time_limit_will_do() -> None:
    busy = runs(job("busy", workers=3), "n", "n", "n")
    s = snapshot(job("ahead", workers=4), job("a", at=1.0), running=(busy,))
    (verdict,) = explain(s, "a", 10.0).reasons
    assert verdict.headline.args["way"] == msg("Use --time-limit.")
    given = replace(s, waiting=(s.waiting[0], job("a", at=1.0, time_limit=1e6)))
    assert explain(given, "a", 10.0).expected_start == 10.0


def test_without_backfill_no_time_limit_is_said_to_help() -> None:
    busy = runs(job("busy", workers=3), "n", "n", "n", until=90.0)
    s = snapshot(job("ahead", workers=4), job("a", at=1.0), running=(busy,), backfill=False)
    (verdict,) = explain(s, "a", 10.0).reasons
    assert verdict.headline == msg("Would delay {job}.", job=job_ref("ahead"))


def test_a_job_that_was_not_considered_yet_shows_that() -> None:
    core = Core.from_snapshot(snapshot(job("a")), 0.0)
    wait = core.verdict("a")
    assert wait is not None
    assert wait.verdict.headline == msg("Not examined yet. The next cycle decides.")


def test_every_reason_of_a_job_that_is_tried_has_its_words() -> None:
    core = Core.from_snapshot(snapshot(job("a", workers=9)), 0.0)
    core.plan(0.0)
    entry = core.state.waiting["a"]
    for reason in set(Reason) - {Reason.EXCEEDS_MAX_QUOTA, Reason.TOPOLOGY_PLACEMENT_FAILED}:
        entry.cls.reason = reason
        if reason in TRIED:
            assert reason_of(core.state, entry) is reason
            assert verdict_of(core.state, entry, FactCache(0.0)).headline
        else:
            with pytest.raises(ValueError, match=f"no job that is tried waits for {reason.value}"):
                verdict_of(core.state, entry, FactCache(0.0))


def test_an_offer_beside_many_who_wait_looks_at_none_of_them_again() -> None:
    s, _ = crowded(400)
    core = planned(s)
    before = core.state.effort
    why, start = offered(core, job("new", workers=1, at=500.0, priority=200), 1.0)
    assert start is not None
    assert why.gives_way == ()
    assert core.state.effort - before <= 10


def test_a_look_ahead_ends_at_its_bound_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlp_hub.scheduler.forecast.why.MOST_EFFORT", 3)
    busy = tuple(runs(job(f"busy{n}", workers=1), "n", since=-1.0, until=10.0 + n) for n in range(4))
    ahead = [job(f"w{n}", workers=3, time_limit=10.0, at=float(n)) for n in range(6)]
    why = explain(snapshot(*ahead, job("a", workers=3, at=9.0), running=busy), "a", 0.0)
    assert why.expected_start is None
    assert why.expected_because == msg("more than {n} jobs have to end before it", n=3)


def test_nodes_that_take_nothing_are_counted_by_why() -> None:
    nodes = (
        node("ok", cpu=1),
        node("c1", up=False, wrong=("Cordoned",)),
        node("c2", up=False, wrong=("Cordoned", "DiskPressure")),
        node("down", up=False),
        node("full", up=False, wrong=("DiskPressure",)),
        node("mine", taints=("gpu=only",)),
        node("kept", taints=("tenant=blue",)),
    )
    (verdict,) = explain(snapshot(job("a", workers=2), nodes=nodes), "a", 0.0).reasons
    assert verdict.reason is Reason.WAITING_FOR_RESOURCES
    assert verdict.numbers["shut"] == 5
    assert (
        who(verdict, "shut")
        == "2 nodes cordoned, 1 node short of disk, 1 node not ready and 1 node tainted gpu=only"
    )
    assert str(verdict.headline) == "Needs 2 ranks at once, 1 fit now. Starts when others end."


def test_nodes_without_the_gpus_that_are_asked_for_are_not_counted_and_where_all_are_shut_it_waits_for_one() -> (
    None
):
    nodes = (
        node("a", gpu=1, gpu_kind="a100", up=False, wrong=("NotReady",)),
        node("h", gpu=1, gpu_kind="h100", up=False, wrong=("Cordoned",)),
        node("n"),
    )
    asked = job("a", gpu=1, gpu_kind="a100")
    core = Core.from_snapshot(snapshot(asked, nodes=nodes), 0.0)
    core.plan(0.0)
    wait = core.verdict("a")
    assert wait is not None
    assert who(wait.verdict, "shut") == "1 node not ready"
    assert str(wait.verdict.headline) == "Needs 1 rank at once, 0 fit now. Starts when a node accepts work."
    core.fork().set_node("a", up=True)
    assert core.state.index.shut(core.state.waiting["a"].cls.demand) == {Shut("NotReady"): 1}
    core.set_node("a", up=True)
    assert [d.uid for d in core.plan(1.0)] == ["a"]


def test_a_job_that_fits_no_node_but_one_that_could_be_added_says_which_group_must_grow() -> None:
    def absent(name: str, group: str, gpu: int) -> Node:
        labels = {GROUP: group}
        return node(name, cpu=8, gpu=gpu, gpu_kind="a100", up=False, wrong=("Absent",), labels=labels)

    nodes = (node(), absent("s+1", "small", 1), absent("l+1", "large", 4), absent("l+2", "large", 4))
    core = Core.from_snapshot(snapshot(job("a", gpu=2), job("b", cpu=1), job("c", cpu=6), nodes=nodes), 0.0)
    core.plan(0.0)
    waits = core.verdicts(("a", "c"))
    assert str(waits["a"].verdict.headline) == "Needs 1 rank at once, 0 fit now. Group large must grow."
    assert who(waits["a"].verdict, "shut") == (
        "2 nodes of group large that could be added and 1 node of group small that could be added"
    )
    assert str(waits["c"].verdict.headline) == "Needs 1 rank at once, 0 fit now. Group large must grow."
    assert check_possible(snapshot(nodes=nodes), job("a", gpu=2)) is None
    core.fork().set_nodes((), ("l+1", "l+2"))  # another's nodes
    core.set_nodes((), ("l+2",))
    (wait,) = core.verdicts(("a",)).values()
    assert str(wait.verdict.headline) == "Needs 1 rank at once, 0 fit now. Group large must grow."
    core.set_nodes((node("new", cpu=8, gpu=4, gpu_kind="a100"),), ("l+1",))
    assert sorted(d.uid for d in core.plan(1.0) if not isinstance(d, Wait)) in (["a"], ["a", "c"])


def test_where_an_open_node_could_hold_it_no_group_has_to_grow() -> None:
    more = node("g+1", up=False, wrong=("Absent",), labels={GROUP: "g"})
    why = explain(snapshot(job("a", workers=2, cpu=3), nodes=(node(), more)), "a", 0.0)
    assert str(why.reasons[0].headline) == "Needs 2 ranks at once, 1 fit now. Starts when others end."


def drained(name: str, **more: Any) -> Node:
    return node(name, up=False, wrong=("Drained",), **more)


def test_where_the_only_node_is_drained_it_waits_for_that_and_for_no_jobs_end() -> None:
    stays = runs(job("drainme", user="ann"), "n1")
    why = explain(snapshot(job("a"), nodes=(drained("n1"),), running=(stays,)), "a", 0.0)
    (verdict,) = why.reasons
    said = "Needs 1 rank at once, 0 fit now. Starts once node n1 is back."
    assert str(verdict.headline) == said
    assert who(verdict, "shut") == "1 node drained by an administrator (n1)"
    assert (
        str(next(f.value for f in verdict.facts if f.name == "free_on"))
        == "no node of that kind accepts new work"
    )
    because = "node n1 is drained by an administrator: it can start when that node is back in service"
    assert (why.expected_start, str(why.expected_because), str(why.sure_because)) == (None, because, because)


def test_a_drained_node_is_waited_for_beside_open_ones_that_are_too_small() -> None:
    nodes = (node("small", cpu=1), drained("d2"), drained("d1"), drained("blues", taints=("tenant=blue",)))
    busy = runs(job("busy"), "small")
    why = explain(snapshot(job("a", workers=6), nodes=nodes, running=(busy,)), "a", 0.0)
    assert str(why.reasons[0].headline).endswith("Starts once drained nodes are back.")
    assert named(why.expected_because) == []
    assert str(why.expected_because).startswith("nodes d1 and d2 are drained by an administrator")


def test_a_drained_node_that_is_not_needed_or_would_not_help_is_not_waited_for() -> None:
    busy = runs(job("busy", workers=4), *["open"] * 4)
    enough = snapshot(job("a"), nodes=(node("open"), drained("d")), running=(busy,))
    why = explain(enough, "a", 0.0)
    assert why.expected_because == no_time_limit([job_ref("busy")])
    assert str(why.reasons[0].headline).endswith("Starts when others end.")
    nodes = (node("open"), drained("d", cpu=1), node("big", cpu=16, up=False, wrong=("Cordoned",)))
    vain = explain(snapshot(job("b", cpu=8), nodes=nodes, running=(busy,)), "b", 0.0)
    assert vain.expected_because == NOT_HELD_BY_JOBS


def test_a_node_that_is_back_is_drained_no_more_also_for_forks() -> None:
    core = planned(snapshot(job("a"), nodes=(drained("n1"), drained("n2"))))
    demand = core.state.waiting["a"].cls.demand
    core.fork().set_nodes((node("n1"),), ("n2",))
    assert core.state.index.drained(demand) == ("n1", "n2")
    core.set_nodes((node("n1"),), ("n2",))
    assert core.state.index.drained(demand) == ()


def test_the_capacity_of_an_empty_cluster_follows_its_nodes_but_not_its_jobs_or_forks() -> None:
    core = planned(snapshot(job("a", workers=9), nodes=(node("open"), drained("d"))))
    demand, index = core.state.waiting["a"].cls.demand, core.state.index
    each = next(n for n in range(1, 99) if not index.could_hold(demand, n + 1))
    assert index.could_hold(demand, 2 * each, drained=True)
    core.start(runs(job("busy"), "open"))
    assert index.could_hold(demand, each)
    fork = core.fork()
    fork.set_nodes((node("d"), node("more")))
    assert fork.state.index.could_hold(demand, 3 * each)
    assert not index.could_hold(demand, each + 1)
    core.set_nodes((), ("d",))
    assert not index.could_hold(demand, each + 1, drained=True)
