"""Jobs that people made past the hub, where jobs run: they wait there until the hub lets them in.

Part of the executor's interface; level-triggered as all of it: `all` is the truth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from mlp_hub.domain.jobs.job import ExternalJob
from mlp_hub.domain.resources import Resources
from mlp_language.message import Message


@dataclass(frozen=True, slots=True)
class ObservedExternalJob:
    """One of them. Each of its ranks counts as the largest; `job` is the uid of the hub's job that it is."""

    what: ExternalJob
    user: str
    tenant: str
    runtime: str
    workers: int
    ps: int
    per_worker: Resources
    time_limit: int | None = None
    job: str | None = None
    refused: bool = False
    fault: Message | None = None  # what is wrong with it
    waits: str = ""  # why it waits, as it is written down on it


class ExternalJobs(Protocol):
    """The jobs that people made past the hub. Acts carry the epoch of the service that decides."""

    def all(self) -> Sequence[ObservedExternalJob]:
        """List them as last heard of, those that have ended too; a view that costs nothing."""
        ...

    def find(self, uid: str) -> ObservedExternalJob | None:
        """Return the one of this uid; None where it has gone or is going, or is in no tenant's place."""
        ...

    def is_there(self, uid: str) -> bool:
        """Whether there is one of this uid, wherever, and nobody has deleted it."""
        ...

    async def seen(self) -> None:
        """Return once all that there are were heard of."""
        ...

    def on_news(self, callback: Callable[[str], None]) -> None:
        """Call back with the uid of one, on the event loop, whenever it has changed, come or gone."""
        ...

    async def accept(self, what: ExternalJob, job: str, name: str, epoch: int = 0) -> None:
        """Write down that it is this job of the hub's, by its uid and its name."""
        ...

    async def refuse(self, what: ExternalJob, why: Message, epoch: int = 0) -> None:
        """Write down that it will not run, where its user reads it."""
        ...

    async def explain(self, what: ExternalJob, why: str, epoch: int = 0) -> None:
        """Write down why it waits, where its user reads it; an empty text removes that."""
        ...

    async def remove(self, what: ExternalJob, epoch: int = 0) -> None:
        """Delete it, and what runs of it."""
        ...
