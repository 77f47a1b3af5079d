"""Parameters of a pod: the plan of its gang, and its rank."""

from __future__ import annotations

import json
import os
from typing import Any

from mlp_hub.executors.kubernetes.rank import places


class OwnPlan:
    """The plan as one rank sees it."""

    def __init__(self, plan: dict[str, Any], rank: int) -> None:
        self.plan, self.rank = plan, rank
        self.python = places.interpreter()

    @property
    def ranks(self) -> int:
        """Number of ranks of the gang."""
        return len(self.plan["roles"])

    @property
    def role(self) -> str:
        """Role of this rank."""
        return str(self.plan["roles"][self.rank])

    def argv(self) -> list[str]:
        """Return the command of this rank."""
        each = self.plan["programs"]
        return places.command(each[self.rank] if each else self.plan["program"], self.python)

    def env(self) -> dict[str, str]:
        """Return the whole environment of this rank: the image's, the job's, the runtime's, its number."""
        image = pods_own()
        env = {**image, **self.plan["env"]}
        if self.plan["envs"]:
            env.update(self.plan["envs"][self.rank])
        env = {name: places.fill(text, self.python) for name, text in env.items()}
        for folder in image.get("PATH", "").split(":"):
            if folder and folder not in env["PATH"].split(":"):
                env["PATH"] += ":" + folder
        env["MLP_RANK"], env["MLP_WORLD_SIZE"] = str(self.rank), str(self.ranks)
        return env

    def log(self) -> int:
        """Open the directory of logs; raises `OSError` where the rank may not write there."""
        os.makedirs(self.plan["log"], exist_ok=True)
        return os.open(self.plan["log"], os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def read() -> dict[str, Any]:
    """Read the plan."""
    with open(f"{places.HERE}/plan.json", "rb") as file:
        plan: dict[str, Any] = json.loads(file.read())
    return plan


def own_rank() -> int:
    """Return which rank this pod is: the first of its part, and its number in that."""
    return int(os.environ["MLP_FIRST_RANK"]) + int(os.environ["MLP_INDEX"])


def pods_own() -> dict[str, str]:
    """Return the variables that the pod was started with; children of ssh or a launcher can have others."""
    try:
        with open("/proc/1/environ", "rb") as file:
            pairs = [
                pair.decode(errors="surrogateescape").partition("=") for pair in file.read().split(b"\0")
            ]
    except OSError:
        pairs = []
    found = {name: text for name, _, text in pairs if name}
    return found if "MLP_FIRST_RANK" in found else dict(os.environ)
