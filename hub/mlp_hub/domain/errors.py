"""Every refusal has one type and one reason.

    MLPError
    └── MessageError(message)             what a person is told, in their language
        ├── Refused(reason, message)      what was asked for cannot be done; answered as 403 with its reason
        │   └── IllegalTransition         a state machine was asked for a move its table does not hold
        └── Unavailable(message)          the fault is ours or passes by itself; answered as 503

`Reason` is the closed set that REST, metrics, widgets and tests share.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Self

from mlp_hub.domain.facts import Fact
from mlp_language.message import Message, Viewer, msg
from mlp_language.render import ENGLISH, Reader, render


class Reason(StrEnum):
    """Why a request was refused or a job waits. Closed: adding one is a change of the contract.

    `words` are what people read instead of the type, `meaning` is for the documentation; `waits_for` says what a job waits for,
    None where only requests are refused for it.
    """

    words: str
    meaning: str
    waits_for: Message | None

    def __new__(cls, value: str, words: str, meaning: str, waits_for: Message | None = None) -> Self:
        made = str.__new__(cls, value)
        made._value_ = value
        made.words, made.meaning, made.waits_for = words, meaning, waits_for
        return made

    INVALID = (
        "Invalid",
        "not allowed",
        "The request cannot be understood or holds a value that is not allowed; the message names both.",
    )
    NOT_FOUND = (
        "NotFound",
        "not found",
        "It does not exist, or belongs to somebody else: the answer is the same.",
    )
    CONFLICT = (
        "Conflict",
        "already exists",
        "Something of this name is there already, or a key was used for another request.",
    )
    WRONG_STATE = (
        "WrongState",
        "not in this state",
        "It exists, but not in a state in which this can be done.",
    )
    FORBIDDEN = (
        "Forbidden",
        "no permission",
        "The token lacks the scope, or its owner is not the one who may do this.",
    )
    LOGIN_TOO_OLD = (
        "LoginTooOld",
        "asks for the password again",
        "A browser's session may do this for half an hour after its person has entered the password.",
    )
    EXCEEDS_MAX_QUOTA = (
        "ExceedsMaxQuota",
        "more than the whole quota",
        "More than the tenant's whole quota, or than all nodes together: it could never run.",
    )
    WAITING_FOR_QUOTA = (
        "WaitingForQuota",
        "waits for quota",
        "The tenant uses too much of its quota now, or others have the rest kept free for them; waits until some of it is given back.",
        msg("quota"),
    )
    NO_MATCHING_FLAVOR = (
        "NoMatchingFlavor",
        "device not available",
        "No node has the kind of device that is asked for.",
        msg("a node of the kind asked for"),
    )
    WAITING_FOR_RESOURCES = (
        "WaitingForResources",
        "waits for room on the nodes",
        "The quota would do, but the nodes have no room for all ranks at once.",
        msg("room on the nodes"),
    )
    TOPOLOGY_PLACEMENT_FAILED = (
        "TopologyPlacementFailed",
        "waits for room in the right place",
        "There is room, but not where the rule of `topology` wants the ranks.",
        msg("room in the place that the topology requires"),
    )
    WAITING_FOR_PREEMPTED = (
        "WaitingForPreempted",
        "waits for others to stop",
        "Room is being made for it; it waits until what is stopped for it has ended.",
        msg("the end of jobs that are being stopped"),
    )
    RESERVED = (
        "Reserved",
        "the free room is reserved",
        "There is room now, but it is reserved for a job ahead of it or for a booking.",
        msg("room that is not reserved"),
    )
    DISK_FULL = (
        "DiskFull",
        "waits for room on the disk",
        "The disk has less room than is to stay free, so that nothing is started; or the home of its user holds more than a home may hold.",
        msg("room on the disk"),
    )
    TENANT_MOVES = (
        "TenantMoves",
        "waits while its team's files are moved",
        "The files of its tenant are being moved to where another grade of isolation keeps them; what would change them waits until then.",
        msg("the end of moving the team's files"),
    )
    BUDGET_SPENT = (
        "BudgetSpent",
        "waits for budget",
        "The tenant has spent its budget for this period, which is set to stop new work; running work continues.",
        msg("the next period of the budget, or a higher budget"),
    )
    SUSPENDED = (
        "Suspended",
        "suspended",
        "It was suspended and waits to be resumed.",
        msg("being resumed"),
    )
    STOPPED_EARLY = (
        "StoppedEarly",
        "stopped early",
        "It is a trial of a sweep, and enough others were as good or better at the same step; its quota was given back.",
    )
    IDLE_GPUS = (
        "IdleGpus",
        "GPUs not used",
        "It held GPUs and did not use them for as long as its team allows; it waits to be resumed, or, as a trial of a sweep, was cancelled.",
        msg("being resumed"),
    )
    GATED = (
        "Gated",
        "held back",
        "It is held back until somebody releases it, or its tenant was deleted while it waited.",
        msg("being released"),
    )


class MLPError(Exception):
    """Root of the control plane's errors."""


