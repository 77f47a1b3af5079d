"""What each rank of a job is, known before any of them runs."""

from __future__ import annotations

FIRST = {"tf": "chief"}
"""The role of rank 0, by runtime, where it is not `worker` like the others."""


def roles_of(runtime: str, workers: int, ps: int) -> tuple[str, ...]:
    """Return the role of each rank by its number: the workers, then the parameter servers."""
    first = (FIRST.get(runtime, "worker"),)
    return (*first[:workers], *("worker",) * (workers - 1), *("ps",) * ps)
