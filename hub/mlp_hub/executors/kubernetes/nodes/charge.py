"""Amount that a team is charged for a pod which somebody else makes, such as a notebook server of an existing hub; pure."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Any, NamedTuple

from mlp_hub.domain.resources import MILLI
from mlp_hub.executors.kubernetes.nodes.amounts import MIB
from mlp_hub.executors.kubernetes.nodes.devices import kind_of
from mlp_hub.executors.kubernetes.nodes.requests import requests_of
from mlp_hub.kubernetes.kinds import Object


class Charge(NamedTuple):
    """Cores, MiB of memory, and whole GPUs of a kind; an empty kind is any."""

    cpu: float
    ram: int
    gpu: int = 0
    gpu_kind: str = ""


def charge_of(pod: Object, *, by_limits: bool, cpu: float, ram: int) -> Charge:
    """Return the sum of a pod's containers, by their limits or by their requests.

    A container with only one of the two counts with that. `cpu` in cores and `ram` in MiB are for a pod that
    says nothing at all of one of them. The kind of GPU is that of the label in the pod's `nodeSelector`.
    """
    spec = pod["spec"]
    counted = {
        **spec,
        "containers": [_stated(one, by_limits=by_limits) for one in spec["containers"]],
        "initContainers": [_stated(one, by_limits=by_limits) for one in spec.get("initContainers") or ()],
    }
    if spec.get("resources"):
        counted = _stated(counted, by_limits=by_limits)
    found = requests_of({"spec": counted})
    gpus = sum(n for _, n in found.devices)
    kind = kind_of(found.devices[0][0], spec.get("nodeSelector") or {}) if len(found.devices) == 1 else None
    return Charge(
        found.cpu / MILLI if found.cpu else cpu, ceil(found.ram / MIB) if found.ram else ram, gpus, kind or ""
    )


def _stated(of: Mapping[str, Any], *, by_limits: bool) -> dict[str, Any]:
    """Return a container, or the spec of a pod, whose requests are what counts."""
    resources = of.get("resources") or {}
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    # the cluster itself takes a limit for the request where there is none
    counts = {**requests, **limits} if by_limits else {**limits, **requests}
    return {**of, "resources": {"requests": counts}}