class MessageError(MLPError):
    """Root of the errors that a person is told: `message` is the sentence as data."""

    def __init__(self, message: Message) -> None:
        super().__init__(message)
        self.message = message

    def text(self, reader: Reader) -> str:
        """Return the sentence for a reader."""
        return render(self.message, reader)

    @property
    def msg(self) -> str:
        """The sentence in English, for logs."""
        return render(self.message, ENGLISH)

    def __str__(self) -> str:
        """Give what logs show."""
        return self.msg


class Refused(MessageError):  # noqa: N818 - "refused" is what happened, and the word of the contract
    """A request that is refused and changes nothing.

    The sentence says what was wrong with which value and what would be right; `retry_after` is in how many seconds the
    same request may succeed, where that is known. `facts` are what is behind it where the scheduler says so. `viewer` are those of
    whom it is passed on to, where that is not who asked.
    """

    def __init__(
        self,
        reason: Reason,
        message: Message,
        *,
        retry_after: float | None = None,
        facts: tuple[Fact, ...] = (),
        viewer: Viewer | None = None,
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.retry_after = retry_after
        self.facts = facts
        self.viewer = viewer

    def to(self, viewer: Viewer) -> Refused:
        """Return it for a reader as this viewer, whoever asked."""
        return Refused(
            self.reason, self.message, retry_after=self.retry_after, facts=self.facts, viewer=viewer
        )

    def __str__(self) -> str:
        """Give what logs show."""
        return f"{self.reason}: {self.msg}"


class IllegalTransition(Refused):
    """A move that the table of transitions does not hold; carries the object's history."""

    def __init__(self, message: Message, history: tuple[str, ...] = ()) -> None:
        so_far = msg("{what} (so far: {history})", what=message, history=" > ".join(history))
        super().__init__(Reason.WRONG_STATE, so_far if history else message)
        self.history = history


class Unavailable(MessageError):  # noqa: N818 - names the condition, as HTTP does
    """The platform cannot answer now; trying again later is right."""


class OutOfReach(Unavailable):
    """Failure of the executor to answer anyone: it is not a job's fault, so a job waits as long as it lasts."""


NOT_THERE: Mapping[str, Message] = {
    "announcement": msg("announcement {name} does not exist"),
    "app": msg("app {name} does not exist"),
    "dataset": msg("dataset {name} does not exist"),
    "job": msg("job {name} does not exist"),
    "key": msg("key {name} does not exist"),
    "model": msg("model {name} does not exist"),
    "member": msg("member {name} does not exist"),
    "node": msg("node {name} does not exist"),
    "runtime": msg("runtime {name} does not exist"),
    "secret": msg("secret {name} does not exist"),
    "sweep": msg("sweep {name} does not exist"),
    "tenant": msg("team {name} does not exist"),
    "user": msg("user {name} does not exist"),
}


def not_found(kind: str, name: str) -> Refused:
    """Return the one answer for a missing object and for one that the asker may not know of."""
    message = NOT_THERE.get(kind, msg("{kind} {name} does not exist"))
    return Refused(Reason.NOT_FOUND, replace(message, args={"kind": kind, "name": name}))
