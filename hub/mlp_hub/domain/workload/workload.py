"""Kinds of workloads that ask for room through the ledger; a kind is a row of this table.

Jobs have their own rows, and replicas of apps are jobs. For a notebook server, its resource request
is admitted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WorkloadKind:
    """Rules of one kind of workload."""

    name: str  # as references to it have it
    applier: str  # whose resource requests are of this kind
    title: str  # what each is called; its user tells whose it is
    priority: str = "normal"
    preemptible: bool = False  # whether it may be stopped for others
    gives_way: bool = False  # whether it leaves room alone that is kept for a workload ahead of it
    goes_first: bool = True  # whether the jobs of its tenant let it pass


JOB = "job"
"""Kind of a workload with its own row."""
APP = "app"
"""Kind of replicas of apps, which are jobs but for their name."""
SERVER = WorkloadKind("server", "sp", "notebook")

KINDS: Mapping[str, WorkloadKind] = {kind.applier: kind for kind in (SERVER,)}
"""Kinds by applier."""


def kind_of(name: str) -> WorkloadKind:
    """Return the kind of this name. Raises `KeyError` if the table has no such row."""
    return {kind.name: kind for kind in KINDS.values()}[name]
