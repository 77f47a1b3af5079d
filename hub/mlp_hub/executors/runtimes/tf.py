"""Runtime `tf`: TensorFlow finds its cluster in TF_CONFIG; rank 0 is the chief, servers end with it."""

from __future__ import annotations

import json

from mlp_hub.executors.base import CannotStart
from mlp_hub.executors.roles import roles_of
from mlp_hub.executors.runtimes.base import Shape, Start
from mlp_hub.executors.sandbox.spec import RankPlan

FIRST_PORT = 20000
"""Ports count up from here by rank; the sandbox's network is its own, so they are always free."""
LINGER_S = 10.0
QUIET = "2"
"""Of the C++ side errors only: else its warnings about itself are the last lines of every log. The user's own value wins."""


def build(shape: Shape) -> Start:
    """Give each rank its TF_CONFIG.

    Without parameter servers all ranks are workers and the first one is the chief, as
    MultiWorkerMirroredStrategy wants it, and workers may finish after it. With them rank 0 is the coordinator
    (`chief`), the others serve it and are stopped when it ends.
    """
    if shape.ps and shape.workers < 2:
        raise CannotStart(
            f"--ps {shape.ps} needs --workers 2 or more: rank 0 is the chief, and somebody has to work for it"
        )
    address = [f"127.0.0.1:{FIRST_PORT + rank}" for rank in range(shape.workers + shape.ps)]
    workers, servers = address[: shape.workers], address[shape.workers :]
    if shape.ps:
        cluster = {"chief": workers[:1], "worker": workers[1:], "ps": servers}
        tasks = [("chief", 0), *(("worker", index) for index in range(shape.workers - 1))]
        tasks += [("ps", index) for index in range(shape.ps)]
    else:
        cluster = {"worker": workers}
        tasks = [("worker", index) for index in range(shape.workers)]
    envs = tuple(
        {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})}
        for kind, index in tasks
    )
    roles = roles_of("tf", shape.workers, shape.ps)
    plan = RankPlan("gang", roles, shape.program, envs, leader=0, linger_s=0.0 if shape.ps else LINGER_S)
    return Start((*shape.starter, "gang"), plan, {"TF_CPP_MIN_LOG_LEVEL": QUIET})
