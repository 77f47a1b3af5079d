"""A tenant's files on their way from one grade of isolation to another; the one table of the phases."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from mlp_hub.domain.machine import Machine
from mlp_hub.domain.tenants.tenant import Isolation
from mlp_language.message import NOTHING, Message, msg


class RelocationPhase(StrEnum):
    """State of a relocation."""

    WAITING = "waiting"  # nothing of the tenant starts any more; what runs goes on to its end
    COPYING = "copying"  # its files are being copied; all look for them where they were
    COMPARING = "comparing"  # both copies are compared, to the last byte
    REMOVING = "removing"  # all look for them where they are now; those that were copied are being removed
    UNDOING = "undoing"  # it was called off, or cannot be done: what was copied is being removed
    DONE = "done"  # its files are where they are to be kept
    FAILED = "failed"  # all is as it was before


R = RelocationPhase
RELOCATION_MACHINE = Machine(
    {
        R.WAITING: frozenset({R.COPYING, R.UNDOING}),
        R.COPYING: frozenset({R.COMPARING, R.UNDOING}),
        R.COMPARING: frozenset({R.REMOVING, R.COPYING, R.UNDOING}),
        R.REMOVING: frozenset({R.DONE}),
        R.UNDOING: frozenset({R.FAILED}),
        R.DONE: frozenset(),
        R.FAILED: frozenset(),
    },
    msg("the relocation of team {name} is {old} and cannot become {new}"),
)
UNDER_WAY = frozenset(R) - {R.DONE, R.FAILED}
"""Phases in which nothing of the tenant starts, and nobody changes its files."""
REVOCABLE = frozenset({R.WAITING, R.COPYING, R.COMPARING})
"""Phases in which it can be called off."""


@dataclass(frozen=True, slots=True)
class Relocation:
    """The last relocation of a tenant. Sizes in bytes, times in seconds since the epoch."""

    tenant: str
    phase: RelocationPhase
    old: Isolation
    new: Isolation
    asked_by: str
    asked_at: float
    total: int = 0
    message: Message = NOTHING
    ended_at: float | None = None

    @property
    def under_way(self) -> bool:
        """Whether it is not over."""
        return self.phase in UNDER_WAY

    @property
    def kept(self) -> Isolation:
        """How the tenant's files are kept now: where all look for them."""
        return self.new if self.phase in (R.REMOVING, R.DONE) else self.old


def check_relocation_move(relocation: Relocation, new: RelocationPhase) -> None:
    """Raise `IllegalTransition` unless the table allows the move."""
    RELOCATION_MACHINE.check(relocation.phase, new, name=relocation.tenant)
