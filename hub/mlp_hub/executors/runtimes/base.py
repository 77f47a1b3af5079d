"""What every runtime is given and gives back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mlp_hub.executors.base import CannotStart
from mlp_hub.executors.sandbox.spec import INSIDE, RankPlan


@dataclass(frozen=True, slots=True)
class Shape:
    """A job as its runtime sees it. `program` is the command of one rank; `python` the interpreter inside."""

    program: tuple[str, ...]
    workers: int
    ps: int
    python: str

    @property
    def starter(self) -> tuple[str, ...]:
        """The command of the program that starts ranks inside, but its mode."""
        return (self.python, "-IS", INSIDE)


@dataclass(frozen=True, slots=True)
class Start:
    """The sandbox's own command, its additions to the environment, and what its ranks are."""

    argv: tuple[str, ...]
    ranks: RankPlan
    env: Mapping[str, str] = field(default_factory=dict)


def worker_roles(shape: Shape) -> tuple[str, ...]:
    """Return the roles where all ranks are alike; parameter servers are refused."""
    if shape.ps:
        raise CannotStart(f"this runtime has no parameter servers (--ps {shape.ps}); leave them out")
    return ("worker",) * shape.workers
