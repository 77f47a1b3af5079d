"""Parts that jobs of the MPI Operator and of the Training Operator have in common."""

from __future__ import annotations

from typing import Any

from mlp_hub.executors.kubernetes.gang.pods import REPLICA_INDEX, template
from mlp_hub.executors.kubernetes.gang.shape import Outline, RankGroup


def replicas(shape: Outline, part: RankGroup, count: int, container: str = "rank") -> dict[str, Any]:
    """Return `count` pods of a part."""
    pods = template(shape, part, container=container, index=REPLICA_INDEX)
    del pods["spec"]["restartPolicy"]  # the operators want it beside the pods only
    return {"replicas": count, "restartPolicy": "Never", "template": pods}


def run_policy(shape: Outline) -> dict[str, Any]:
    """Return when the operator ends it and removes its pods."""
    policy: dict[str, Any] = {"cleanPodPolicy": "Running", "backoffLimit": 0}
    if shape.deadline_s is not None:
        policy["activeDeadlineSeconds"] = shape.deadline_s
    return policy
