"""Decisions of the scheduler as they are stored and as they cross the wire; an older hub's rows are read like today's."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec

from mlp_api.localized import Detail, Text
from mlp_api.platform import whatif as api
from mlp_hub.domain.errors import Reason
from mlp_hub.service.support.units import when
from mlp_hub.store.records import StoredDecision
from mlp_language.message import JobRef, Viewer, from_data

_EMPTY: dict[str, Any] = {
    "waited_for": None,
    "waited_reason": None,
    "changed": [],
    "passed": [],
    "passed_count": 0,
    "position": None,
    "order": None,
    "share": None,
    "rule": None,
    "nodes": [],
    "only": False,
    "victims": [],
    "spared": [],
}


def stored(uid: str, now: float, kind: str, parts: dict[str, Any]) -> StoredDecision:
    """Return the row of a decision."""
    return StoredDecision(uid, now, kind, msgspec.json.encode(parts).decode())


def passed_part(job: JobRef, reason: Reason) -> dict[str, Any]:
    """Return the stored part about a job that was passed for its own reason."""
    return {"who": dataclasses.asdict(job), "reason": reason.value}


def victim_part(job: JobRef, **facts: Any) -> dict[str, Any]:
    """Return what is stored of a job that could have been stopped."""
    return {"who": dataclasses.asdict(job), **facts}


def to_wire(record: StoredDecision, viewer: Viewer) -> api.Decision:
    """Return the parts of a decision that a reader who is this `viewer` can see."""
    d = {**_EMPTY, **msgspec.json.decode(record.text)}
    summary = from_data(d["summary"])
    return api.Decision(
        time=when(record.time),
        kind=record.kind,
        summary=Text(summary),
        detail=Detail(summary),
        waited_for=None if d["waited_for"] is None else Text(from_data(d["waited_for"])),
        waited_reason=d["waited_reason"],
        changed=[Text(from_data(m)) for m in d["changed"]],
        passed=[api.DecisionPassed(**_names(p, viewer), reason=p["reason"]) for p in d["passed"]],
        passed_count=d["passed_count"],
        position=d["position"],
        policy=d["policy"],
        order=d["order"],
        share=d["share"],
        rule=d["rule"],
        nodes=[_node_to(n) for n in d["nodes"]],
        only=d["only"],
        victims=[_victim_to(v, viewer) for v in d["victims"]],
        spared=[Text(from_data(m)) for m in d["spared"]],
    )


def _node_to(node: dict[str, Any]) -> api.DecisionNode:
    return api.DecisionNode(**{**node, "free_after": Text(from_data(node["free_after"]))})


def _victim_to(victim: dict[str, Any], viewer: Viewer) -> api.DecisionVictim:
    facts = {k: v for k, v in victim.items() if k not in ("who", "why")}
    return api.DecisionVictim(
        **{"right": None, **facts, **_names(victim, viewer)}, why=Text(from_data(victim["why"]))
    )


def _names(part: dict[str, Any], viewer: Viewer) -> dict[str, Any]:
    who = viewer.ref(JobRef(**part["who"]))
    return {"job": who.name, "user": who.user, "tenant": who.tenant, "replica": who.replica}
