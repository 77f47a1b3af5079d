"""Telling why takes a small part of the time: large plans, and too many in a row, get the short form."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec

from mlp_hub.domain.errors import Reason
from mlp_hub.scheduler.core import Core
from mlp_hub.scheduler.model.types import Snapshot, Verdict, Wait
from mlp_hub.service.reasons import decisions
from mlp_hub.service.reasons.decisions import DecisionLog
from mlp_hub.store.records import StoredDecision
from mlp_language.message import from_data, msg, to_data
from support.scheduler.scheduler_builders import job, node, runs, snapshot


class Kept:
    """Stands for a transaction."""

    def __init__(self) -> None:
        self.records: list[StoredDecision] = []
        self.decisions = self

    def add(self, records: list[StoredDecision]) -> None:
        self.records += records


def kept(teller: DecisionLog, s: Snapshot, now: float, *uids: str) -> list[dict[str, Any]]:
    core = Core.from_snapshot(s, now)
    told = teller.cycle(core.plan(now), core.grounds, {}, s.policy.name, now)
    tx = Kept()
    told.store(tx, uids)  # type: ignore[arg-type] # all that it uses of one
    return [msgspec.json.decode(r.text) for r in tx.records]


def summary(told: dict[str, Any]) -> str:
    return str(from_data(told["summary"]))


def crowd(n: int) -> Snapshot:
    return snapshot(*(job(f"j{i:04}", at=float(i)) for i in range(n)))


def test_only_what_takes_effect_is_kept() -> None:
    s = snapshot(job("a"), job("b", at=1.0))
    assert len(kept(DecisionLog(None), s, 0.0, "b")) == 1  # type: ignore[arg-type]


def test_a_plan_of_very_many_decisions_gets_the_short_form() -> None:
    s = snapshot(
        *(job(f"j{i}", at=float(i)) for i in range(decisions.MOST_EXPLAINED + 1)), nodes=(node(cpu=99),)
    )
    (short,) = kept(DecisionLog(None), s, 0.0, "j3")  # type: ignore[arg-type]
    assert short == {
        "summary": to_data(
            msg("admitted {where} in a cycle with very many decisions", where=msg("on node {node}", node="n"))
        ),
        "policy": "fair",
    }


def test_plans_are_told_in_full_as_long_as_their_share_of_the_time_lasts() -> None:
    teller = DecisionLog(None)  # type: ignore[arg-type]
    s = snapshot(*(job(f"j{i}", at=float(i)) for i in range(decisions.MOST_EXPLAINED)), nodes=(node(cpu=99),))
    full = ["nodes" in kept(teller, s, 0.0, "j3")[0] for _ in range(30)]
    assert full[0]
    assert not full[-1]
    assert full == sorted(full, reverse=True)
    assert "nodes" in kept(teller, s, 4.0, "j3")[0]


def test_a_decision_is_told_in_full_however_large_the_state_is() -> None:
    assert "nodes" in kept(DecisionLog(None), crowd(6000), 0.0, "j0000")[0]  # type: ignore[arg-type]


def test_whom_a_job_passed_is_kept_with_the_types_of_their_reasons() -> None:
    s = snapshot(job("large", workers=9), job("small", at=1.0))
    (told,) = kept(DecisionLog(None), s, 0.0, "small")  # type: ignore[arg-type]
    assert [(p["who"]["uid"], p["reason"]) for p in told["passed"]] == [("large", "WaitingForResources")]
    assert (told["passed_count"], told["order"], told["rule"]) == (1, "priority", "fgd")


def test_the_loss_from_stopping_a_job_is_given_as_its_maximum() -> None:
    cheap = runs(job("cheap", workers=4, priority=50), *["n"] * 4, since=0.0)
    s = snapshot(job("urgent", workers=4, at=90.0), running=(cheap,))
    (told,) = kept(DecisionLog(None), s, 100.0, "cheap")  # type: ignore[arg-type]
    assert summary(told).endswith(
        " It was the only one that could be stopped. That loses at most 400 core-seconds of work, minus the work "
        "that it saves when it is asked to end."
    )
    (victim,) = told["victims"]
    assert (victim["lost_work"], victim["lost_unit"]) == (400.0, "core-seconds")
    young = replace(s, running=(replace(cheap, started_at=100.0),))
    (told,) = kept(DecisionLog(None), young, 100.0, "cheap")  # type: ignore[arg-type]
    assert summary(told).endswith(" That loses no work.")


def test_an_admission_names_other_ended_jobs_separately_from_those_that_made_room() -> None:
    cheap = runs(job("cheap", workers=2, priority=50), *["n"] * 2, since=19.0)
    other = runs(job("other", workers=2, priority=200), *["n"] * 2)
    urgent = job("urgent", workers=4, at=5.0)
    teller = DecisionLog(None)  # type: ignore[arg-type]
    core = Core.from_snapshot(snapshot(urgent, running=(cheap, other)), 10.0)
    assert not [d for d in core.plan(10.0) if not isinstance(d, Wait)]
    core.end("other", 20.0)
    waited = {"urgent": Wait("urgent", Verdict(Reason.WAITING_FOR_RESOURCES, msg("Needs 4 ranks.")), 1)}
    tx = Kept()
    teller.cycle(core.plan(20.0), core.grounds, waited, "fair", 20.0).store(tx, ["urgent"])  # type: ignore[arg-type]
    (told,) = [msgspec.json.decode(r.text) for r in tx.records]
    assert summary(told) == "admitted on node n; room was made by the end of job cheap of ann"
    assert [str(from_data(m)) for m in told["changed"]] == ["job other of ann ended"]
