"""From an attempt to its sandbox: the job's directory, the program, the environment, the limits."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mlp_hub.executors import rank_commands
from mlp_hub.executors.base import CannotStart, LaunchSpec
from mlp_hub.executors.local.environments import base_of, is_for
from mlp_hub.executors.places import home_mount
from mlp_hub.executors.programs import environment, program, working_directory
from mlp_hub.executors.shared_volume.directories import Directories
from mlp_hub.executors.shared_volume.prepare import model_directory
from mlp_hub.executors.workspace import CODE, MODEL, WORKSPACE
from mlp_hub.safe_path import PathKind, kind_of
from mlp_hub.sandbox import ENVIRONMENTS_AT, Bind, Limits, SandboxSpec, environment_binds
from mlp_language.message import msg

_MPI = ("libmpi.so.12", "libmpi.so.40")  # of MPICH, which the platform has, and Intel MPI; of Open MPI


@dataclass(frozen=True, slots=True)
class HostContext:
    """Part of the host that all attempts of this hub share: the jobs' Python, where files are, further binds (the platform's sockets), the mode."""

    python: str
    directories: Directories
    binds: tuple[Bind, ...] = ()
    outbound: bool = True


def limits(spec: LaunchSpec) -> Limits:
    """Return what the ranks may take together."""
    ranks = spec.ranks
    ram = spec.per_worker.ram * ranks
    return Limits(
        cpu=spec.per_worker.cpu * ranks,
        ram_mib=ram,
        rank_ram_mib=spec.per_worker.ram if ranks > 1 else 0,
        # a fork bomb stays far below what the machine has, libraries with a thread per core have room
        pids=(448 + 16 * (os.cpu_count() or 1)) * ranks,
        tmp_mib=max(64, ram // 2),
        shm_mib=spec.per_worker.part("shm") * ranks,
        # it bounds shared memory too, which has its own bound
        file_mib=max(spec.file_max >> 20, ram, 64) if spec.file_max else 0,
    )


def sandbox_spec(
    spec: LaunchSpec, around: HostContext, gpus: Sequence[int], per_rank_gpus: Sequence[Sequence[int]]
) -> SandboxSpec:
    """Describe the sandbox of an attempt; raises `CannotStart`."""
    if spec.image is not None or spec.mounts:
        raise CannotStart(msg("jobs of this machine run in its own environment: no image, no volumes"))
    home, job = around.directories.home(spec.user), around.directories.workspace(spec.of_run)
    own = _own_python(spec, around)
    command = program(spec, home, own or around.python, CODE)
    shape = rank_commands.GangShape(command, spec.workers, spec.ps, around.python, own=own)
    start = rank_commands.build(spec.runtime, shape)
    ranks = start.ranks
    env = environment(spec, around.python, start.env)
    if own:
        env |= _own_variables(own, env, "" if _brings_mpi(spec, around) else around.python)
    if "CUDA_VISIBLE_DEVICES" in spec.env:
        pass  # the job's own choice among the devices that its sandbox has
    elif gpus and ranks.mode == "single":
        env["CUDA_VISIBLE_DEVICES"] = _visible(gpus, per_rank_gpus[0])
    elif gpus:
        envs = ranks.envs or ({},) * len(ranks.roles)
        ranks = replace(
            ranks,
            envs=tuple(
                {**env, "CUDA_VISIBLE_DEVICES": _visible(gpus, mine)}
                for env, mine in zip(envs, per_rank_gpus, strict=True)
            ),
        )
    others = (*environment_binds(around.python), *around.binds)
    return SandboxSpec(
        id=spec.attempt,
        argv=start.argv,
        env=env,
        home_dir=home,
        home_mount=home_mount(spec.user),
        cwd=working_directory(spec, home),
        log_dir=f"{job}/log",
        user_name=spec.user,
        uid=spec.uid,
        binds=(
            *others,
            *_data(spec, around.directories, others),
            Bind(job, WORKSPACE, writable=True),
            *_environment(spec, around.directories),
            *(() if spec.model is None else (Bind(str(model_directory(spec, around.directories)), MODEL),)),
        ),
        limits=limits(spec),
        network="outbound" if spec.network == "outbound" and around.outbound else "none",
        gpus=tuple(gpus),
        ranks=ranks,
        time_limit=spec.time_limit,
        grace_s=spec.grace_s,
        hidden=(f"{WORKSPACE}/log",),
    )


def _data(spec: LaunchSpec, directories: Directories, others: Sequence[Bind]) -> list[Bind]:
    """Return the mounts of the datasets for the ranks.

    Raises `CannotStart` where the platform has its own files at the path of one.
    """
    for mount in spec.data:
        for other in others:
            if f"{other.dst}/".startswith(f"{mount.path}/") or f"{mount.path}/".startswith(f"{other.dst}/"):
                raise CannotStart(
                    msg(
                        "dataset {name} cannot be placed at {path}, where the platform has its own files; submit the job again with {name}:PATH for another place",
                        name=mount.of.name,
                        path=mount.path,
                    )
                )
    return [Bind(str(directories.stored(mount.of)), mount.path) for mount in spec.data]


def _own_python(spec: LaunchSpec, around: HostContext) -> str:
    """Return the interpreter of the job's environment as its ranks see it; raises `CannotStart` where it was made for another one."""
    if spec.environment is None:
        return ""
    if not is_for(around.directories.stored(spec.environment), base_of(around.python)):
        raise CannotStart(
            msg(
                "the environment was made for another Python than this hub has now; delete it, create it again, and submit the job again"
            )
        )
    return f"{ENVIRONMENTS_AT}/{spec.environment.name}/bin/python"


def _environment(spec: LaunchSpec, directories: Directories) -> list[Bind]:
    if spec.environment is None:
        return []
    return [Bind(str(directories.stored(spec.environment)), f"{ENVIRONMENTS_AT}/{spec.environment.name}")]


def _brings_mpi(spec: LaunchSpec, around: HostContext) -> bool:
    """Whether mpi4py is to take the environment's own MPI: a program starts ranks by its mpirun. Ranks of ours need the platform's."""
    if spec.environment is None or spec.runtime.launcher is not None:
        return False
    place, seen_at = around.directories.stored(spec.environment), f"{ENVIRONMENTS_AT}/{spec.environment.name}"
    return any(kind_of(place, f"lib/{name}", seen_at) is PathKind.FILE for name in _MPI)


def _own_variables(own: str, env: Mapping[str, str], python: str) -> dict[str, str]:
    """Return what an environment's Python needs to find itself, and the platform's MPI, which lies with the platform's Python if any."""
    place = own.removesuffix("/bin/python")
    mpi = Path(python).parent.parent / "lib" / _MPI[0]
    found = {"VIRTUAL_ENV": place, "PATH": f"{place}/bin:{env['PATH']}"}
    if python and mpi.exists() and "MPI4PY_LIBMPI" not in env:
        found["MPI4PY_LIBMPI"] = str(mpi)
    return found


def _visible(gpus: Sequence[int], mine: Sequence[int]) -> str:
    """Return a rank's devices as CUDA counts them inside: by their place among those that are there."""
    order = {index: place for place, index in enumerate(sorted(gpus))}
    return ",".join(str(order[index]) for index in mine)
