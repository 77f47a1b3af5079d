"""How the ranks of each runtime are started: from a launch's shape to commands and environments, nothing run."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from mlp_hub.executors.base import CannotStart
from mlp_hub.executors.runtimes import mpi, plain, tf, torch
from mlp_hub.executors.runtimes.base import Shape, Start

BUILDERS: Mapping[str, Callable[[Shape], Start]] = {
    "plain": plain.build,
    "mpi": mpi.build,
    "tf": tf.build,
    "torch": torch.build,
}

NEEDS: Mapping[str, str] = {"mpi": "mpi4py", "tf": "tensorflow", "torch": "torch"}
"""The package without which no program of a runtime can start."""


def missing(runtime: str, python: str, home: str) -> str | None:
    """Name the package that a runtime needs and a job with this interpreter and home would lack; nothing is imported."""
    package = NEEDS.get(runtime)
    if package is None:
        return None
    if python == sys.executable:
        there = importlib.util.find_spec(package) is not None
    else:
        there = any(Path(python).parent.parent.glob(f"lib/python3*/*-packages/{package}/__init__.py"))
    return None if there or _at_home(package, python, home) else package


def _at_home(package: str, python: str, home: str) -> bool:
    """Tell whether `pip install --user` brought it; no folder of the user's is listed, however full it is."""
    versions = [folder.name for folder in Path(python).parent.parent.glob("lib/python3*")]
    own = [Path(home, ".local", "lib", name, "site-packages", package, "__init__.py") for name in versions]
    return any(path.exists() for path in own)


def build(runtime: str, shape: Shape) -> Start:
    """Return what the sandbox of such a job runs; raises `CannotStart` with the reason and the way out."""
    try:
        builder = BUILDERS[runtime]
    except KeyError:
        raise CannotStart(f"there is no runtime {runtime}; there are {', '.join(BUILDERS)}") from None
    return builder(shape)


__all__ = ["BUILDERS", "NEEDS", "Shape", "Start", "build", "missing"]
