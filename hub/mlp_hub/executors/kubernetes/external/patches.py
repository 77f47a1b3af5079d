"""Changes of the hub to an object that somebody brought: its hold, and its pods' nodes and names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlp_hub.executors.base import LaunchSpec
from mlp_hub.executors.kubernetes.attempt_claims import END, End
from mlp_hub.executors.kubernetes.external.views import JOB_UID, NODES, REFUSED, WAITS, ExternalView
from mlp_hub.executors.kubernetes.installation import Installation
from mlp_hub.executors.kubernetes.nodes.affinity import on_nodes
from mlp_hub.executors.nodes import TENANT as TENANT_TAINT
from mlp_hub.kubernetes import names
from mlp_hub.kubernetes.kinds import Object

UNTIMED: Object = {"status": {"startTime": None}}
"""Given: patch of the status by which a plain Job that is held again takes other places for its pods."""


def labels(at: Installation, spec: LaunchSpec) -> dict[str, str]:
    """Return the labels of an object that is let run, and of its pods."""
    return {
        **at.own,
        names.COMPONENT: "job",
        names.TENANT: names.label_value(spec.tenant),
        names.USER: names.label_value(spec.user),
        names.JOB: names.label_value(spec.job),
        names.RUN: str(spec.run),
        names.ATTEMPT: names.label_value(spec.attempt),
        names.BROUGHT: "true",
    }


def lets_run(at: Installation, view: ExternalView, spec: LaunchSpec, version: str, end: End | None) -> Object:
    """Return the patch by which an attempt begins; with an `end` it has ended before it began, and is held."""
    own = labels(at, spec)
    meta = {
        "resourceVersion": version,
        "labels": own,
        "annotations": {
            END: None if end is None else end.text(),
            NODES: ",".join(sorted(set(spec.placement))),
            WAITS: None,
        },
    }
    if end is not None:
        return {"metadata": meta}
    first = _first_ranks(view)
    templates = {
        role: {
            "metadata": {
                "labels": {
                    **own,
                    names.ROLE: names.label_value(role.lower()),
                    names.NETWORK: spec.network,
                    **({names.FIRST_RANK: str(first[role])} if role in first else {}),
                }
            },
            "spec": _where(at, spec),
        }
        for role, _ in view.parts
    }
    return {"metadata": meta, "spec": view.form.holds(False) | view.form.patch(templates)}


def holds(view: ExternalView, end: End | None = None) -> Object:
    """Return the patch by which an object is held, and how its attempt ends so."""
    found: Object = {"spec": view.form.holds(True)}
    if end is not None:
        found["metadata"] = {"uid": view.what.uid, "annotations": {END: end.text()}}
    return found


def forgets(view: ExternalView) -> Object:
    """Return the patch after which an object is of no attempt; pods that somebody else lets it make are refused."""
    meta = {
        "uid": view.what.uid,
        "labels": {names.ATTEMPT: None},
        "annotations": {END: None},
    }
    if view.over or view.form.replicas is None:
        return {"metadata": meta}
    bare = {"metadata": {"labels": {names.TENANT: None, names.ATTEMPT: None}}}
    return {
        "metadata": meta,
        "spec": view.form.holds(True) | view.form.patch({role: bare for role, _ in view.parts}),
    }


def accepts(job: str, name: str) -> Object:
    """Return the patch by which an object is a job of the hub's."""
    return {"metadata": {"labels": {names.JOB: names.label_value(name)}, "annotations": {JOB_UID: job}}}


def explains(why: str) -> Object:
    """Return the patch by which an object says why it waits."""
    return {"metadata": {"annotations": {WAITS: why or None}}}


def refuses(why: str) -> Object:
    """Return the patch by which an object is none, and says why."""
    return {"metadata": {"annotations": {REFUSED: why}}}


def _first_ranks(view: ExternalView) -> Mapping[str, int]:
    """Return by which rank the pods of a role begin to count; a plain Job's are not numbered."""
    if view.form.replicas is None:
        return {}
    found, first = {}, 0
    for role, count in view.parts:
        found[role] = 0 if view.counted_through else first
        first += count
    return found


def _where(at: Installation, spec: LaunchSpec) -> dict[str, Any]:
    own = {"key": TENANT_TAINT, "operator": "Equal", "value": spec.tenant, "effect": "NoSchedule"}
    chosen = on_nodes(spec.placement)
    affinity = None if chosen is None else {"nodeAffinity": chosen}
    return {"tolerations": [own, *map(dict, at.tolerations)], "affinity": affinity}
