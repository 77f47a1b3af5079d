"""Requests that someone decides on: a team's admin asks for more quota, a person for a place in a team."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from mlp_hub.domain.machine import Machine
from mlp_language.message import Message, msg


class AskPhase(StrEnum):
    """State of a request for more quota."""

    OPEN = "open"  # a platform admin is to decide
    ACCEPTED = "accepted"  # and the quota is what was asked for, in the same transaction
    DECLINED = "declined"  # with a word that says why
    WITHDRAWN = "withdrawn"  # by the team itself


P = AskPhase
ASK_PHASES: dict[AskPhase, Message] = {
    P.OPEN: msg("open"),
    P.ACCEPTED: msg("accepted"),
    P.DECLINED: msg("declined"),
    P.WITHDRAWN: msg("withdrawn"),
}
ASK_MACHINE = Machine(
    {
        P.OPEN: frozenset({P.ACCEPTED, P.DECLINED, P.WITHDRAWN}),
        P.ACCEPTED: frozenset(),
        P.DECLINED: frozenset(),
        P.WITHDRAWN: frozenset(),
    },
    msg("the request of {name} is {old} and cannot become {new}"),
    ASK_PHASES,
)
"""Transitions of a request for more quota."""


@dataclass(frozen=True, slots=True)
class AskedQuota:
    """Request for more quota: the new totals of a tenant in each dimension that it names."""

    uid: str
    tenant: str
    user: str
    asked_at: float
    amounts: tuple[tuple[str, int], ...]  # dimension, as a quota has it
    reason: str
    phase: AskPhase = P.OPEN
    decided_by: str | None = None
    decided_at: float | None = None
    word: str = ""


@dataclass(frozen=True, slots=True)
class AskedPlace:
    """A person's request for a place in a tenant. It gives nothing by itself, and is gone once somebody has decided."""

    tenant: str
    user: str
    asked_at: float
    note: str = ""
