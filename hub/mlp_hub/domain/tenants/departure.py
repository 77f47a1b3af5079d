"""Departure of a user: the choices for their jobs and files, and the progress."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from mlp_hub.domain.machine import Machine
from mlp_language.message import msg


class DeparturePhase(StrEnum):
    """How far it has come; each is durable before anything of it is done, and may be done again."""

    CLOSING = "closing"  # the account is shut out: its sessions, tokens and notebook servers end
    ENDING = "ending"  # their jobs are put aside or stopped, as was chosen
    REMOVING = "removing"  # nothing of theirs runs any more; their jobs and files are removed
    LEFT = "left"  # all that was chosen is done


class JobsChoice(StrEnum):
    """Choice for the jobs of a user who leaves."""

    FINISH = "finish"  # those that run go on to their end, those that wait are put aside
    STOP = "stop"  # all are cancelled


class FilesChoice(StrEnum):
    """Choice for the files of a user who leaves."""

    KEEP = "keep"  # they stay for when the account is let in again
    REMOVE = "remove"  # they go with the records of their jobs, once nothing runs any more


P = DeparturePhase
DEPARTURE_MACHINE = Machine(
    {
        P.CLOSING: frozenset({P.ENDING}),
        P.ENDING: frozenset({P.REMOVING, P.LEFT}),
        P.REMOVING: frozenset({P.LEFT}),
        P.LEFT: frozenset(),
    },
    msg("the departure of {name} is {old} and cannot become {new}"),
)
"""Transitions of a departure."""


@dataclass(frozen=True, slots=True)
class Departure:
    """One of a user. `stopped`, `suspended` and `removed` count jobs."""

    user: str
    jobs: JobsChoice
    files: FilesChoice
    actor: str
    since: float
    phase: DeparturePhase = DeparturePhase.CLOSING
    stopped: int = 0
    suspended: int = 0
    removed: int = 0
