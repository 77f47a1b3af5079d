"""What jobs are submitted: drawn from the seed, the round, the user and a number, and from nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from torture.program import PROGRAM


@dataclass(frozen=True)
class Recipe:
    """One job: what it asks for, how its program behaves, and what its user does to it later.

    `fails` attempts of it end with an error of their own. `act` is what is done `after` so many seconds from the
    submission: `cancel`, `suspend` (and `resume` after `back` more), `resubmit`; empty for nothing.
    """

    user: str
    name: str
    steps: int
    pause: float
    fails: int = 0
    act: str = ""
    after: float = 0.0
    back: float = 0.0
    shape: dict[str, Any] = field(default_factory=dict)

    @property
    def body(self) -> dict[str, Any]:
        """What is posted."""
        env = {
            "TORTURE_STEPS": str(self.steps),
            "TORTURE_PAUSE": str(self.pause),
            "TORTURE_FAILS": str(self.fails),
            "TORTURE_RUNTIME": self.shape.get("runtime", "plain"),
        }
        return {"name": self.name, "code": PROGRAM, "env": env, **self.shape}


def draw(seed: str, number: int, user: str, index: int) -> Recipe:
    """Draw the user's job of that index in a round."""
    rng = Random(f"{seed}:{number}:{user}:{index}")
    shape: dict[str, Any] = {
        "cpu": rng.choice((0.2, 0.3, 0.5)),
        "ram": 256,
        "retries": rng.choice((0, 1, 2, 3)),
    }
    kind = rng.random()
    if kind < 0.3:
        shape |= {"runtime": "mpi", "workers": rng.choice((1, 2, 2))}
    elif kind < 0.4:
        shape |= {"runtime": "mpi", "workers": "1:2"}
    if rng.random() < 0.2:
        shape["priority"] = rng.choice(("low", "high"))
    steps, pause = rng.randint(10, 60), rng.uniform(0.02, 0.12)
    if rng.random() < 0.08:
        shape["time_limit"] = 3
        steps, pause = 200, 0.1
    fails = rng.choice((1, 1, 2)) if rng.random() < 0.1 else 0
    act = rng.choice(("cancel", "suspend", "suspend", "resubmit")) if rng.random() < 0.3 else ""
    return Recipe(
        user,
        f"r{number}-{user}-{index}x",  # a resubmitted one gets a number behind that
        steps,
        round(pause, 3),
        fails,
        act,
        after=rng.uniform(0.0, 4.0),
        back=rng.uniform(0.1, 2.0),
        shape=shape,
    )


def aimed(user: str, number: int, index: int) -> Recipe:
    """A job that starts at once, for faults aimed at its start."""
    return Recipe(user, f"r{number}-{user}-{index}x", 10, 0.05, shape={"cpu": 0.2, "ram": 256, "retries": 3})
