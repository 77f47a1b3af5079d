"""Names of the contract, and what they are called: made by `make docs`, not by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

PolicyName = Literal["fair", "maxmin", "fifo", "priority", "finish"]
QueueOrder = Literal["priority", "fifo", "fair", "maxmin"]
PlacementRule = Literal["fgd", "bestfit", "packing", "spread", "random"]
NoticeEvent = Literal[
    "started",
    "finished",
    "failed",
    "preempted",
    "late",
    "asked",
    "answered",
    "idle",
    "idle_job",
    "idle_team",
    "alert",
    "resolved",
    "budget",
]
POLICIES: Mapping[PolicyName, str] = {
    "fair": "share of the machines, current and recent use",
    "maxmin": "share of the machines, current use only",
    "fifo": "first come, first served",
    "priority": "priority, then age",
    "finish": "jobs that would be late first",
}
ORDERS: Mapping[QueueOrder, str] = {
    "priority": "priority, then age",
    "fifo": "age alone",
    "fair": "turns of its members, by current and recent use",
    "maxmin": "turns of its members, by current use",
}
