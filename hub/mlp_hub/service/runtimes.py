"""The runtimes: how the ranks of a job find each other."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Runtime:
    """A way to run a program on several ranks."""

    name: str
    title: str
    description: str
    ps: bool = False  # may have parameter servers


RUNTIMES: tuple[Runtime, ...] = (
    Runtime("mpi", "MPI", "All ranks in one MPI world; `from mpi4py import MPI`."),
    Runtime("tf", "TensorFlow", "TF_CONFIG is set for each rank; --ps adds parameter servers.", ps=True),
    Runtime("torch", "PyTorch", "Started as by torchrun; needs torch in the job's environment."),
    Runtime("plain", "Plain", "Each rank runs the program on its own; MLP_RANK tells them apart."),
)
RUNTIME_NAMES = tuple(r.name for r in RUNTIMES)
_BY_NAME = {r.name: r for r in RUNTIMES}
WITH_PS = tuple(r.name for r in RUNTIMES if r.ps)


def runtime_of(name: str) -> Runtime | None:
    """Return the runtime of this name."""
    return _BY_NAME.get(name)


def default_runtime(workers_max: int, ps: int) -> str:
    """Return the runtime of a job that names none."""
    if ps:
        return WITH_PS[0]
    return "mpi" if workers_max > 1 else "plain"
