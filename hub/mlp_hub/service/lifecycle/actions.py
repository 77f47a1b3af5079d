"""Actions that a decision about one job can ask for, besides a `Move` from one phase to another."""

from __future__ import annotations

from dataclasses import dataclass

from mlp_hub.domain.jobs.job import Failure, Job
from mlp_hub.service.state.moves import Move, Step


@dataclass(frozen=True, slots=True)
class Update:
    """Store what changed within the phase; steps are of stages that it came to."""

    job: Job
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Start:
    """Tell the executor to start the present attempt."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Ask all ranks to end."""

    grace_s: float


@dataclass(frozen=True, slots=True)
class Kill:
    """End all ranks at once, whatever state they are in; their traces stay."""

    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class AddSteps:
    """Store steps of the timeline, by themselves."""

    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Collect:
    """Bring what the present attempt left to where it is read from."""


@dataclass(frozen=True, slots=True)
class SweepPoints:
    """Take in the metric points that were reported and never delivered."""


@dataclass(frozen=True, slots=True)
class Forget:
    """Kill what is left of the present attempt and remove its traces."""


@dataclass(frozen=True, slots=True)
class Erase:
    """Remove the job's directory, then its record."""


@dataclass(frozen=True, slots=True)
class Relimit:
    """Give the present attempt the time limit that the job has now, in seconds from its start."""

    time_limit: float | None


@dataclass(frozen=True, slots=True)
class CheckAgain:
    """Nothing to do before this time, unless something happens."""

    at: float


Action = (
    Move
    | Update
    | Start
    | Stop
    | Relimit
    | Kill
    | AddSteps
    | Collect
    | SweepPoints
    | Forget
    | Erase
    | CheckAgain
)
