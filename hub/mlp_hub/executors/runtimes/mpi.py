"""Runtime `mpi`: MPICH's mpiexec, which comes as a wheel and runs as the launcher in the ranks' sandbox."""

from __future__ import annotations

from pathlib import Path

from mlp_hub.executors.base import CannotStart
from mlp_hub.executors.runtimes.base import Shape, Start, worker_roles
from mlp_hub.executors.sandbox.spec import RankPlan

ABORT = r"^Abort\((\d+)\) on node \d+ \(rank \d+ in comm"


def build(shape: Shape) -> Start:
    """Have mpiexec start every rank through our starter, which reports on it."""
    roles = worker_roles(shape)
    mpiexec = Path(shape.python).parent / "mpiexec.hydra"
    if not mpiexec.exists():
        raise CannotStart(f"the runtime mpi needs MPICH, and there is no {mpiexec}: pip install mpich mpi4py")
    program = shape.program
    if program[:2] == (shape.python, "-u") and _has_mpi4py(shape.python):
        # an uncaught exception then aborts all ranks, where otherwise its rank would wait in MPI_Finalize for ever
        program = (*program[:2], "-m", "mpi4py", *program[2:])
    # fork: all ranks are in this sandbox, there is nobody to reach by ssh
    launch = (str(mpiexec), "-launcher", "fork", "-n", str(shape.workers))
    # the sandbox shows no network devices, which hwloc and UCX would remark upon in every log
    env = {"HWLOC_HIDE_ERRORS": "2", "UCX_LOG_LEVEL": "fatal"}
    return Start((*launch, *shape.starter, "rank"), RankPlan("launcher", roles, program, abort=ABORT), env)


def _has_mpi4py(python: str) -> bool:
    return any(Path(python).parent.parent.glob("lib/python3*/site-packages/mpi4py/__init__.py"))
