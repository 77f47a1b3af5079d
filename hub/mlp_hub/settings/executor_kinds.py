"""Executors by the values of the setting `executor`, with all other properties that depend on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ExecutorKind:
    """A row of the table. `words` complete "Where jobs run: "."""

    words: str
    needs_sandbox: bool = False
    """Whether users are kept apart by this machine's sandbox, so that there has to be one."""
    cluster: bool = False
    """Whether notebooks and jobs are pods, which reach the hub over TCP and have their files on a volume."""


EXECUTOR_KINDS: Mapping[str, ExecutorKind] = {
    "local": ExecutorKind("in sandboxes on this machine", needs_sandbox=True),
    "simulated": ExecutorKind("on nodes that are simulated"),
    "kubernetes": ExecutorKind("as pods of a cluster, and notebook servers too", cluster=True),
}
