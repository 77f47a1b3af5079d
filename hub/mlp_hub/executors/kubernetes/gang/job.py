"""A plain Job: one pod, or one for each rank by its index."""

from __future__ import annotations

from typing import Any

from mlp_hub.executors.kubernetes.gang.made import Described
from mlp_hub.executors.kubernetes.gang.plan import plan
from mlp_hub.executors.kubernetes.gang.pods import JOB_INDEX, template
from mlp_hub.executors.kubernetes.gang.shape import Outline, RankGroup
from mlp_hub.kubernetes.kinds import JOBS

HERE = "127.0.0.1"


def make(shape: Outline) -> Described:
    """Describe it. The first rank that fails ends it; with a leader, so does that one's success."""
    ranks = shape.spec.ranks
    part = RankGroup(shape.roles[0], 0, ranks)
    spec: dict[str, Any] = {"backoffLimit": 0, "completions": ranks, "parallelism": ranks}
    if shape.deadline_s is not None:
        spec["activeDeadlineSeconds"] = shape.deadline_s
    runtime = shape.spec.runtime
    # the platform's own runtimes need none where each rank has a pod
    mode = "rank" if runtime.launcher is None or runtime.tenant is None else "launcher"
    if ranks == 1:
        spec["template"] = template(shape, part)
        return Described(shape.object(JOBS, spec=spec), plan(shape, mode, (HERE,), waits=False))
    hosts = tuple(f"{shape.name}-{rank}.{shape.name}" for rank in range(ranks))
    spec |= {"completionMode": "Indexed", "podReplacementPolicy": "Failed"}
    if mode == "launcher":
        spec["successPolicy"] = {"rules": [{"succeededIndexes": "0"}]}
    elif shape.leader is not None:
        spec["successPolicy"] = {"rules": [{"succeededIndexes": str(shape.leader)}]}
    spec["template"] = template(shape, part, index=JOB_INDEX, subdomain=shape.name)
    return Described(shape.object(JOBS, spec=spec), plan(shape, mode, hosts, waits=True), nameless=True)
