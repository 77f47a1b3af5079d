"""Why a job waits and when it starts; and what can never run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mlp_hub.domain.errors import Reason
from mlp_hub.domain.resources import Quota, Resources
from mlp_hub.scheduler.core import Core
from mlp_hub.scheduler.feasible import check_possible
from mlp_hub.scheduler.model import Booking, Snapshot, Wait, WaitingJob, Why
from mlp_hub.scheduler.quota_words import Told
from mlp_hub.scheduler.smaller import Tries
from mlp_hub.scheduler.verdicts import of, reason_of
from mlp_hub.scheduler.why import explain, explain_planned, offered
from scheduler_builders import job, node, runs, snapshot, tenant

TRIED = {
    Reason.WAITING_FOR_QUOTA,
    Reason.WAITING_FOR_RESOURCES,
    Reason.WAITING_FOR_PREEMPTED,
    Reason.RESERVED,
}


def test_the_expected_start_is_when_the_job_in_the_way_must_end() -> None:
    busy = runs(job("busy", workers=3, user="bob"), "n", "n", "n", until=100.0)
    why = explain(snapshot(job("a", workers=4), running=(busy,)), "a", 10.0)
    assert (why.expected_start, why.expected_because) == (100.0, "job busy of bob ends by then at the latest")
    assert why.position == 1
    assert why.would_start_now == ("--workers 1", "--cpu 0.2")


def test_without_time_limits_it_says_that_no_time_can_be_told_and_whose() -> None:
    busy = runs(job("busy", workers=4), "n", "n", "n", "n")
    why = explain(snapshot(job("a"), running=(busy,)), "a", 0.0)
    assert why.expected_start is None
    assert why.expected_because == "no time can be told: busy of ann has no time limit"


def test_the_forecast_counts_those_ahead_in_the_queue() -> None:
    busy = runs(job("busy", workers=4), "n", "n", "n", "n", until=50.0)
    ahead = job("ahead", workers=4, time_limit=30)
    why = explain(snapshot(ahead, job("a", workers=4, at=1.0), running=(busy,)), "a", 0.0)
    assert (why.position, why.queue_length, why.expected_start) == (2, 2, 80.0)


def test_what_a_notebook_holds_is_not_waited_for_in_vain() -> None:
    s = snapshot(
        job("a", workers=2), tenants=(tenant(cpu=2, used=Resources(cpu=500), others=("bob's notebook",)),)
    )
    why = explain(s, "a", 0.0)
    assert why.expected_start is None
    (verdict,) = why.reasons
    assert (verdict.reason, verdict.message) == (
        Reason.WAITING_FOR_QUOTA,
        "red may use 2 cpu; 0.5 in use by bob's notebook (0.5); 1.5 free now; this job asks for 2. It cannot start while "
        "bob's notebook holds 0.5 cpu; with --workers 1 it could",
    )
    assert why.expected_because == (
        "it cannot start while bob's notebook holds 0.5 cpu; with --workers 1 it could"
    )
    assert why.would_start_now == ("--workers 1", "--cpu 0.7")


def test_a_job_that_fits_starts_with_the_next_cycle() -> None:
    assert explain(snapshot(job("a")), "a", 5.0) == Why(
        (), None, 1, 5.0, "it fits and starts with the next scheduling cycle", (), "sure", "it fits now"
    )
    with pytest.raises(KeyError):
        explain(snapshot(), "a", 0.0)


@pytest.mark.parametrize(
    ("limit", "sure", "because"),
    [
        (30.0, "sure", "every job ahead has a time limit"),
        (None, "likely", "job ahead of ann has no time limit, so others may pass when one of them ends"),
    ],
)
def test_it_says_how_sure_the_expected_start_is(limit: float | None, sure: str, because: str) -> None:
    busy = runs(job("busy", workers=4, time_limit=50.0), "n", "n", "n", "n", until=50.0)
    ahead = job("ahead", workers=2, time_limit=limit)
    behind = job("behind", workers=1, at=2.0)
    why = explain(snapshot(ahead, job("a", workers=2, at=1.0), behind, running=(busy,)), "a", 0.0)
    assert why.expected_start is not None
    assert (why.how_sure, why.sure_because) == (sure, because)


def test_where_no_time_can_be_told_nothing_is_sure() -> None:
    busy = runs(job("busy", workers=4), "n", "n", "n", "n")
    why = explain(snapshot(job("a"), running=(busy,)), "a", 0.0)
    assert (why.how_sure, why.sure_because) == ("unknown", why.expected_because)


@pytest.mark.parametrize(
    ("asked", "reason", "message"),
    [
        (
            job("a", workers=9),
            Reason.EXCEEDS_MAX_QUOTA,
            "red may use 6 cpu in all and this job asks for 9. With --workers 6 it would fit, or ask an administrator of the hub for more quota for red.",
        ),
        (
            job("a", cpu=5),
            Reason.EXCEEDS_MAX_QUOTA,
            "each rank asks for 5 cpu, and the largest node has 4. Ask for at most 4 per rank.",
        ),
        (
            job("a", workers=3, cpu=1, ram=8192),
            Reason.EXCEEDS_MAX_QUOTA,
            "3 ranks of 1 cpu and 8192 MiB ram can never run here: there are 2 nodes with 8 cpu and 16384 MiB ram in all. "
            "With --workers 2 it would fit.",
        ),
        (
            job("a", gpu=1, gpu_kind="h100"),
            Reason.NO_MATCHING_FLAVOR,
            "no node has a gpu of kind h100; no node here has a gpu",
        ),
        (
            job("a", workers=5, topology="same-node"),
            Reason.TOPOLOGY_PLACEMENT_FAILED,
            "no node can hold 5 ranks of 1 cpu and 100 MiB ram together. With --workers 4 it would fit.",
        ),
        (job("a", tenant="blue"), Reason.NOT_FOUND, "there is no tenant blue"),
    ],
)
def test_what_can_never_run_is_told_with_limit_and_way_out(
    asked: object, reason: Reason, message: str
) -> None:
    s = snapshot(nodes=(node("n-0"), node("n-1")), tenants=(tenant(cpu=6),))
    verdict = check_possible(s, asked)  # type: ignore[arg-type]
    assert verdict is not None
    assert (verdict.reason, verdict.message) == (reason, message)


def test_what_only_waits_is_possible() -> None:
    busy = runs(job("busy", workers=4), "n", "n", "n", "n")
    assert check_possible(snapshot(running=(busy,)), job("a", workers=4)) is None
    assert check_possible(snapshot(nodes=(node(up=False),)), job("a")) is None


def crowded(n: int) -> tuple[Snapshot, list[WaitingJob]]:
    """One tenant holds all that it may; another has room left, and big jobs of it wait."""
    busy = runs(job("busy", workers=4, tenant="blue"), *["n"] * 4)
    waiting = [
        job(f"j{i}", workers=3, cpu=2, ram=1000, at=float(i), tenant=("red", "blue")[i % 2]) for i in range(n)
    ]
    tenants = (tenant("red", 4), tenant("blue", 4))
    return snapshot(*waiting, nodes=(node(cpu=32),), tenants=tenants, running=(busy,)), waiting


def planned(s: Snapshot) -> Core:
    core = Core.of(s, 0.0)
    core.plan(0.0)
    return core


def test_a_core_that_is_kept_answers_with_the_same_changes_however_much_waits() -> None:
    s, waiting = crowded(400)
    answers = [explain_planned(planned(s), j.uid, 0.0) for j in waiting[:2]]
    assert answers == [explain(s, j.uid, 0.0) for j in waiting[:2]]
    assert [a and a.would_start_now for a in answers] == [("--workers 2", "--cpu 1.3"), ()]
    assert [a and a.cut_short for a in answers] == ["", ""]


def test_a_look_for_smaller_requests_ends_at_its_bound_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    s, waiting = crowded(400)
    monkeypatch.setattr("mlp_hub.scheduler.why.MOST_TRYING", 1)
    why = explain_planned(planned(s), waiting[0].uid, 0.0)
    assert why is not None
    assert why.would_start_now == ("--workers 1",)
    assert why.cut_short == "with 400 jobs waiting only 1 smaller request was tried, there may be better ones"
    monkeypatch.setattr("mlp_hub.scheduler.why.MOST_TRYING", 0)
    none = explain_planned(planned(s), waiting[0].uid, 0.0)
    assert none is not None
    assert (none.would_start_now, none.cut_short) == (
        (),
        "with 400 jobs waiting no smaller request was tried, there may be one that starts now",
    )


def test_tries_leave_the_core_as_it_is() -> None:
    s, waiting = crowded(40)
    core = planned(s)
    before = core.snapshot(0.0)
    tries = Tries(core, waiting[0], 1e9)
    less = replace(waiting[0], workers_min=1, workers_max=1)
    assert [tries.starts(j) for j in (less, waiting[0], less)] == [True, False, True]
    assert core.snapshot(0.0) == before
    assert core.plan(0.0) == []


def test_a_job_above_its_quota_is_told_that_it_can_never_start_and_with_what_it_could() -> None:
    mine = runs(job("mine", workers=1), "n")
    why = explain(snapshot(job("a", workers=3), tenants=(tenant(cpu=2),), running=(mine,)), "a", 0.0)
    (verdict,) = why.reasons
    assert (verdict.reason, verdict.message) == (
        Reason.EXCEEDS_MAX_QUOTA,
        "red may use 2 cpu in all now and this job asks for 3: it can never start under this quota; with --workers 2 it "
        "could, or ask an administrator of the hub for more quota for red",
    )
    assert verdict.numbers == {"cpu_limit": 2.0, "cpu_asked": 3.0}
    assert (why.expected_start, why.expected_because) == (None, "it can never start under this quota")
    assert why.would_start_now == ("--workers 1", "--cpu 0.3")


def test_who_waits_is_told_when_its_quota_is_lowered_below_it_and_raised_again() -> None:
    core = Core.of(snapshot(job("a", workers=3), tenants=(tenant(cpu=3, used=Resources(cpu=1000)),)), 0.0)
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
    assert again.verdict.message == (
        "red may use 3 cpu; 1 in use by others (1); 2 free now; this job asks for 3. It cannot start while others than "
        "jobs hold 1 cpu; with --workers 2 it could"
    )


def test_an_open_window_of_another_makes_no_job_one_that_can_never_start() -> None:
    s = replace(
        snapshot(job("a", workers=4), tenants=(tenant(cpu=4), tenant("blue", cpu=4))),
        bookings=(Booking("blue", 0.0, 100.0, Quota(cpu=2000)),),
    )
    why = explain(s, "a", 50.0)
    assert [v.reason for v in why.reasons] == [Reason.WAITING_FOR_QUOTA]
    assert why.expected_start == 100.0


@pytest.mark.parametrize(
    ("used", "blue", "message"),
    [
        (200, 0, "With --workers 6 it would fit (5 while ann's notebook holds part of it)"),
        (0, 200, "With --workers 6 it would fit (5 while notebooks of other tenants hold part of it)"),
        (6000, 0, "With --workers 6 it would fit (none while ann's notebook holds part of it)"),
        (0, 0, "With --workers 6 it would fit"),
    ],
)
def test_what_could_start_beside_notebooks_is_told_with_a_refusal(used: int, blue: int, message: str) -> None:
    teams = (
        tenant(cpu=3, cohort="c", used=Resources(cpu=used), others=("ann's notebook",) if used else ()),
        tenant("blue", cpu=3, cohort="c", used=Resources(cpu=blue)),
    )
    verdict = check_possible(snapshot(nodes=(node(cpu=64),), tenants=teams), job("a", workers=20))
    assert verdict is not None
    assert verdict.message == (
        f"red may use 6 cpu in all and this job asks for 20. {message}, or ask an administrator of the hub for more "
        "quota for red."
    )


def test_what_would_pass_is_told_by_the_time_that_is_left() -> None:
    busy = runs(job("busy", workers=3), "n", "n", "n", until=90.0)
    s = snapshot(job("ahead", workers=4), job("a", at=1.0), running=(busy,))
    (verdict,) = explain(s, "a", 10.0).reasons
    assert (verdict.reason, verdict.message) == (
        Reason.RESERVED,
        "would fit, but starting it now would delay ahead of ann, which is ahead of it and is to start in 80 s; with "
        "--time-limit 80s or less it would not",
    )
    short = replace(s, waiting=(s.waiting[0], job("a", at=1.0, time_limit=80.0)))
    assert explain(short, "a", 10.0).expected_start == 10.0
    longer = replace(s, waiting=(s.waiting[0], job("a", at=1.0, time_limit=81.0)))
    assert explain(longer, "a", 10.0).expected_start != 10.0


def test_where_nobody_knows_when_who_is_ahead_starts_any_time_limit_will_do() -> None:
    busy = runs(job("busy", workers=3), "n", "n", "n")
    s = snapshot(job("ahead", workers=4), job("a", at=1.0), running=(busy,))
    (verdict,) = explain(s, "a", 10.0).reasons
    assert verdict.message == (
        "would fit, but starting it now would delay ahead of ann, which is ahead of it; with a --time-limit it would not"
    )
    given = replace(s, waiting=(s.waiting[0], job("a", at=1.0, time_limit=1e6)))
    assert explain(given, "a", 10.0).expected_start == 10.0


def test_without_backfill_no_time_limit_is_said_to_help() -> None:
    busy = runs(job("busy", workers=3), "n", "n", "n", until=90.0)
    s = snapshot(job("ahead", workers=4), job("a", at=1.0), running=(busy,), backfill=False)
    (verdict,) = explain(s, "a", 10.0).reasons
    assert verdict.message == "would fit, but starting it now would delay ahead of ann, which is ahead of it"


def test_who_was_not_looked_at_yet_is_told_so() -> None:
    core = Core.of(snapshot(job("a")), 0.0)
    wait = core.verdict("a")
    assert wait is not None
    assert wait.verdict.message == "not looked at yet: the next scheduling cycle decides"


def test_every_reason_of_a_job_that_is_tried_has_its_words() -> None:
    core = Core.of(snapshot(job("a", workers=9)), 0.0)
    core.plan(0.0)
    entry = core.state.waiting["a"]
    for reason in set(Reason) - {Reason.EXCEEDS_MAX_QUOTA, Reason.TOPOLOGY_PLACEMENT_FAILED}:
        entry.cls.reason = reason
        if reason in TRIED:
            assert reason_of(core.state, entry) is reason
            assert of(core.state, entry, Told(0.0)).message
        else:
            with pytest.raises(ValueError, match=f"no job that is tried waits for {reason.value}"):
                of(core.state, entry, Told(0.0))


def test_an_offer_beside_many_who_wait_looks_at_none_of_them_again() -> None:
    s, _ = crowded(400)
    core = planned(s)
    before = core.state.effort
    why, start = offered(core, job("new", workers=1, at=500.0, priority=200), 1.0)
    assert start is not None
    assert why.gives_way == ()
    assert core.state.effort - before <= 10


def test_a_look_ahead_ends_at_its_bound_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlp_hub.scheduler.why.MOST_EFFORT", 3)
    busy = tuple(runs(job(f"busy{n}", workers=1), "n", since=-1.0, until=10.0 + n) for n in range(4))
    ahead = [job(f"w{n}", workers=3, time_limit=10.0, at=float(n)) for n in range(6)]
    why = explain(snapshot(*ahead, job("a", workers=3, at=9.0), running=busy), "a", 0.0)
    assert why.expected_start is None
    assert why.expected_because == "more than 3 jobs have to end before it"
