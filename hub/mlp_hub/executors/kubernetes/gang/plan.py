"""Data for the ranks of a gang: their commands and variables, and the end of the gang."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mlp_hub.executors import rank_commands
from mlp_hub.executors.kubernetes.gang.files import START
from mlp_hub.executors.kubernetes.gang.shape import Outline
from mlp_hub.executors.kubernetes.rank.places import BY_MODULE, PYTHON
from mlp_hub.executors.programs import environment, program, working_directory
from mlp_hub.executors.workspace import CODE, WORKSPACE

_OVER_PODS: Mapping[str, Mapping[str, Any]] = {
    "mpi": {"launcher": None},  # mpirun starts the ranks, and the pod's own program starts that
    "torch": {
        "launcher": None,
        "env": {
            "MASTER_ADDR": "{master}",
            "MASTER_PORT": "29500",
            "RANK": "{rank}",
            "WORLD_SIZE": "{world_size}",
            "LOCAL_RANK": "0",
            "LOCAL_WORLD_SIZE": "1",
        },
    },
}
"""Differences of the platform's runtimes where each rank has a pod, compared with ranks on one machine."""


def plan(shape: Outline, mode: str, hosts: tuple[str, ...], *, waits: bool) -> dict[str, Any]:
    """Return the plan of all ranks; raises `CannotStart`.

    `mode` says what a pod does: `rank` runs its rank, `mpi` starts all by Open MPI or MPICH, `launcher` by the runtime's own.
    `hosts` are those of the ranks. With `waits` the leader's pod ends no sooner than all others have, or their time is over,
    because the cluster takes its end for the gang's.
    """
    spec, at = shape.spec, shape.at
    home = at.directories.home(spec.user)
    command = program(spec, home, PYTHON, CODE)
    runtime = spec.runtime
    if runtime.tenant is None:
        runtime = replace(runtime, **_OVER_PODS.get(runtime.name, {}))
    start = rank_commands.build(
        runtime,
        rank_commands.GangShape(
            command, spec.workers, spec.ps, PYTHON, start=START, hosts=hosts, by_module=BY_MODULE
        ),
    )
    ranks = start.ranks
    alike = not ranks.programs or len(set(ranks.programs)) == 1
    return {
        "attempt": spec.attempt,
        "mode": mode,
        "log": f"{WORKSPACE}/log",
        "home": environment(spec, PYTHON, {})["HOME"],
        "workdir": None if spec.workdir is None else working_directory(spec, home),
        "roles": ranks.roles,
        "asks_all": ranks.asks_all,
        "hosts": hosts,
        "program": ranks.program,
        "programs": () if alike else ranks.programs,
        "env": environment(spec, PYTHON, start.env),
        "envs": ranks.envs,
        "success": ranks.success,
        "leader": shape.leader if waits else None,
        "linger_s": ranks.linger_s,
        "grace_s": spec.grace_s,
        "time_limit": spec.time_limit,
        "file_max": spec.file_max,
        "memory_mib": spec.per_worker.ram,
        "network": spec.network,
        "launcher": start.argv if mode == "launcher" else None,
        "rank_env": ranks.rank_env,
        "abort": ranks.abort,
        "runtime": spec.runtime.name,
    }
