"""Options of the verb `announce`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mlp.language import say

LEVELS = ("info", "warning", "critical")


def level(text: object) -> str:
    """Read a level. Raises ValueError."""
    if text not in LEVELS:
        raise ValueError(say("is not a level; choose one of {levels}", levels=", ".join(LEVELS)))
    return str(text)


def right_call(names: Sequence[str], given: Mapping[str, Any]) -> bool:
    """Tell whether the words after `announce` are one of its acts."""
    act = names[0] if names else "ls"
    if given.keys() & {"level", "lasts"} and act in {"ls", "rm"}:
        return False
    return {"ls": len(names) <= 1, "rm": len(names) > 1}.get(act, True)
