"""How the ranks of each runtime are started: from a launch's shape to commands and environments, nothing run."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mlp_hub.executors.base import CannotStart
from mlp_hub.executors.runtimes import mpi, plain, tf, torch
from mlp_hub.executors.runtimes.base import Shape, Start

BUILDERS: Mapping[str, Callable[[Shape], Start]] = {
    "plain": plain.build,
    "mpi": mpi.build,
    "tf": tf.build,
    "torch": torch.build,
}


def build(runtime: str, shape: Shape) -> Start:
    """Return what the sandbox of such a job runs; raises `CannotStart` with the reason and the way out."""
    try:
        builder = BUILDERS[runtime]
    except KeyError:
        raise CannotStart(f"there is no runtime {runtime}; there are {', '.join(BUILDERS)}") from None
    return builder(shape)


__all__ = ["BUILDERS", "Shape", "Start", "build"]
