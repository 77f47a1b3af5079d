"""Volcano's own Job: a task for each role, bound as a whole by itself."""

from __future__ import annotations

from typing import Any

from mlp_hub.executors.kubernetes.gang.made import Described
from mlp_hub.executors.kubernetes.gang.plan import plan
from mlp_hub.executors.kubernetes.gang.pods import TASK_INDEX, template
from mlp_hub.executors.kubernetes.gang.shape import Outline
from mlp_hub.kubernetes.kinds import VOLCANO_JOBS


def make(shape: Outline) -> Described:
    """Describe it. The first pod that fails ends it; with a leader, so does that one's end."""
    parts = shape.by_role
    leader = None if shape.leader is None else shape.roles[shape.leader]
    tasks: list[dict[str, Any]] = []
    for part in parts:
        task: dict[str, Any] = {
            "name": part.role,
            "replicas": part.count,
            "minAvailable": part.count,
            "template": template(shape, part, index=TASK_INDEX),
        }
        if part.role == leader:
            task["policies"] = [{"event": "TaskCompleted", "action": "CompleteJob"}]
        tasks.append(task)
    spec: dict[str, Any] = {
        "schedulerName": "volcano",
        "queue": shape.queue,
        "minAvailable": shape.spec.ranks,
        "maxRetry": 1,
        # names of the pods, that all may be reached, and no secret shell
        "plugins": {"svc": ["--publish-not-ready-addresses=true", "--disable-network-policy=true"]},
        "policies": [
            {"event": "PodFailed", "action": "TerminateJob"},
            {"event": "PodEvicted", "action": "TerminateJob"},
        ],
        "tasks": tasks,
    }
    hosts = tuple(
        f"{shape.name}-{part.role}-{number}.{shape.name}" for part in parts for number in range(part.count)
    )
    made = plan(shape, "rank", hosts, waits=True)
    return Described(shape.object(VOLCANO_JOBS, spec=spec), made)
