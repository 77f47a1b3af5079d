"""Several things done one after the other, as they were named: one that is refused does not stop the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlp.errors import MLPError, Unauthorized
from mlp.language import say
from mlp.rendering import tables

Json = dict[str, Any]


class Outcomes(tables.Sentences):
    """Results of an action on one or on each of a list; `failed` are the refused ones."""

    def __init__(self, lines: list[str], data: list[Json] | Json, failed: list[MLPError]) -> None:
        super().__init__(lines, data)
        self.failed = failed


def refusal(name: str, error: MLPError) -> tuple[str, Json]:
    """Write that one of several was refused, for people and for programs."""
    told = {"name": name, "error": getattr(error, "reason", error.label), "msg": str(error)}
    return say("{what}: {why}", what=name, why=str(error)), told


def each(names: Sequence[str], act: Callable[[str], tuple[Sequence[str], Json]]) -> Outcomes:
    """Call `act` for each, which returns its lines and its data; if there is only one, raise its refusal."""
    lines: list[str] = []
    data: list[Json] = []
    failed: list[MLPError] = []
    for name in dict.fromkeys(names):
        try:
            said, done = act(name)
        except Unauthorized:
            raise
        except MLPError as error:
            failed.append(error)
            line, told = refusal(name, error)
            lines.append(line)
            data.append(told)
        else:
            lines += said
            data.append(done)
    if len(failed) == 1 and len(data) == 1:
        raise failed[0]
    return Outcomes(lines, data, failed)
