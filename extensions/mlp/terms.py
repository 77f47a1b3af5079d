"""Names of the contract, and what they are called: made by `make docs`, not by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mlp.language import say

REASONS: Mapping[str, Callable[[], str]] = {
    "Invalid": lambda: say("not allowed"),
    "NotFound": lambda: say("not found"),
    "Conflict": lambda: say("already exists"),
    "WrongState": lambda: say("not in this state"),
    "Forbidden": lambda: say("no permission"),
    "LoginTooOld": lambda: say("asks for the password again"),
    "ExceedsMaxQuota": lambda: say("more than the whole quota"),
    "WaitingForQuota": lambda: say("waits for quota"),
    "NoMatchingFlavor": lambda: say("device not available"),
    "WaitingForResources": lambda: say("waits for room on the nodes"),
    "TopologyPlacementFailed": lambda: say("waits for room in the right place"),
    "WaitingForPreempted": lambda: say("waits for others to stop"),
    "Reserved": lambda: say("the free room is reserved"),
    "DiskFull": lambda: say("waits for room on the disk"),
    "TenantMoves": lambda: say("waits while its team's files are moved"),
    "BudgetSpent": lambda: say("waits for budget"),
    "Suspended": lambda: say("suspended"),
    "StoppedEarly": lambda: say("stopped early"),
    "IdleGpus": lambda: say("GPUs not used"),
    "Gated": lambda: say("held back"),
}
ORDERS: Mapping[str, Callable[[], str]] = {
    "priority": lambda: say("priority, then age"),
    "fifo": lambda: say("age alone"),
    "fair": lambda: say("turns of its members, by current and recent use"),
    "maxmin": lambda: say("turns of its members, by current use"),
}
Words = Callable[[], str]
COUNTED: Mapping[str, tuple[str | None, Words, Words]] = {
    "shm": (
        "ram",
        lambda: say("size of /dev/shm of each rank, a part of its memory"),
        lambda: say("half of the memory"),
    ),
}
RUNTIMES = ("mpi", "tf", "torch", "plain")
PRIORITIES = ("low", "normal", "high")
TOPOLOGIES = ("same-node", "same-rack", "same-zone", "spread")
NOTICE_EVENTS = (
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
)
