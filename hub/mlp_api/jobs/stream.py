"""Frames of a job's WebSocket, one object a message; `type` says which. The rest of the contract is in `types`."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from mlp_api.jobs.jobs import Event, Job, JobAttempt, Why
from mlp_api.types import Response


class Point(Response):
    """Stored report of one rank, as its process made it; null replaces a value that is not a finite number."""

    seq: int
    time: float
    rank: int
    step: float | None
    values: dict[str, float | None]


class _Frame(Response, tag_field="type"):
    """Base of all frames."""


class JobFrame(_Frame, tag="job"):
    """The job as it is now."""

    job: Job


class MetricsFrame(_Frame, tag="metrics"):
    """Points, in order."""

    points: list[Point]


class EventsFrame(_Frame, tag="events"):
    """Steps of the timeline, in order."""

    events: list[Event]


class AttemptsFrame(_Frame, tag="attempts"):
    """All newest attempts of the job, in order; they replace those sent before."""

    attempts: list[JobAttempt]


class LogText(Response):
    """Line of the frame's rank; the next line of the stream continues a line with `partial`."""

    time: str
    stream: str
    text: str
    partial: bool | UnsetType = UNSET


class LogFrame(_Frame, tag="log"):
    """Lines of one rank; `offset` is the cursor behind them.

    `dropped` bytes are missing before the lines, and `dropped_lines` lines. The latter is null where
    the lines were not counted. A line of the stream `mlp` marks their position.
    """

    rank: int
    lines: list[LogText]
    offset: int
    dropped: int
    dropped_lines: int | None = None


class WhyFrame(_Frame, tag="why"):
    """Why the job waits, null where it does not."""

    why: Why | None


class SyncedFrame(_Frame, tag="synced"):
    """Marker that all existing data is sent; the frames after it are new."""


class EndFrame(_Frame, tag="end"):
    """The job has ended, and all of it is sent."""


Frame = JobFrame | MetricsFrame | EventsFrame | AttemptsFrame | LogFrame | WhyFrame | SyncedFrame | EndFrame
