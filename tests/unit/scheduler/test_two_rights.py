"""One job that stops lower work of its own tenant and takes back what others borrowed, both at once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st

from mlp_hub.domain.errors import Reason
from mlp_hub.domain.resources import MILLI
from mlp_hub.scheduler.core import Core, plan_cycle
from mlp_hub.scheduler.model.types import (
    Admit,
    AdmittedWorkload,
    Decision,
    PendingWorkload,
    Preempt,
    SchedulingPolicy,
    Snapshot,
    TenantQueue,
    Wait,
)
from mlp_language.message import Moment, msg
from support.scheduler.scheduler_builders import job, node, runs, snapshot, tenant

TEAMS = (tenant("red", cpu=3, cohort="main"), tenant("blue", cpu=3, cohort="main"))


def urgent(workers: int, **more: Any) -> PendingWorkload:
    return job("urgent", workers=workers, tenant="blue", at=100.0, priority=200, **more)


def own(uid: str, workers: int, since: float = 2.0, **more: Any) -> AdmittedWorkload:
    return runs(job(uid, workers=workers, tenant="blue", at=since, **more), *["n"] * workers, since=since)


def red(uid: str, workers: int, since: float = 0.0, **more: Any) -> AdmittedWorkload:
    return runs(job(uid, workers=workers, at=since, **more), *["n"] * workers, since=since)


def at_full(new: PendingWorkload, *running: AdmittedWorkload, cpu: float = 6, **policy: Any) -> Snapshot:
    return snapshot(new, tenants=TEAMS, nodes=(node(cpu=cpu),), running=running, **policy)


def stopped(s: Snapshot, now: float = 100.0) -> set[str]:
    plan = plan_cycle(s, now)
    uids = {d.uid for d in plan if isinstance(d, Preempt)}
    assert bool(uids) == any(isinstance(d, Admit) and d.uid == "urgent" for d in plan)
    return uids


def test_a_job_of_just_its_nominal_quota_gets_it_by_both_rights() -> None:
    s = at_full(urgent(3), red("older", 3), red("cheap", 1, since=1.0), own("own", 2))
    rights = {
        d.uid: str(d.verdict.headline.args["right"]) for d in plan_cycle(s, 100.0) if isinstance(d, Preempt)
    }
    assert rights == {"own": "its priority is higher", "cheap": "blue takes back what red borrowed"}


@pytest.mark.parametrize(
    ("workers", "others", "gone"),
    [
        # nothing is taken back where the own job is enough
        (2, (red("older", 3), red("cheap", 1)), {"own"}),
        # it would be beyond its nominal quota all the same
        (4, (red("older", 3), red("cheap", 1)), set()),
        # red is inside its own with either of them gone: no more than one goes, the cheaper
        (3, (red("older", 2), red("cheap", 2, since=90.0)), {"own", "cheap"}),
        # a job of higher priority is taken back from all the same
        (3, (red("older", 3), red("cheap", 1, since=1.0, priority=300)), {"own", "cheap"}),
    ],
)
def test_never_more_than_needed_and_never_beyond_its_own(
    workers: int, others: tuple[AdmittedWorkload, ...], gone: set[str]
) -> None:
    assert stopped(at_full(urgent(workers), *others, own("own", 2))) == gone


def test_reclaiming_quota_can_cost_less_than_stopping_more_of_the_tenants_own_jobs() -> None:
    """The cheap job of red goes before the old one of blue, though it may be taken back only once `new` is gone."""
    running = (red("older", 3), red("cheap", 1, since=99.0), own("new", 1, since=95.0), own("old", 1))
    assert stopped(at_full(urgent(2), *running)) == {"cheap", "new"}
    running = (red("older", 3), red("cheap", 1), own("new", 1, since=95.0), own("old", 1, since=50.0))
    assert stopped(at_full(urgent(2), *running)) == {"old", "new"}


def test_its_own_is_not_crowded_out_by_much_that_it_could_take_back() -> None:
    many = [red(f"r{i}", 1, since=90.0) for i in range(150)]
    s = snapshot(
        urgent(100),
        tenants=(tenant("red", cpu=100, cohort="main"), tenant("blue", cpu=100, cohort="main")),
        nodes=(node(cpu=200, ram=99_999),),
        running=(*many, own("own", 50)),
    )
    gone = stopped(s)
    assert "own" in gone
    assert len(gone) == 51


def test_those_are_taken_back_from_only_once_its_own_is_really_gone() -> None:
    """With extra workers of its own elastic job gone it stays inside, and they are not given back."""
    elastic = runs(
        job("own", workers=1, workers_max=2, tenant="blue", at=2.0, preemptible=False), "n", "n", since=2.0
    )
    s = at_full(urgent(2), red("older", 3), red("cheap", 1, since=1.0), elastic)
    assert stopped(s) == {"cheap"}


def test_on_nodes_too_it_takes_back_once_its_own_is_gone() -> None:
    """Of two that share no quota one fills the nodes beyond its promise."""
    teams = (tenant("red", cpu=3), tenant("blue", cpu=3))
    over = runs(job("over", workers=1, tenant="none", priority=300), "n")
    s = snapshot(
        urgent(3),
        tenants=(*teams, tenant("none")),
        nodes=(node(cpu=6),),
        running=(red("older", 3), own("own", 2), over),
    )
    assert stopped(s) == {"own", "over"}


# --- what is promised


def test_nobody_is_told_to_wait_for_those_who_would_not_be_enough() -> None:
    running = (red("older", 2), red("fixed", 1, preemptible=False), red("cheap", 1, since=91.0))
    s = at_full(
        urgent(4), *running, own("own", 1, since=91.0), own("kept", 1, preemptible=False), min_run_s=30
    )
    (wait,) = plan_cycle(s, 100.0)
    assert isinstance(wait, Wait)
    assert wait.verdict.reason is Reason.WAITING_FOR_QUOTA
    assert "may_stop" not in {f.key for f in wait.verdict.facts}
    core = Core.from_snapshot(s, 100.0)
    core.plan(100.0)
    assert core.next_wake() is None


def test_a_job_that_can_use_both_rights_later_shows_the_time_and_then_starts() -> None:
    s = at_full(
        urgent(3), red("older", 3), red("cheap", 1, since=91.0), own("own", 2, since=91.0), min_run_s=30
    )
    core = Core.from_snapshot(s, 100.0)
    (wait,) = core.plan(100.0)
    assert isinstance(wait, Wait)
    assert wait.verdict.headline.args["way"] == msg(
        "Other jobs can be stopped {at}.", at=Moment(121.0, 100.0)
    )
    assert core.next_wake() == 121.0
    assert {d.uid for d in core.plan(121.0) if isinstance(d, Preempt)} == {"own", "cheap"}


# --- whatever happened before

CORES = 12

owners = st.lists(
    st.tuples(st.none() | st.integers(0, 6), st.sampled_from((None, "x", "x"))), min_size=2, max_size=3
)
asks = st.lists(
    st.tuples(
        st.integers(0, 2),  # tenant
        st.integers(1, 6),  # workers of one core
        st.sampled_from((50, 100, 200)),
        st.booleans(),  # whether something ends first
    ),
    min_size=4,
    max_size=14,
)


class Checked:
    """A core, and what must hold of whom it stops."""

    def __init__(self, policy: SchedulingPolicy, tenants: list[TenantQueue]) -> None:
        self.policy = policy
        self.core = Core(policy, (node(cpu=CORES, ram=99_999),), tenants)
        self.nominal = {t.name: t.quota.cpu for t in tenants}
        self.known: dict[str, PendingWorkload] = {}
        self.waiting: dict[str, PendingWorkload] = {}

    def submit(self, new: PendingWorkload) -> None:
        self.known[new.uid] = self.waiting[new.uid] = new
        self.core.submit(new)

    def held(self) -> dict[str, int]:
        return {uid: run.workers * MILLI for uid, run in self.core.running.items()}

    def used(self, held: dict[str, int], tenant: str) -> int:
        return sum(amount for uid, amount in held.items() if self.known[uid].tenant == tenant)

    def settle(self, now: float) -> None:
        for _ in range(len(self.known) + 3):
            before = self.held()
            decisions = self.core.plan(now)
            self.check(before, decisions)
            for d in decisions:
                if isinstance(d, Admit):
                    del self.waiting[d.uid]
            again = [d.uid for d in decisions if isinstance(d, Preempt)]
            for uid in again:
                self.submit(self.known[uid])
            if not again:
                return
        raise AssertionError("stopped in turns")

    def check(self, held: dict[str, int], decisions: list[Decision]) -> None:
        """Who takes back stays inside its own, and takes only from who is beyond it."""
        for d in decisions:
            if not isinstance(d, Admit):
                continue
            new = self.known[d.uid]
            gone = [p.uid for p in decisions if isinstance(p, Preempt) and p.preemptor == d.uid]
            for name in {self.known[uid].tenant for uid in gone} - {new.tenant}:
                theirs, own = (
                    [held[uid] for uid in gone if self.known[uid].tenant == name],
                    self.nominal[name],
                )
                assert own is None or self.used(held, name) - sum(theirs) + max(theirs) > own
            reclaims = any(
                self.known[uid].tenant != new.tenant and self.known[uid].priority >= new.priority
                for uid in gone
            )
            for uid in gone:
                del held[uid]
            held[d.uid] = new.workers_min * MILLI
            own = self.nominal[new.tenant]
            if reclaims:
                assert own is not None
                assert self.used(held, new.tenant) <= own
