"""Guarantees of tenants that are idle for long shrink to a floor and come back at once."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlp_hub.domain.resources import Quota
from mlp_hub.scheduler.model.types import TenantQueue
from mlp_hub.scheduler.quota.idle import IdlePolicy, IdleTenant, Lowered, Restored, idle_quota, next_idle
from mlp_hub.scheduler.quota.tree import QuotaTree

HOUR = 3600.0
POLICY = IdlePolicy(after_s=2 * HOUR, floor=0.5)
RED = IdleTenant(
    "red",
    Quota(cpu=10_000, gpu=5000, ram=4096, kinds={"a100": 3000}),
    lending_limit=Quota(cpu=4000, gpu=5000, rom=7, kinds={"a100": 0, "h100": 0}),
    reserved=Quota(gpu=1001, ram=1024),
    idle_since=1000.0,
)


def plainly(decisions):
    """Return decisions with their sentences as text."""
    return [replace(d, message=str(d.message)) for d in decisions]


RED_LOWERED = Lowered(
    "red",
    0.5,
    Quota(cpu=7000, gpu=5000, rom=7, kinds={"a100": 1500, "h100": 0}),
    Quota(gpu=501, ram=512),
    "red has been idle for 3 h, the limit is 2 h: its guarantee is lowered to 50 %, it keeps back 3 instead of 6 cpu, "
    "it keeps back 1.5 instead of 3 a100 gpu, it reserves 0.501 instead of 1.001 gpu and "
    "it reserves 512 instead of 1024 MiB ram; it is restored as soon as one of its jobs waits",
)
RED_RESTORED = Restored(
    "red",
    RED.lending_limit,
    RED.reserved,
    "red is no longer idle: its guarantee is restored to 100 %, it keeps back 6 cpu, it keeps back 3 a100 gpu, "
    "it reserves 1.001 gpu and it reserves 1024 MiB ram",
)
NOW = 1000.0 + 3 * HOUR


def test_a_long_idle_tenant_keeps_back_and_reserves_half_and_the_log_has_the_numbers():
    assert plainly(idle_quota([RED], NOW, POLICY)) == [RED_LOWERED]


def test_the_time_is_up_at_the_very_moment_that_was_told():
    at = next_idle([replace(RED, name="later", idle_since=1500.0), RED], POLICY)
    assert at == 1000.0 + 2 * HOUR
    assert idle_quota([RED], at - 1, POLICY) == []
    assert [d.tenant for d in idle_quota([RED], at, POLICY)] == ["red"]


def test_the_policy_is_off_unless_it_is_turned_on():
    assert idle_quota([RED], 1e12, IdlePolicy()) == []
    assert next_idle([RED], IdlePolicy()) is None


def test_a_lowered_tenant_is_left_alone_and_an_active_one_gets_everything_back_at_once():
    lowered = replace(RED, lowered=RED_LOWERED)
    assert idle_quota([lowered], NOW + HOUR, POLICY) == []
    assert next_idle([lowered], POLICY) is None
    assert plainly(idle_quota([replace(lowered, idle_since=None)], NOW + HOUR, POLICY)) == [RED_RESTORED]
    assert idle_quota([replace(RED, idle_since=None)], NOW + HOUR, POLICY) == []


@pytest.mark.parametrize(
    ("tenant", "policy", "why"),
    [
        (RED, IdlePolicy(), "is idle, but guarantees of idle teams are not lowered any more"),
        (RED, IdlePolicy(after_s=4 * HOUR), "has not been idle for 4 h yet"),
        (RED, IdlePolicy(after_s=HOUR, floor=1.0), "has no guarantee left that could be lowered"),
    ],
)
def test_another_policy_gives_back_what_it_would_not_have_taken(tenant, policy, why):
    expected = replace(RED_RESTORED, message=RED_RESTORED.message.replace("is no longer idle", why))
    assert plainly(idle_quota([replace(tenant, lowered=RED_LOWERED)], NOW, policy)) == [expected]


def test_a_lowered_tenant_without_a_guarantee_is_restored_with_that_reason():
    bare = IdleTenant("red", Quota(cpu=1000), idle_since=1000.0, lowered=RED_LOWERED)
    assert plainly(idle_quota([bare], NOW, POLICY)) == [
        Restored(
            "red",
            None,
            None,
            "red has no guarantee left that could be lowered: its guarantee is restored to 100 %, "
            "it keeps back and reserves nothing",
        )
    ]


def test_a_new_floor_or_quota_is_decided_again_from_the_configuration():
    lowered = replace(RED, lowered=RED_LOWERED)
    (to_none,) = idle_quota([lowered], NOW, replace(POLICY, floor=0.0))
    assert (to_none.share, to_none.lending_limit, to_none.reserved) == (
        0.0,
        Quota(cpu=10_000, gpu=5000, rom=7, kinds={"a100": 3000, "h100": 0}),
        Quota(gpu=0, ram=0),
    )
    (bigger,) = idle_quota([replace(lowered, quota=replace(RED.quota, cpu=20_000))], NOW, POLICY)
    assert bigger.lending_limit == Quota(cpu=12_000, gpu=5000, rom=7, kinds={"a100": 1500, "h100": 0})


def test_a_tenant_that_keeps_nothing_back_has_nothing_to_lower():
    tenants = [
        IdleTenant("lends-all", Quota(cpu=10), lending_limit=Quota(cpu=12), idle_since=0.0),
        IdleTenant("no-limits", Quota(), lending_limit=Quota(cpu=0), idle_since=0.0),
        IdleTenant("reserves-nothing", Quota(cpu=10), reserved=Quota(cpu=0), idle_since=0.0),
    ]
    assert idle_quota(tenants, 1e9, POLICY) == []
    assert next_idle(tenants, POLICY) is None


@pytest.mark.parametrize(
    "wrong", [{"after_s": -1.0}, {"floor": 1.1}, {"floor": -0.1}, {"after_s": float("nan")}]
)
def test_a_policy_that_makes_no_sense_is_refused(wrong):
    with pytest.raises(ValueError, match="; use "):
        IdlePolicy(**wrong)


def test_others_can_borrow_the_lowered_guarantee_of_an_idle_tenant_and_it_can_reclaim_it():
    red = TenantQueue("red", Quota(cpu=10_000), cohort="all", lending_limit=Quota(cpu=4000))
    tree = QuotaTree([red, TenantQueue("blue", Quota(cpu=2000), cohort="all")])
    assert tree.available("blue", "cpu") == 6000
    idle = IdleTenant("red", red.quota, red.lending_limit, idle_since=0.0)
    (lowered,) = idle_quota([idle], NOW, POLICY)
    tree.set_tenants([replace(red, lending_limit=lowered.lending_limit)])
    assert tree.available("blue", "cpu") == 9000
    tree.charge("blue", {"cpu": 9000})
    (restored,) = idle_quota([replace(idle, idle_since=None, lowered=lowered)], NOW, POLICY)
    tree.set_tenants([replace(red, lending_limit=restored.lending_limit)])
    assert tree.available("red", "cpu") == 3000
    assert tree.may_reclaim("red", "blue", ["cpu"], {"cpu": 10_000})


amounts = st.none() | st.integers(0, 50_000)
quotas = st.builds(
    lambda cpu, gpu, kind: Quota(cpu=cpu, gpu=gpu, kinds={} if kind is None else {"a100": kind}),
    amounts,
    amounts,
    amounts,
)


@given(quotas, quotas, quotas, st.integers(0, 100))
def test_nobody_falls_below_the_floor_and_deciding_again_decides_nothing(quota, lending, reserved, percent):
    policy = IdlePolicy(0.0, percent / 100)
    tenant = IdleTenant("t", quota, lending, reserved, idle_since=0.0)
    for decision in idle_quota([tenant], 1.0, policy):
        for d in ("cpu", "gpu"):
            own, before, after = getattr(quota, d), getattr(lending, d), getattr(decision.lending_limit, d)
            if own is None or before is None:
                assert after == before
            else:
                assert (
                    max(0, own - before) * percent <= 100 * max(0, own - after) <= 100 * max(0, own - before)
                )
            before, after = getattr(reserved, d), getattr(decision.reserved, d)
            assert after == before or before * percent <= 100 * after < 100 * before
        assert idle_quota([replace(tenant, lowered=decision)], 2.0, policy) == []
