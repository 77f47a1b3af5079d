"""Use of a node by a pod, counted as the cluster's scheduler counts it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from mlp_hub.executors.kubernetes.nodes.amounts import NONE, NodeAmount, amount_of
from mlp_hub.kubernetes.kinds import Object

OF_THE_NODE = frozenset({"DaemonSet", "Node"})
"""Given: kinds of owners whose pods stay as long as their node."""


class Use(NamedTuple):
    """Use of a node by a pod; `stays`: for the node's lifetime, as a DaemonSet's pods do."""

    node: str
    amount: NodeAmount
    stays: bool


def use_of(pod: Object) -> Use | None:
    """Return what a pod takes, None where it has no node."""
    spec = pod["spec"]
    node = spec.get("nodeName")
    if not node:
        return None
    owners = pod["metadata"].get("ownerReferences") or ()
    return Use(node, requests_of(pod), any(owner["kind"] in OF_THE_NODE for owner in owners))


def requests_of(pod: Object) -> NodeAmount:
    """Return the amount that a pod takes of any node.

    It is the sum of its containers and its sidecars, which are init containers that keep running. If an
    init container needs more together with the sidecars before it, that amount counts. If the pod as a
    whole requests more, that amount counts. The overhead is added.
    """
    spec, given = pod["spec"], _given(pod)
    total = before = most = NONE
    for container in spec["containers"]:
        total = total.plus(_asked(container, given))
    for container in spec.get("initContainers") or ():
        if container.get("restartPolicy") == "Always":
            one = _asked(container, given)
            total, before = total.plus(one), before.plus(one)
            most = most.or_more(before)
        else:
            most = most.or_more(before.plus(amount_of(_requests(container))))
    total = total.or_more(most)
    whole = _requests(spec)
    if whole:
        stated = amount_of(whole)
        total = total._replace(
            cpu=stated.cpu if "cpu" in whole else total.cpu,
            ram=stated.ram if "memory" in whole else total.ram,
        )
    return total.plus(amount_of(spec.get("overhead")))


def _asked(container: Mapping[str, Any], given: Mapping[str, NodeAmount]) -> NodeAmount:
    asked = amount_of(_requests(container))
    has = given.get(container["name"])
    return asked if has is None else asked.or_more(has)


def _requests(of: Mapping[str, Any]) -> Mapping[str, Any] | None:
    found: Mapping[str, Any] | None = (of.get("resources") or {}).get("requests")
    return found


def _given(pod: Object) -> Mapping[str, NodeAmount]:
    """Return what containers have while they wait to have another size, by name."""
    status = pod.get("status") or {}
    return {
        each["name"]: amount_of(each["resources"].get("requests")).or_more(
            amount_of(each.get("allocatedResources"))
        )
        for each in (*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ()))
        if each.get("resources")
    }
