"""Whose turn is next, and which tenants are above nominal, are kept from cycle to cycle: they are what looking at all tenants would find."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlp_hub.domain.resources import Quota, Resources
from mlp_hub.scheduler.cache.state import ClusterState
from mlp_hub.scheduler.core import Core
from mlp_hub.scheduler.fairness.tenants import MOST_NEAR, TenantTurns
from mlp_hub.scheduler.fairness.usage import UsageMeter
from mlp_hub.scheduler.model.types import (
    AdmittedWorkload,
    Node,
    PendingWorkload,
    SchedulingPolicy,
    TenantQueue,
)

COUNT = 24
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            (
                "start",
                "start",
                "end",
                "submit",
                "submit",
                "withdraw",
                "weight",
                "quota",
                "fork",
                "gone",
                "order",
                "cycle",
                "cycle",
            )
        ),
        st.integers(0, COUNT - 1),
        st.integers(0, 9),
    ),
    max_size=40,
)


ORDERS = ("priority", "fair", "maxmin", "fifo")


def a_state(policy: str, half_life: float, *, idle: bool = False) -> ClusterState:
    """Return one in which a job of each tenant waits; `idle`: nobody held anything lately."""
    tenants = [
        TenantQueue(
            f"t{i}",
            Quota(cpu=1000),
            weight=1 + i % 3,
            cohort="c",
            decayed_usage=0.0 if idle else i % 7 / 10,
            queue_order=ORDERS[i % 5 // 3],
        )
        for i in range(COUNT)
    ]
    nodes = (Node("n", Resources(cpu=100_000, ram=10**6)),)
    state = ClusterState(SchedulingPolicy(name=policy, half_life_s=half_life), nodes, tenants)
    for i in range(COUNT):
        state.submit(a_job(f"first-{i}", i, 0))
    return state


def a_job(uid: str, tenant: int, n: int) -> PendingWorkload:
    return PendingWorkload(
        uid, uid, f"u{n % 3}", f"t{tenant}", Resources(cpu=100 + 400 * n, ram=n), 1, 1, n / 2
    )


def keys(state: ClusterState) -> dict[str, Any]:
    """Return the key of each tenant with waiting jobs, worked out from nothing."""
    firsts = {
        name: state.members.first_of(queue, state.now, state.promised)
        for name, queue in state.queues.items()
        if queue.length
    }
    return {name: state.tenant_key(name, first) for name, first in firsts.items()}


def change(state: ClusterState, what: str, tenant: int, n: int, serial: int) -> ClusterState:
    name, uid = f"t{tenant}", f"j{serial}"
    if what == "fork":
        return state.fork()
    if what == "gone" and name in state.queues and not state.running.of_tenant.get(name):
        state.remove_tenant(name)
    elif name not in state.queues:
        state.set_tenants([TenantQueue(name, Quota(cpu=1000), cohort="c")])
    elif what == "start":
        state.hold(AdmittedWorkload(a_job(uid, tenant, n), ("n",), state.now), force=True)
    elif what == "end" and state.running:
        state.give_back(list(state.running)[n % len(state.running)])
    elif what == "submit":
        state.submit(a_job(uid, tenant, n))
    elif what == "withdraw" and state.waiting:
        state.withdraw(list(state.waiting)[n % len(state.waiting)])
    elif what == "weight":
        state.set_tenants([replace(state.queues[name].tenant, weight=n / 2)])
    elif what == "order":
        state.set_tenants([replace(state.queues[name].tenant, queue_order=ORDERS[n % 4])])
    elif what == "quota":
        state.set_tenants([replace(state.queues[name].tenant, quota=Quota(cpu=500 * n))])
    return state


@given(
    STEPS,
    st.sampled_from(("fair", "maxmin", "priority")),
    st.sampled_from((1.0, 60.0, 3600.0)),
    st.booleans(),
)
def test_the_next_tenant_is_found_after_any_changes_and_stays_the_same_within_a_cycle(
    steps, policy, half_life, idle
) -> None:
    state, now = a_state(policy, half_life, idle=idle), 0.0
    began: dict[str, Any] = {}
    for serial, (what, tenant, n) in enumerate(steps):
        if what == "cycle":
            now += (0.1, 5.0, 500.0)[n % 3]
            state.begin_cycle(now)
            state.promised = (
                list(state.waiting)[tenant % len(state.waiting)] if n % 2 and state.waiting else None
            )
            began = keys(state)
            assert state.next_tenants(5) == sorted(began, key=began.__getitem__)[:5]
            assert state.next_tenants(9) == sorted(began, key=began.__getitem__)[:9]
            state.promised = None
            continue
        state = change(state, what, tenant, n, serial)
        if what == "fork":
            began = {}
        for name, key in began.items():
            if name in state.queues and state.queues[name].length:
                assert state.key_of(name) == key
    state.begin_cycle(now + 1)
    first = state.first_tenants()
    fresh = keys(state)
    few = len(fresh) <= 16
    assert first == (list(fresh) if few else sorted(fresh, key=fresh.__getitem__)[:16])


def calls_of(monkeypatch: pytest.MonkeyPatch, cls: type, name: str) -> list[tuple[Any, ...]]:
    """Return the list in which the arguments of all calls of a method are kept from now on."""
    calls: list[tuple[Any, ...]] = []
    real: Callable[..., Any] = getattr(cls, name)

    def noted(*args: Any, **options: Any) -> Any:
        calls.append(args)
        return real(*args, **options)

    monkeypatch.setattr(cls, name, noted)
    return calls


def a_crowd(policy: str, many: int, order: str, usage: Callable[[int], float]) -> Core:
    tenants = [
        TenantQueue(f"t{i}", Quota(cpu=10**7), decayed_usage=usage(i), queue_order=order) for i in range(many)
    ]
    core = Core(SchedulingPolicy(name=policy), [Node("n", Resources(cpu=8000, ram=10**9))], tenants)
    for i in range(many):
        core.submit(
            PendingWorkload(f"j{i}", f"j{i}", "u", f"t{i}", Resources(cpu=1000, ram=1), 1, 1, float(i))
        )
    core.plan(1.0)
    return core


@pytest.mark.parametrize("policy", ["fair", "maxmin"])
@pytest.mark.parametrize("order", ["priority", "fair"])
@pytest.mark.parametrize("usage", [lambda _: 0.0, lambda i: 1.0 + i / 8], ids=["none", "some"])
def test_a_cycle_looks_at_a_few_tenants_however_many_wait(monkeypatch, policy, order, usage) -> None:
    core = a_crowd(policy, 500, order, usage)
    lines = calls_of(monkeypatch, UsageMeter, "standings")
    looked_up = calls_of(monkeypatch, TenantTurns, "key")
    cycles = 8
    for i in range(cycles):
        core.end(f"j{i}", 3.0 + i)
        core.plan(3.0 + i)
    assert sorted(core.state.running) == sorted(f"j{i}" for i in range(8, 16))
    assert not lines  # nobody's place in the line is worked out anew
    assert len(looked_up) < cycles * (2 * 64 + MOST_NEAR)


def test_a_line_crowded_by_ties_is_not_rebuilt(monkeypatch) -> None:
    core = a_crowd("fair", 500, "priority", lambda _: 1.0)
    lines = calls_of(monkeypatch, UsageMeter, "standings")
    for i in range(8):
        core.end(f"j{i}", 3.0 + i)
        core.plan(3.0 + i)
    assert sorted(core.state.running) == sorted(f"j{i}" for i in range(8, 16))
    assert not lines


def test_a_line_whose_shares_have_moved_is_rebuilt_once(monkeypatch) -> None:
    policy = SchedulingPolicy(name="fair", half_life_s=1000.0)
    nodes = (Node("n", Resources(cpu=1000, ram=100)),)
    # the first ones hold on to what they always held; the others held a little more, which is forgotten
    a_tenth = 0.1 * policy.half_life_s / math.log(2)
    usage = [a_tenth if i < 5 else 2 * a_tenth + 0.001 * i for i in range(500)]
    state = ClusterState(policy, nodes, [TenantQueue(f"t{i}", decayed_usage=u) for i, u in enumerate(usage)])
    for i in range(500):
        state.submit(a_job(f"j{i}", i, 0))
    for i in range(5):
        state.hold(AdmittedWorkload(a_job(f"r{i}", i, 0), ("n",), 0.0))
    lines = calls_of(monkeypatch, UsageMeter, "standings")
    for now in (0.0, 1.0, 200.0, 200.0, 201.0):
        state.begin_cycle(now)
        found = keys(state)
        assert state.next_tenants(5) == sorted(found, key=found.__getitem__)[:5]
    assert len(lines) == 2


@given(STEPS)
def test_tenants_above_nominal_are_found_whatever_happened(steps) -> None:
    state = a_state("fair", 60.0)
    for serial, (what, tenant, n) in enumerate(steps):
        state = change(state, what, tenant, n, serial)
        holders = state.running.preemptible
        line = state.overshare.line(holders)
        above = [
            name
            for name in holders
            if name in state.queues
            and (used := state.quotas.used(name))
            and (state.quotas.borrows(name, used) or any(state.quotas.nominal(name, d) is None for d in used))
        ]
        above.sort(key=state.weighted_share, reverse=True)
        assert [name for _, _, name in line] == above
        assert state.overshare.any_but("t0", holders) == any(name != "t0" for name in above)


@pytest.mark.parametrize("many", [5, 40])
def test_the_place_of_a_job_counts_those_before_it_in_all_classes(many: int) -> None:
    state = ClusterState(SchedulingPolicy(), (), (TenantQueue("t0"),))
    uids = [f"j{i:02}" for i in range(many)]
    for i, uid in enumerate(uids):
        job = a_job(uid, 0, 0)
        state.submit(replace(job, queued_at=float(i), per_worker=Resources(cpu=100 * (i % 4 or i + 10))))
    for gone in uids[3::7]:
        state.withdraw(gone)
    queue = state.fork().queues["t0"]
    there = [uid for uid in uids if uid in state.waiting]
    assert [queue.position(state.waiting[uid]) for uid in there] == list(range(1, len(there) + 1))
