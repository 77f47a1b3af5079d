"""Kept data of an object that somebody brought."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import Any

import msgspec

from mlp_hub.domain.jobs.job import ExternalJob
from mlp_hub.domain.resources import MILLI, Resources
from mlp_hub.executors.external import ObservedExternalJob
from mlp_hub.executors.kubernetes.attempt_claims import END, End
from mlp_hub.executors.kubernetes.external.forms import ExternalForm, ExternalPart
from mlp_hub.executors.kubernetes.installation import Installation
from mlp_hub.executors.kubernetes.nodes.amounts import MIB, NONE, NodeAmount
from mlp_hub.executors.kubernetes.nodes.requests import requests_of
from mlp_hub.executors.kubernetes.tenancy.objects.limits import UNTOLD
from mlp_hub.executors.kubernetes.views import seconds
from mlp_hub.kubernetes import names
from mlp_hub.kubernetes.kinds import Object, labels_of, name_of, namespace_of
from mlp_language.message import Message, msg

USER = names.USER
"""Contract: annotation that says who brought it; admission policies see to it that nobody says another's name."""
JOB_UID = "mlp-hub/job-uid"
"""Contract: annotation with the job that it is."""
REFUSED = "mlp-hub/refused"
"""Contract: annotation that says why it will not run."""
WAITS = "mlp-hub/waits"
"""Contract: annotation that says why it waits; it changes when the kind of reason does, not with each number."""
NODES = "mlp-hub/nodes"
"""Contract: annotation with the nodes that its attempt was given."""
_LONGEST_S = 365 * 86400
"""Given: the longest time limit that a job of the hub's may have."""
_PS = "PS"
_OVER: Mapping[str, str] = {"Complete": "Succeeded", "Succeeded": "Succeeded", "Failed": "Failed"}
"""Given: conditions by which controllers say that a job has ended."""


@dataclass(frozen=True, slots=True)
class ExternalView:
    """An object that somebody brought, as a watch tells it. `attempt` is the one that it was let run for last."""

    form: ExternalForm
    what: ExternalJob
    user: str
    parts: tuple[tuple[str, int], ...]
    per_pod: Resources
    time_limit: int | None
    job: str | None
    refused: bool
    fault: Message | None
    suspended: bool
    attempt: str | None
    end: End | None
    over: str  # Succeeded, Failed; empty while it is neither
    reason: str
    said: str
    finished_at: float | None
    nodes: tuple[str, ...]  # on which its pods may be
    counted_through: bool  # its operator numbers all its pods, not those of each role
    started: bool  # a plain Job counts the time since it was let run
    waits: str  # why it waits, as it is written down on it

    @property
    def name(self) -> str:
        """Name of the object."""
        return self.what.name

    @property
    def namespace(self) -> str:
        """Its namespace."""
        return self.what.namespace

    @property
    def ranks(self) -> int:
        """How many pods it has at a time."""
        return sum(count for _, count in self.parts)

    def job_of(self, tenant: str) -> ObservedExternalJob:
        """Return it as the service has it."""
        ps = dict(self.parts).get(_PS, 0)
        return ObservedExternalJob(
            self.what,
            self.user,
            tenant,
            self.form.runtime,
            self.ranks - ps,
            ps,
            self.per_pod,
            self.time_limit,
            self.job,
            self.refused,
            self.fault,
            self.waits,
        )


