"""Every refusal has one type and one reason.

    MLPError
    ├── Refused(reason, msg)      what was asked for cannot be done; answered as 403 with its reason
    │   └── IllegalTransition     a state machine was asked for a move its table does not hold
    └── Unavailable(msg)          the fault is ours or passes by itself; answered as 503

`Reason` is the closed set that REST, metrics, widgets and tests share.
"""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why a request was refused or a job waits. Closed: adding one is a change of the contract."""

    INVALID = "Invalid"
    NOT_FOUND = "NotFound"
    CONFLICT = "Conflict"
    WRONG_STATE = "WrongState"
    FORBIDDEN = "Forbidden"
    EXCEEDS_MAX_QUOTA = "ExceedsMaxQuota"
    WAITING_FOR_QUOTA = "WaitingForQuota"
    NO_MATCHING_FLAVOR = "NoMatchingFlavor"
    WAITING_FOR_RESOURCES = "WaitingForResources"
    TOPOLOGY_PLACEMENT_FAILED = "TopologyPlacementFailed"
    WAITING_FOR_PREEMPTED = "WaitingForPreempted"
    RESERVED = "Reserved"
    SUSPENDED = "Suspended"
    GATED = "Gated"


MEANINGS: dict[Reason, str] = {
    Reason.INVALID: "The request cannot be understood or holds a value that is not allowed; the message names both.",
    Reason.NOT_FOUND: "It does not exist, or belongs to somebody else: the answer is the same.",
    Reason.CONFLICT: "Something of this name is there already, or a key was used for another request.",
    Reason.WRONG_STATE: "It exists, but not in a state in which this can be done.",
    Reason.FORBIDDEN: "The token lacks the scope, or its owner is not the one who may do this.",
    Reason.EXCEEDS_MAX_QUOTA: "More than the tenant's whole quota, or than all nodes together: it could never run.",
    Reason.WAITING_FOR_QUOTA: "The tenant uses too much of its quota now, or others have the rest kept free for them; "
    "waits until some of it is given back.",
    Reason.NO_MATCHING_FLAVOR: "No node has the kind of device that is asked for.",
    Reason.WAITING_FOR_RESOURCES: "The quota would do, but the nodes have no room for all ranks at once.",
    Reason.TOPOLOGY_PLACEMENT_FAILED: "There is room, but not where the rule of `topology` wants the ranks.",
    Reason.WAITING_FOR_PREEMPTED: "Room is being made for it; it waits until what is stopped for it has ended.",
    Reason.RESERVED: "There is room now, but a job ahead of it, or who booked it for a time that comes, is to have it.",
    Reason.SUSPENDED: "It was suspended and waits to be resumed.",
    Reason.GATED: "It is held back until somebody releases it, or its tenant was deleted while it waited.",
}
"""What each reason means, for the documentation."""

WORDS: dict[Reason, str] = {
    Reason.INVALID: "not allowed",
    Reason.NOT_FOUND: "not there",
    Reason.CONFLICT: "there already",
    Reason.WRONG_STATE: "not in this state",
    Reason.FORBIDDEN: "no right to it",
    Reason.EXCEEDS_MAX_QUOTA: "more than the whole quota",
    Reason.WAITING_FOR_QUOTA: "waits for quota",
    Reason.NO_MATCHING_FLAVOR: "no such device here",
    Reason.WAITING_FOR_RESOURCES: "waits for room on the nodes",
    Reason.TOPOLOGY_PLACEMENT_FAILED: "waits for room in the right place",
    Reason.WAITING_FOR_PREEMPTED: "waits for others to stop",
    Reason.RESERVED: "the room is kept for others",
    Reason.SUSPENDED: "suspended",
    Reason.GATED: "held back",
}
"""What people read instead of the type; the front end and `mlp` have the same table, and a test compares them."""


class MLPError(Exception):
    """Root of the control plane's errors."""


class Refused(MLPError):  # noqa: N818 - "refused" is what happened, and the word of the contract
    """A request that is refused and changes nothing.

    `msg` says what was wrong with which value and what would be right; `retry_after` is in how many seconds the same
    request may succeed, where that is known.
    """

    def __init__(self, reason: Reason, msg: str, *, retry_after: float | None = None) -> None:
        super().__init__(f"{reason}: {msg}")
        self.reason = reason
        self.msg = msg
        self.retry_after = retry_after


class IllegalTransition(Refused):
    """A move that the table of transitions does not hold; carries the object's history."""

    def __init__(self, kind: str, name: str, state: str, move: str, history: tuple[str, ...] = ()) -> None:
        past = f" (so far: {' > '.join(history)})" if history else ""
        super().__init__(Reason.WRONG_STATE, f"{kind} {name} is {state} and cannot {move}{past}")
        self.history = history


class Unavailable(MLPError):  # noqa: N818 - names the condition, as HTTP does
    """The platform cannot answer now; trying again later is right."""

    def __init__(self, msg: str) -> None:
        super().__init__(msg)
        self.msg = msg


def not_found(kind: str, name: str) -> Refused:
    """Return the one answer for what does not exist and for what the asker may not know of."""
    return Refused(Reason.NOT_FOUND, f"there is no {kind} {name}")
