"""Acts outside the database: only while this service decides, and under its epoch.

No transaction fences these acts. So the lease is looked at right before each, and the executor refuses them once it has
seen a newer epoch; between the two nothing is left that the next service would not notice or wait for.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from mlp_hub.domain.jobs.job import Failure
from mlp_hub.domain.stored.model import ModelFormat
from mlp_hub.executors.base import AttemptKey, Executor, LaunchSpec
from mlp_hub.executors.workspace import Extent, FetchSteps, OpenSource, Place, StoredPlace
from mlp_hub.service.state.leadership import Leadership, LeaseLost

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _HeldSteps:
    """Steps that end where the lease does."""

    steps: FetchSteps
    held: Callable[[], None]

    def admit(self, size: int) -> None:
        self.held()
        self.steps.admit(size)

    def report_progress(self, percent: int) -> None:
        self.steps.report_progress(percent)

    def check_cancelled(self) -> None:
        self.held()
        self.steps.check_cancelled()


class FencedEffects:
    """Acts on attempts and on jobs' directories.

    All raise `LeaseLost` where another service decides, and `Superseded` where one has begun to act.
    """

    def __init__(self, executor: Executor, lease: Leadership) -> None:
        self._executor = executor
        self._lease = lease

    async def start(self, spec: LaunchSpec) -> None:
        """Start an attempt."""
        await self._lease.ensure_held()
        await self._executor.start(spec, self._lease.epoch)

    async def stop(self, attempt: str, grace_s: float, failure: Failure | None = None) -> None:
        """Ask all ranks of an attempt to end, with a failure for that reason."""
        await self._lease.ensure_held()
        await self._executor.stop(attempt, grace_s, self._lease.epoch, failure)

    async def kill(self, attempt: str, failure: Failure | None) -> None:
        """End all ranks of an attempt at once, with a failure for that reason."""
        await self._lease.ensure_held()
        await self._executor.kill(attempt, self._lease.epoch, failure)

    async def limit(self, attempt: str, time_limit: float | None) -> None:
        """Give an attempt another time limit, from its start on."""
        await self._lease.ensure_held()
        await self._executor.limit(attempt, time_limit, self._lease.epoch)

    async def collect(self, attempt: AttemptKey) -> None:
        """Bring what an attempt left to where it is read from."""
        await self._lease.ensure_held()
        await self._executor.collect(attempt, self._lease.epoch)

    async def forget(self, attempt: str) -> None:
        """Kill what is left of an attempt and remove its traces."""
        await self._lease.ensure_held()
        await self._executor.forget(attempt, self._lease.epoch)

    async def erase(self, of: Place) -> None:
        """Remove a run's directory, or a home; this can take long, and stops if the lease is lost."""
        await self._lease.ensure_held()
        epoch = self._lease.epoch
        await self._executor.workspace.erase(of, epoch, self._lease.going_on(epoch))

    async def erase_stored(self, of: StoredPlace) -> None:
        """Remove the files of something that is stored, in the same way."""
        await self._lease.ensure_held()
        epoch = self._lease.epoch
        await self._executor.workspace.erase_stored(of, epoch, self._lease.going_on(epoch))

    async def keep(
        self, of: Place, path: str, to: StoredPlace, *, most: int, wanted: Callable[[], None]
    ) -> tuple[Extent, ModelFormat]:
        """Copy files to where they are kept; `wanted` is asked on the way, and may raise to leave off."""
        await self._lease.ensure_held()
        epoch = self._lease.epoch
        held = self._lease.going_on(epoch)

        def check_cancelled() -> None:
            held()
            wanted()

        return await self._executor.workspace.keep(
            of, path, to, most=most, epoch=epoch, check_cancelled=check_cancelled
        )

    async def fetch(
        self, source: OpenSource, to: StoredPlace, owner: int | None, steps: FetchSteps
    ) -> Extent:
        """Copy a source to where it is kept."""
        await self._lease.ensure_held()
        epoch = self._lease.epoch
        return await self._executor.workspace.fetch(
            source, to, owner, epoch=epoch, steps=_HeldSteps(steps, self._lease.going_on(epoch))
        )

    async def place(self, of: StoredPlace, owner: int | None) -> None:
        """Make the directory of something that is stored."""
        await self._lease.ensure_held()
        await self._executor.workspace.place(of, owner, epoch=self._lease.epoch)

    async def evict(self, of: StoredPlace, owner: int | None) -> None:
        """Remove what was fetched of a source."""
        await self._lease.ensure_held()
        await self._executor.workspace.evict(of, owner, epoch=self._lease.epoch)

    async def still_decides(self) -> bool:
        """After `Superseded`: whether the database says that this service decides, whoever else acts."""
        try:
            await self._lease.confirm()
        except LeaseLost:
            return False
        log.error("a service with a newer epoch than %d acts on this hub's jobs", self._lease.epoch)
        return True
