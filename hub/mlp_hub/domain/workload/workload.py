"""Kinds of workloads that ask for room through the ledger. A kind is a row of this table.

Jobs have rows of their own, and replicas of apps are jobs; what is admitted for a notebook server is its resource request.
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
"""Kind of what has a row of its own."""
APP = "app"
"""Kind of replicas of apps, which are jobs but for their name."""
SERVER = WorkloadKind("server", "sp", "notebook")

KINDS: Mapping[str, WorkloadKind] = {kind.applier: kind for kind in (SERVER,)}
"""Kinds by applier."""


def kind_of(name: str) -> WorkloadKind:
    """Return the kind of this name. Raises `KeyError` where it is no row of the table."""
    return {kind.name: kind for kind in KINDS.values()}[name]