def view_of(form: ExternalForm, at: Installation, found: Object) -> ExternalView | None:
    """Return the relevant data of an object; None for one that is being deleted.

    An object that another hub let run is not an attempt here.
    """
    meta, spec, status = found["metadata"], found["spec"], found.get("status") or {}
    if "deletionTimestamp" in meta:
        return None
    notes = meta.get("annotations") or {}
    parts = form.parts(spec)
    per_pod, fault = _largest(parts, at.cpu_overcommit)
    fault = _not_so_many(form, parts) or fault
    ours = labels_of(found).get(names.INSTANCE) == at.name
    over, reason, said, ended = _over(status)
    limit = (spec if form.replicas is None else spec.get("runPolicy") or {}).get("activeDeadlineSeconds")
    return ExternalView(
        form,
        ExternalJob(form.kind.kind, namespace_of(found), name_of(found), meta["uid"]),
        notes.get(USER, ""),
        tuple((part.role, part.count) for part in parts),
        per_pod,
        min(limit, _LONGEST_S) if limit and limit > 0 else None,
        notes.get(JOB_UID),
        REFUSED in notes,
        fault,
        form.suspended(spec),
        labels_of(found).get(names.ATTEMPT) if ours else None,
        _end(notes.get(END)),
        over,
        reason,
        said,
        ended,
        tuple(filter(None, notes.get(NODES, "").split(","))),
        spec.get("runLauncherAsWorker") is True,
        bool(status.get("startTime")),
        notes.get(WAITS, ""),
    )


def maker(form: ExternalForm, at: Installation) -> partial[ExternalView | None]:
    """Return what reads objects of a kind."""
    return partial(view_of, form, at)


def _end(text: str | None) -> End | None:
    try:
        return None if text is None else End.parse(text)
    except msgspec.DecodeError:
        return None


def _over(status: Mapping[str, Any]) -> tuple[str, str, str, float | None]:
    for each in status.get("conditions") or ():
        if each.get("status") == "True" and (over := _OVER.get(each.get("type"))):
            at = status.get("completionTime") or each.get("lastTransitionTime")
            reason = each.get("reason") or over
            return over, reason, each.get("message") or reason, seconds(at)
    return "", "", "", None


def _largest(parts: Sequence[ExternalPart], overcommit: float) -> tuple[Resources, Message | None]:
    """Return the amount that each pod counts as, and the fault in the pods' requests."""
    most = NONE
    if any((part.template.get("spec") or {}).get("resources") for part in parts):
        return Resources(), msg(
            "its pods request resources as a whole; write the resources of each container instead"
        )
    try:
        for part in parts:
            if part.count:
                most = most.or_more(requests_of({"metadata": {}, "spec": _counted(part.template["spec"])}))
    except (ValueError, KeyError, TypeError, AttributeError):
        return Resources(), msg(
            "the resources of its pods cannot be read; write them as in cpu: 500m, memory: 1Gi"
        )
    if len(most.devices) > 1:
        kinds = ", ".join(name for name, _ in most.devices)
        return Resources(), msg("its pods ask for gpus of several kinds ({kinds}); ask for one", kinds=kinds)
    fault = None if sum(part.count for part in parts) else msg("it has no pods; ask for one or more")
    return _resources(most, overcommit), fault


def _not_so_many(form: ExternalForm, parts: Sequence[ExternalPart]) -> Message | None:
    """Say what is wrong with how many pods it asks for: none less than 0, by which others would not count."""
    if any(part.count < 0 for part in parts):
        return msg("it asks for less than 0 pods; ask for one or more")
    strange = next((part.role for part in parts if form.roles and part.role not in form.roles), None)
    if strange is None:
        return None
    known = ", ".join(form.roles)
    return msg(
        "a {kind} has no role {role}; write one of {roles}", kind=form.kind.kind, role=strange, roles=known
    )


def _resources(amount: NodeAmount, overcommit: float) -> Resources:
    gpu = sum(n for _, n in amount.devices) * MILLI
    return Resources(cpu=max(1, round(amount.cpu * overcommit)), gpu=gpu, ram=max(1, ceil(amount.ram / MIB)))


def _counted(spec: Mapping[str, Any]) -> Object:
    """Return a pod whose containers request all memory that they can use.

    A container without requests gets those that the cluster would set.
    """
    found = dict(spec)
    for key in ("containers", "initContainers"):
        if spec.get(key):
            found[key] = [_asking(each) for each in spec[key]]
    return found


def _asking(container: Mapping[str, Any]) -> Object:
    resources = container.get("resources") or {}
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    asked = {**UNTOLD, **limits, **requests}
    if "memory" in limits:
        asked["memory"] = limits["memory"]
    return {**container, "resources": {"requests": asked}}
