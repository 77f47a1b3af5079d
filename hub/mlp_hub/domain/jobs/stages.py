"""Stages of an attempt, from the queue to the first line of its output: where the time goes before anything is seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from mlp_language.message import Message, msg


class StartStage(StrEnum):
    """Stage of an attempt, in order; not every executor has all of them."""

    QUEUED = "queued"
    ADMITTED = "admitted"
    CREATED = "created"  # its pods are there
    BOUND = "bound"  # they have their nodes
    PULLED = "pulled"  # their images are there, and their containers run
    STARTED = "started"  # the first of its programs runs
    FIRST_LINE = "first-line"  # of what they write


@dataclass(frozen=True, slots=True)
class StageTimes:
    """When an attempt came to the stages that only its executor sees, in seconds since the epoch; None: not yet, or never."""

    created: float | None = None
    bound: float | None = None
    pulled: float | None = None
    first_line: float | None = None

    def time_of(self, stage: StartStage) -> float | None:
        """Return when it came to one of these stages."""
        at: float | None = getattr(self, stage.name.lower())
        return at

    def then(self, later: StageTimes) -> StageTimes:
        """Return what was known before, and what came later."""
        names = ("created", "bound", "pulled", "first_line")
        pairs = [(getattr(self, name), getattr(later, name)) for name in names]
        return StageTimes(*(new if old is None else old for old, new in pairs))


SEEN_BY_EXECUTORS = (StartStage.CREATED, StartStage.BOUND, StartStage.PULLED, StartStage.FIRST_LINE)
NO_TIMES = StageTimes()
STAGES: Mapping[StartStage, Message] = {
    StartStage.CREATED: msg("its pods are made"),
    StartStage.BOUND: msg("its pods have their nodes"),
    StartStage.PULLED: msg("its pods have their images, and their containers run"),
    StartStage.STARTED: msg("its program runs"),
    StartStage.FIRST_LINE: msg("the first line of its output"),
}
"""Texts of a job's timeline for stages that are not phases."""
