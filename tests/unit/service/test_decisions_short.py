"""Explaining never costs more than deciding: large plans and large states get the short form."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec

from mlp_hub.domain.errors import Reason
from mlp_hub.scheduler.core import Core
from mlp_hub.scheduler.model import Snapshot, Verdict, Wait
from mlp_hub.service import decisions
from mlp_hub.service.decisions import Decisions
from mlp_hub.store.records import StoredDecision
from scheduler_builders import job, node, runs, snapshot


class Kept:
    """Stands for a transaction."""

    def __init__(self) -> None:
        self.records: list[StoredDecision] = []
        self.decisions = self

    def add(self, records: list[StoredDecision]) -> None:
        self.records += records


def kept(teller: Decisions, s: Snapshot, now: float, *uids: str) -> list[dict[str, Any]]:
    core = Core.of(s, now)
    before = teller.wants(core, now)
    told = teller.cycle(before, core.plan(now), {}, s.policy.name, now)
    tx = Kept()
    told.store(tx, uids)  # type: ignore[arg-type] # all that it uses of one
    return [msgspec.json.decode(r.text)["all"] for r in tx.records]


def crowd(n: int) -> Snapshot:
    return snapshot(*(job(f"j{i:04}", at=float(i)) for i in range(n)))


def test_only_what_takes_effect_is_kept() -> None:
    s = snapshot(job("a"), job("b", at=1.0))
    assert len(kept(Decisions(None), s, 0.0, "b")) == 1  # type: ignore[arg-type]


def test_a_plan_of_very_many_decisions_gets_the_short_form() -> None:
    s = snapshot(
        *(job(f"j{i}", at=float(i)) for i in range(decisions.MOST_EXPLAINED + 1)), nodes=(node(cpu=99),)
    )
    (short,) = kept(Decisions(None), s, 0.0, "j3")  # type: ignore[arg-type]
    assert short == {
        "summary": "admitted on node n in a cycle of very many decisions",
        "policy": "fair",
    }


def test_after_a_plan_of_many_decisions_the_next_gets_the_short_form_and_then_the_long_one_again() -> None:
    teller = Decisions(None)  # type: ignore[arg-type]
    many = snapshot(
        *(job(f"j{i}", at=float(i)) for i in range(decisions.MANY_IN_A_ROW + 1)), nodes=(node(cpu=99),)
    )
    few = snapshot(job("a"))
    told = [
        kept(teller, s, 60.0 * i, uid)[0] for i, (s, uid) in enumerate([(many, "j3"), (few, "a"), (few, "a")])
    ]
    assert ["nodes" in each for each in told] == [True, False, True]


def test_a_large_state_is_explained_as_long_as_its_share_of_the_time_lasts() -> None:
    teller = Decisions(None)  # type: ignore[arg-type]
    s = crowd(2500)
    full = ["nodes" in kept(teller, s, 0.0, "j0000")[0] for _ in range(40)]
    assert full[0]
    assert not full[-1]
    assert full == sorted(full, reverse=True)
    assert "nodes" in kept(teller, s, 4.0, "j0000")[0]


def test_a_huge_state_is_never_explained() -> None:
    assert "nodes" not in kept(Decisions(None), crowd(6000), 0.0, "j0000")[0]  # type: ignore[arg-type]


def test_what_stopping_a_job_loses_is_said_as_the_most_that_it_may_be() -> None:
    cheap = runs(job("cheap", workers=4, priority=50), *["n"] * 4, since=0.0)
    s = snapshot(job("urgent", workers=4, at=90.0), running=(cheap,))
    (told,) = kept(Decisions(None), s, 100.0, "cheap")  # type: ignore[arg-type]
    assert told["summary"].endswith(
        ". It was the only one that could be stopped; stopping it loses at most 400 core-seconds of work, less what it "
        "saves when it is asked to end"
    )
    (victim,) = told["victims"]
    assert (victim["lost_work"], victim["lost_unit"]) == (400.0, "core-seconds")
    young = replace(s, running=(replace(cheap, started_at=100.0),))
    (told,) = kept(Decisions(None), young, 100.0, "cheap")  # type: ignore[arg-type]
    assert told["summary"].endswith("; stopping it loses no work")


def test_an_admission_names_what_had_ended_besides_those_that_make_room_for_it() -> None:
    cheap = runs(job("cheap", workers=2, priority=50), *["n"] * 2)
    other = runs(job("other", workers=2, priority=200), *["n"] * 2)
    urgent = job("urgent", workers=4, at=5.0)
    teller = Decisions(None)  # type: ignore[arg-type]
    assert kept(teller, snapshot(urgent, running=(cheap, other)), 10.0) == []
    after = Core.of(snapshot(urgent, running=(cheap,)), 20.0)
    before = teller.wants(after, 20.0)
    waited = {"urgent": Wait("urgent", Verdict(Reason.WAITING_FOR_RESOURCES, "needs 4 ranks", {}), 1)}
    tx = Kept()
    teller.cycle(before, after.plan(20.0), waited, "fair", 20.0).store(tx, ["urgent"])  # type: ignore[arg-type]
    (told,) = [msgspec.json.decode(r.text)["all"] for r in tx.records]
    assert told["summary"] == "admitted on node n, after job cheap of ann was stopped for it"
    assert told["changed"] == ["job other of ann ended"]
