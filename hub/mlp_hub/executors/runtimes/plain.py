"""Runtime `plain`: ranks that know their number and nothing of each other."""

from __future__ import annotations

from mlp_hub.executors.runtimes.base import Shape, Start, worker_roles
from mlp_hub.executors.sandbox.spec import RankPlan


def build(shape: Shape) -> Start:
    """Start one rank as the sandbox's own command, several side by side."""
    roles = worker_roles(shape)
    if shape.workers == 1:
        env = {"MLP_RANK": "0", "MLP_WORLD_SIZE": "1"}
        return Start(shape.program, RankPlan("single", roles, shape.program), env)
    return Start((*shape.starter, "gang"), RankPlan("gang", roles, shape.program))
