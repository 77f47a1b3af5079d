"""The numbers of a wait for quota add up: what may be used is what is in use, what others hold of it and what is free."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mlp_hub.domain.errors import Reason
from mlp_hub.domain.resources import Quota
from mlp_hub.scheduler.core import plan_cycle
from mlp_hub.scheduler.forecast.why import explain
from mlp_hub.scheduler.model.types import AdmittedWorkload, CapacityWindow, Snapshot, Verdict, Wait
from mlp_hub.scheduler.reasons.quota import window
from mlp_language.message import Moment, TenantRef, msg
from support.said import about, who
from support.scheduler.scheduler_builders import job, node, runs, snapshot, tenant

EIGHT = 1_900_051_200.0  # 2030-03-18 08:00 UTC
HOUR = 3600.0


def verdict(s: Snapshot, uid: str = "asked", now: float = 0.0) -> Verdict:
    return next(d.verdict for d in plan_cycle(s, now) if d.uid == uid and isinstance(d, Wait))


def held(name: str, owner: str, cpu: float, user: str) -> AdmittedWorkload:
    return runs(job(name, cpu=cpu, tenant=owner, user=user), "n")


def pool(*running: AdmittedWorkload, asks: float, **red: Any) -> Snapshot:
    """Red and two others with four cores each in a cohort, on a node that is large enough; red asks for more."""
    tenants = tuple(
        tenant(n, cpu=4, cohort="main", **(red if n == "red" else {})) for n in ("red", "blue", "green")
    )
    return snapshot(
        job("asked", cpu=asks), tenants=tenants, running=running, nodes=(node(cpu=64),), min_run_s=30
    )


SCENES = {
    "others use their own": (
        pool(held("a", "red", 4, "ann"), held("b", "blue", 3, "eve"), asks=6),
        {"cpu_inuse": "job a of ann (4)", "cpu_others": "blue (3)"},
    ),
    "it borrows itself": (
        pool(held("a", "red", 6, "ann"), held("b", "blue", 3, "eve"), held("c", "green", 3, "eve"), asks=2),
        {"cpu_inuse": "job a of ann (6)", "cpu_others": "blue (3) and green (3)"},
    ),
    "its own is lent out": (
        pool(held("a", "red", 1, "ann"), held("b", "blue", 7, "eve"), held("c", "green", 4, "eve"), asks=2),
        {"cpu_inuse": "job a of ann (1)", "cpu_others": "blue (7) and green (4)", "cpu_lent": "blue"},
    ),
    "it may not borrow": (
        pool(
            held("a", "red", 3, "ann"),
            held("b", "blue", 4, "eve"),
            asks=2,
            borrowing_limit=Quota(cpu=0),
        ),
        {"cpu_inuse": "job a of ann (3)"},
    ),
}


@pytest.mark.parametrize("name", SCENES)
def test_the_facts_say_whose_each_part_is(name: str) -> None:
    scene, whose = SCENES[name]
    found = verdict(scene)
    assert {key: who(found, key) for key in whose} == whose
    assert {f.name for f in found.facts if f.who} == set(whose)


def test_a_tenant_whose_quota_is_lent_out_sees_from_whom_it_returns() -> None:
    assert about(verdict(SCENES["its own is lent out"][0])) == ["blue"]
    assert about(verdict(SCENES["it borrows itself"][0])) == ["red"]  # when jobs of its own end


@pytest.mark.parametrize("name", SCENES)
def test_the_numbers_add_up(name: str) -> None:
    found = verdict(SCENES[name][0])
    assert found.reason is Reason.WAITING_FOR_QUOTA
    n = found.numbers
    assert n["cpu_inuse"] + n.get("cpu_others", 0) + n["cpu_free"] == n["cpu_limit"]
    assert n.get("cpu_lent", 0) <= n.get("cpu_others", 0)
    assert n.get("cpu_borrowed", 0) == max(0, n["cpu_inuse"] - 4)
    assert n["cpu_asked"] > n["cpu_free"]


def booked(start: float, end: float, *running: AdmittedWorkload, **asked: Any) -> Snapshot:
    """Eight cores, all of which blue booked as demo."""
    window = CapacityWindow("blue", start, end, Quota(cpu=8000), "demo")
    tenants = (tenant("red", cpu=8), tenant("blue", cpu=8))
    s = snapshot(job("asked", tenant="red", **asked), tenants=tenants, nodes=(node(cpu=8),), running=running)
    return replace(s, bookings=(window,))


def test_a_job_held_back_by_a_future_window_shows_the_window_and_its_time() -> None:
    found = verdict(booked(EIGHT, EIGHT + 10 * HOUR), now=EIGHT - 1200)
    assert found.headline == msg(
        "{tenant} booked it {at}. Use --time-limit {n}s or less.",
        tenant=TenantRef("blue"),
        at=Moment(EIGHT, EIGHT - 1200),
        n=1200,
    )
    assert who(found, "booked") == "blue and window demo (2030-03-18 08:00 to 18:00 UTC)"
    assert found.numbers == {"opens_in": 1200.0, "window": 36_000.0}


def test_a_job_held_back_by_an_open_window_shows_the_window_and_its_end() -> None:
    scene = booked(EIGHT, EIGHT + 40 * HOUR)
    found = verdict(scene, now=EIGHT + 60)
    assert who(found, "cpu_kept") == "blue and window demo (2030-03-18 08:00 to 2030-03-20 00:00 UTC)"
    assert found.numbers["cpu_kept"] == 8
    why = explain(scene, "asked", EIGHT + 60)
    assert why.expected_start == EIGHT + 40 * HOUR
    assert why.expected_because == msg(
        "{parts}",
        parts=(
            msg(
                "{window} of {tenant} closes then",
                window=window(scene.bookings[0]),
                tenant=TenantRef("blue"),
            ),
        ),
    )
