"""Moves of jobs from phase to phase, as decided and stored, with their entries in the timeline."""

from __future__ import annotations

from dataclasses import dataclass

from mlp_hub.domain.errors import Reason
from mlp_hub.domain.jobs.job import JOB_MACHINE, Job, Phase
from mlp_hub.service.state.former_members import has_left, put_aside
from mlp_hub.store.tx import Tx
from mlp_language.message import Message


@dataclass(frozen=True, slots=True)
class Step:
    """Step of a timeline to store.

    `once`: an attempt has at most one of the kind, though what it is known from may be seen again.
    """

    kind: str
    message: Message
    reason: str | None = None
    at: float | None = None  # when that was, where it is known better than when it is stored
    once: bool = False


@dataclass(frozen=True, slots=True)
class Move:
    """Transition of a job, stored in one transaction with its step and its changes of the ledger.

    `through` are the phases that the job passes on the way, each with its step: they need no actions
    and no display. `before` are the steps in the timeline before all that. `token` is the SHA-256 of a
    token that is valid from now on.
    """

    old: Job
    new: Job
    step: Step
    before: tuple[Step, ...] = ()
    through: tuple[tuple[Phase, Step], ...] = ()
    token: str | None = None

    def check(self) -> None:
        """Raise `IllegalTransition` unless the table allows each of the moves."""
        at = self.old.phase
        for phase in (*(p for p, _ in self.through), self.new.phase):
            JOB_MACHINE.check(at, phase, name=self.new.title)
            at = phase

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps in order, the last one's among them."""
        return (*self.before, *(step for _, step in self.through), self.step)

    def then(self, later: Move) -> Move:
        """Return this move and the one that follows it as one."""
        through = (*self.through, (self.new.phase, self.step), *later.through)
        return Move(self.old, later.new, later.step, (*self.before, *later.before), through, later.token)

    def unless_left(self, tx: Tx, now: float) -> Move:
        """Return the same move, but to suspended instead of queued if the user has left the tenant."""
        if self.new.phase is not Phase.QUEUED or not has_left(tx, self.new.spec):
            return self
        return self.then(aside(self.new, now))


def aside(job: Job, now: float, message: Message | None = None) -> Move:
    """Return the move of a job that is put aside because its user has left the tenant, or due to `message`."""
    new = put_aside(job, now, message)
    return Move(job, new, Step("suspended", new.message, Reason.SUSPENDED.value))
