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


class MLPError(Exception):
    """Root of the control plane's errors."""


class Refused(MLPError):  # noqa: N818 - "refused" is what happened, and the word of the contract
    """A request that is refused and changes nothing.

    `msg` says what was wrong with which value and what would be right.
    """

    def __init__(self, reason: Reason, msg: str) -> None:
        super().__init__(f"{reason}: {msg}")
        self.reason = reason
        self.msg = msg


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
