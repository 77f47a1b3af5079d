"""The numbers of a wait for quota add up: what may be used is what is in use, what others hold of it and what is free."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlp_hub.domain.errors import Reason
from mlp_hub.domain.resources import Quota
from mlp_hub.scheduler.core import plan_cycle
from mlp_hub.scheduler.model import Booking, RunningJob, Snapshot, Verdict, Wait
from mlp_hub.scheduler.why import explain
from mlp_hub.scheduler.words import moment
from scheduler_builders import job, node, runs, snapshot, tenant

EIGHT = 1_900_051_200.0  # 2030-03-18 08:00 UTC
HOUR = 3600.0


def verdict(s: Snapshot, uid: str = "asked", now: float = 0.0) -> Verdict:
    return next(d.verdict for d in plan_cycle(s, now) if d.uid == uid and isinstance(d, Wait))


def held(name: str, owner: str, cpu: float, user: str) -> RunningJob:
    return runs(job(name, cpu=cpu, tenant=owner, user=user), "n")


def pool(*running: RunningJob, asks: float, **red: Any) -> Snapshot:
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
        "red may use 12 cpu, 4 of its own and 8 when others leave it idle; 4 in use by job a of ann (4); 3 held by "
        "blue; 5 free now; this job asks for 6",
    ),
    "it borrows itself": (
        pool(held("a", "red", 6, "ann"), held("b", "blue", 3, "eve"), held("c", "green", 3, "eve"), asks=2),
        "red may use 12 cpu, 4 of its own and 8 when others leave it idle; 6 in use by job a of ann (6), 2 of it "
        "borrowed; 6 held by blue (3) and green (3); 0 free now; this job asks for 2",
    ),
    "its own is lent out": (
        pool(held("a", "red", 1, "ann"), held("b", "blue", 7, "eve"), held("c", "green", 4, "eve"), asks=2),
        "red may use 12 cpu, 4 of its own and 8 when others leave it idle; 1 in use by job a of ann (1); 11 held by "
        "blue (7) and green (4), 3 of it lent out of the quota of red to blue; 0 free now; this job asks for 2; "
        "red takes back its own from blue: jobs of blue may be stopped for it once they have run for 30 s, the first in 30 s",
    ),
    "it may not borrow": (
        pool(
            held("a", "red", 3, "ann"),
            held("b", "blue", 4, "eve"),
            asks=2,
            borrowing_limit=Quota(cpu=0),
        ),
        "red may use 4 cpu; 3 in use by job a of ann (3); 1 free now; this job asks for 2",
    ),
}


@pytest.mark.parametrize("name", SCENES)
def test_the_sentence_says_whose_each_part_is(name: str) -> None:
    scene, message = SCENES[name]
    assert verdict(scene).message == message


@pytest.mark.parametrize("name", SCENES)
def test_the_numbers_add_up(name: str) -> None:
    found = verdict(SCENES[name][0])
    assert found.reason is Reason.WAITING_FOR_QUOTA
    n = found.numbers
    assert n["cpu_inuse"] + n.get("cpu_others", 0) + n["cpu_free"] == n["cpu_limit"]
    assert n.get("cpu_lent", 0) <= n.get("cpu_others", 0)
    assert n.get("cpu_borrowed", 0) == max(0, n["cpu_inuse"] - 4)
    assert n["cpu_asked"] > n["cpu_free"]


def booked(start: float, end: float, *running: RunningJob, **asked: Any) -> Snapshot:
    """Eight cores, all of which blue booked as demo."""
    window = Booking("blue", start, end, Quota(cpu=8000), "demo")
    tenants = (tenant("red", cpu=8), tenant("blue", cpu=8))
    s = snapshot(job("asked", tenant="red", **asked), tenants=tenants, nodes=(node(cpu=8),), running=running)
    return replace(s, bookings=(window,))


def test_who_is_held_by_a_window_to_come_reads_which_one_and_when_it_is() -> None:
    found = verdict(booked(EIGHT, EIGHT + 10 * HOUR), now=EIGHT - 1200)
    assert found.message == (
        "would fit, but may still hold what blue booked, 8 cpu, when window demo (2030-03-18 08:00 to 18:00 UTC) "
        "opens in 20 min; with --time-limit 1200s or less it could start now"
    )
    assert found.numbers == {"opens_in": 1200.0, "window": 36_000.0}


def test_who_is_held_by_an_open_window_reads_which_one_and_when_it_closes() -> None:
    scene = booked(EIGHT, EIGHT + 40 * HOUR)
    found = verdict(scene, now=EIGHT + 60)
    assert found.message == (
        "red may use 0 cpu; 0 in use; of what the nodes have, 8 for blue by window demo (2030-03-18 08:00 to 2030-03-20 "
        "00:00 UTC) is kept free; this job asks for 1"
    )
    why = explain(scene, "asked", EIGHT + 60)
    assert why.expected_start == EIGHT + 40 * HOUR
    assert why.expected_because == (
        "window demo (2030-03-18 08:00 to 2030-03-20 00:00 UTC) of blue closes then"
    )


@given(st.integers(0, 253_402_300_799))
def test_a_moment_is_that_of_the_calendar(at: int) -> None:
    assert " ".join(moment(at)) == f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S}"
