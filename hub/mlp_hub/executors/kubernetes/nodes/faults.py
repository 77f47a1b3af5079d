"""Faults that keep work off a node: its conditions, and taints.

Taints that the cluster sets itself are returned as conditions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from mlp_hub.executors.nodes import Condition, ConditionKind, Effect, Taint
from mlp_hub.kubernetes.kinds import Object

Toleration = Mapping[str, Any]
_WHILE = {
    "node.kubernetes.io/not-ready": (ConditionKind.NOT_READY, "not ready"),
    "node.kubernetes.io/unreachable": (ConditionKind.NOT_READY, "unreachable"),
    "node.kubernetes.io/out-of-service": (ConditionKind.NOT_READY, "out of service"),
    "node.kubernetes.io/network-unavailable": (ConditionKind.NOT_READY, "network unavailable"),
    "node.cloudprovider.kubernetes.io/uninitialized": (ConditionKind.NOT_READY, "not initialized yet"),
    "node.cloudprovider.kubernetes.io/shutdown": (ConditionKind.NOT_READY, "shut down"),
    "node.kubernetes.io/memory-pressure": (ConditionKind.MEMORY_PRESSURE, "memory pressure"),
    "node.kubernetes.io/disk-pressure": (ConditionKind.DISK_PRESSURE, "disk pressure"),
    "node.kubernetes.io/pid-pressure": (ConditionKind.PID_PRESSURE, "PID pressure"),
    "node.kubernetes.io/unschedulable": (ConditionKind.CORDONED, "cordoned"),
    "ToBeDeletedByClusterAutoscaler": (ConditionKind.CORDONED, "the autoscaler removes it"),
    "karpenter.sh/disrupted": (ConditionKind.CORDONED, "the autoscaler removes it"),
}
"""Given: taints that a cluster sets while something lasts, as what, and what is said where the node itself says nothing."""
_WRONG = {
    "NetworkUnavailable": ConditionKind.NOT_READY,
    "MemoryPressure": ConditionKind.MEMORY_PRESSURE,
    "DiskPressure": ConditionKind.DISK_PRESSURE,
    "PIDPressure": ConditionKind.PID_PRESSURE,
}
"""Given: conditions of nodes that are bad where they are true; of a node that is lost they are unknown."""


def conditions_of(node: Object) -> tuple[Condition, ...]:
    """Return the faults of a node, each kind once; the node's own message has priority."""
    found: dict[ConditionKind, str] = {}
    for kind, message in _conditions_of(node):
        found[kind] = found.get(kind) or message
    return tuple(Condition(kind, found[kind]) for kind in ConditionKind if kind in found)


def _conditions_of(node: Object) -> Iterator[tuple[ConditionKind, str]]:
    conditions: Sequence[Mapping[str, Any]] = node.get("status", {}).get("conditions") or ()
    for each in conditions:
        if each["type"] == "Ready" and each["status"] != "True":
            yield ConditionKind.NOT_READY, each.get("message", "")
        elif each["type"] in _WRONG and each["status"] == "True":
            yield _WRONG[each["type"]], each.get("message", "")
    if all(each["type"] != "Ready" for each in conditions):
        yield ConditionKind.NOT_READY, "it has not reported yet"
    if node["metadata"].get("deletionTimestamp"):
        yield ConditionKind.CORDONED, "being removed from the cluster"
    if node["spec"].get("unschedulable"):
        yield ConditionKind.CORDONED, "cordoned"
    for taint in node["spec"].get("taints") or ():
        if taint["key"] in _WHILE:
            yield _WHILE[taint["key"]]


def taints_of(node: Object, tolerated: Iterable[Toleration]) -> tuple[Taint, ...]:
    """Return a node's other taints, but for those that all pods of the hub tolerate."""
    tolerated = tuple(tolerated)
    found = [
        each
        for each in node["spec"].get("taints") or ()
        if each["key"] not in _WHILE and not any(_covers(one, each) for one in tolerated)
    ]
    return tuple(
        sorted(
            (Taint(t["key"], t.get("value", ""), Effect(t["effect"])) for t in found),
            key=lambda taint: (taint.key, taint.value),
        )
    )


def _covers(toleration: Toleration, taint: Mapping[str, str]) -> bool:
    """Whether a toleration is one of this taint, as the API defines it."""
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    key, exists = toleration.get("key") or "", toleration.get("operator") == "Exists"
    if not key:
        return exists
    return key == taint["key"] and (exists or toleration.get("value", "") == taint.get("value", ""))
