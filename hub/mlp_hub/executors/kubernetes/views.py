"""Kept data of the cluster's objects: of thousands of pods only the fields that show the ranks' state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from mlp_hub.executors.kubernetes.gang import rank_of
from mlp_hub.kubernetes import names
from mlp_hub.kubernetes.kinds import Object, labels_of, name_of, namespace_of

_SHELL = 128
"""Given: an exit status of 128 + n stands for signal n."""
NO_ROOM = "Unschedulable"
"""Given: the cluster's word for a pod that no node takes now."""


@dataclass(frozen=True, slots=True)
class PodView:
    """A pod of an attempt. `rank` is None where none is a pod's own."""

    name: str
    attempt: str  # the label's value
    rank: int | None
    node: str
    phase: str
    made_at: float
    bound_at: float | None = None
    started_at: float | None = None
    finished_at: float | None = None
    waits: str = ""  # the cluster's word for why it does not run, as in ImagePullBackOff
    reason: str = ""  # and for how it ended, as in OOMKilled, Evicted
    message: str = ""  # of either
    exit_code: int | None = None
    signal: int | None = None
    leaves_at: float | None = None  # it was deleted, and is to be gone by then
    disrupted: str = ""  # why the cluster took it away
    address: str = ""

    @property
    def over(self) -> bool:
        """Whether none of its processes are left."""
        return self.phase in ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class MainView:
    """An attempt's main object: whether its operator calls it ended."""

    name: str
    namespace: str
    uid: str
    attempt: str
    leaving: bool = False
    failed: str = ""  # reason and message, where it failed
    reason: str = ""
    taken_up: bool = True  # its operator has written down anything of it


def pod_view(found: Object) -> PodView | None:
    """Keep of a pod what counts; None for one of no attempt."""
    attempt = labels_of(found).get(names.ATTEMPT)
    if attempt is None:
        return None
    meta, status = found["metadata"], found.get("status") or {}
    conditions = {each["type"]: each for each in status.get("conditions") or ()}
    leaves = meta.get("deletionTimestamp")
    disrupted = conditions.get("DisruptionTarget") or {}
    view: dict[str, Any] = {"reason": status.get("reason") or "", "message": status.get("message") or ""}
    scheduled = conditions.get("PodScheduled") or {}
    if scheduled.get("status") == "False":
        view |= {
            "waits": scheduled.get("reason") or NO_ROOM,
            "message": scheduled.get("message") or "",
        }
    if scheduled.get("status") == "True":
        view["bound_at"] = seconds(scheduled.get("lastTransitionTime"))
    view |= _container(found, status)
    return PodView(
        name_of(found),
        attempt,
        rank_of(found),
        (found.get("spec") or {}).get("nodeName") or "",
        status.get("phase") or "Pending",
        seconds(meta["creationTimestamp"]) or 0.0,
        leaves_at=seconds(leaves),
        disrupted=disrupted.get("message") or "" if disrupted.get("status") == "True" else "",
        address=status.get("podIP") or "",
        **view,
    )


def _container(found: Object, status: Mapping[str, Any]) -> dict[str, Any]:
    """Tell of the container that counts: the pod's first one, or the initial one that it waits for."""
    states = status.get("containerStatuses") or ()
    first = found["spec"]["containers"][0]["name"]
    mine: Mapping[str, Any] = next((each["state"] for each in states if each["name"] == first), {})
    if ended := mine.get("terminated"):
        code = ended.get("exitCode")
        by_signal = code is not None and _SHELL < code <= _SHELL + 64
        return {
            "started_at": seconds(ended.get("startedAt")),
            "finished_at": seconds(ended.get("finishedAt")),
            "exit_code": None if by_signal else code,
            "signal": code - _SHELL if by_signal else None,
            **({"reason": ended["reason"]} if ended.get("reason") and not status.get("reason") else {}),
            **({"message": ended["message"]} if ended.get("message") else {}),
        }
    if running := mine.get("running"):
        return {"started_at": seconds(running.get("startedAt"))}
    for each in (*(status.get("initContainerStatuses") or ()), *states):
        waiting = (each.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") not in (None, "PodInitializing", "ContainerCreating"):
            return {"waits": waiting["reason"], "message": waiting.get("message") or ""}
    return {}


def main_view(found: Object) -> MainView | None:
    """Keep of a main object whether it failed; None for one of no attempt."""
    attempt = labels_of(found).get(names.ATTEMPT)
    if attempt is None:
        return None
    meta = found["metadata"]
    status = found.get("status") or {}
    reason, said = _failure(status)
    return MainView(
        name_of(found),
        namespace_of(found),
        meta["uid"],
        attempt,
        bool(meta.get("deletionTimestamp")),
        said,
        reason,
        any(status.values()),
    )


def _failure(status: Mapping[str, Any]) -> tuple[str, str]:
    for each in status.get("conditions") or ():
        if each.get("type") == "Failed" and each.get("status") == "True":
            reason = each.get("reason") or "Failed"
            return reason, each.get("message") or reason
    state = status.get("state")
    if isinstance(state, Mapping) and state.get("phase") in ("Failed", "Aborted", "Terminated"):
        return str(state["phase"]), state.get("message") or str(state["phase"])
    return "", ""


def seconds(text: str | None) -> float | None:
    """Return a time of the cluster's as seconds since the epoch."""
    return None if text is None else datetime.fromisoformat(text).timestamp()
