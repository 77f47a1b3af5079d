"""The control plane: all components on one database and one executor, and when they act."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable

from mlp_hub.background import BackgroundTask
from mlp_hub.domain.errors import Unavailable
from mlp_hub.domain.tenants.tenant_context import TenantContext
from mlp_hub.executors.base import Executor
from mlp_hub.service.components import Components
from mlp_hub.service.config import RunPolicy
from mlp_hub.service.reasons.decisions import DecisionLog
from mlp_hub.service.state.frames import Frame
from mlp_hub.service.state.leadership import LeaseLost
from mlp_hub.service.support.component import call, rows, stops
from mlp_hub.service.support.wall_clock import WallClockWatch
from mlp_hub.service.tenants.groups import GroupPolicy
from mlp_hub.store.database import Database
from mlp_hub.store.errors import StoreUnavailable
from mlp_hub.store.tx import Tx

log = logging.getLogger(__name__)
HOUSEKEEPING_EVERY_S = 30.0
"""Tuning: seconds between two sweeps of old data: sooner with less, cheaper with more."""


class Platform(Components):
    """All components, made once and started once.

    `clock` gives seconds since the epoch. After `start` everything that is not final has been or is
    being looked at, after any crash; `stop` leaves running jobs alone. Neither opens nor closes the
    database and the executor: the caller that made them does.

    `alone`: the database lets no other service in, so that a lease in it is a dead one's. Otherwise
    `start` returns only once no other platform decides. A platform that loses its lease stops all
    actions and stands by.

    `steady` measures durations where the clock can be set; without it, `clock` is never set.

    `on_lead` is awaited each time that this platform leads and has taken up all work. `on_lost` is
    called when it no longer leads.
    """

    def __init__(
        self,
        db: Database,
        executor: Executor,
        clock: Callable[[], float],
        policy: RunPolicy,
        *,
        alone: bool = False,
        groups: GroupPolicy | None = None,
        steady: Callable[[], float] | None = None,
    ) -> None:
        self._leads = False  # all is taken up, and the lease was not lost since
        self.reads_because: StoreUnavailable | None = None
        """Why this platform, which does not lead, answers what only reads: nothing can be written, as on a full disk."""
        self.on_read: list[Callable[[], Awaitable[None]]] = []
        self.on_lead: list[Callable[[], Awaitable[None]]] = []
        self.on_lost: list[Callable[[], None]] = []
        self._housekeeper = BackgroundTask(self._housekeep)
        self._following: asyncio.Task[None] | None = None
        self._clock_watch = WallClockWatch(clock, self._clock_moved, steady or clock)
        super().__init__(
            db,
            executor,
            clock,
            policy,
            alone=alone,
            groups=groups,
            steady=steady,
            lost=self._lease_lost,
            leads=lambda: self.leads,
        )
        self.on_lost.append(self.monitoring.lost)
        executor.on_nodes(self.changes.nodes_changed)

    @property
    def decisions(self) -> DecisionLog:
        """Why the scheduler did what it did."""
        return self.admission.decisions

    @property
    def leads(self) -> bool:
        """Return whether this platform decides and has taken up all work; if not, it answers no requests.

        A platform that could not renew its lease in time, for example without a connection to the database,
        does not lead: another can lead by now.
        """
        return self._leads and (self.db.alone or self.lease.is_sure)

    async def start(self) -> None:
        """Wait until no other platform decides about this database, recover, then run jobs."""
        self.monitoring.start()
        self._following = asyncio.ensure_future(self._follow(first=True))
        await self._following
        self._housekeeper.start()
        self._clock_watch.start()

    async def _follow(self, *, first: bool) -> None:
        """Return once this platform decides and has taken up all work.

        A platform that loses the lease in the meantime stands by, and tries again. One that has stood by
        also tries again after any failure: it can be the only one that can take over.
        """
        while True:
            try:
                await self.lease.acquire_lease()
                began = time.monotonic()
                await self.executor.fence(self.lease.epoch, self.policy.lease_s)
                await self._lead()
            except Unavailable as error:
                if first and isinstance(error, StoreUnavailable) and not self.lease.stood_by:
                    if not await self._read_only(error):
                        raise
                else:
                    log.warning("this service cannot take over yet: %s", error)
            except Exception:
                if first and not self.lease.stood_by:
                    raise
                log.exception("this service could not take over; it tries again")
            if self._leads:
                self.reads_because = None
                log.info("took up all there is in %.1f s", time.monotonic() - began)
                return
            if self.reads_because is None:
                await self._act_no_more()
            await asyncio.sleep(self.policy.lease_s / 10)

    async def _read_only(self, error: StoreUnavailable) -> bool:
        """Answer what only reads, where nothing can be written and nobody else can be on this database; False where it cannot be read."""
        if not self.db.alone:
            return False
        await self._act_no_more()
        try:
            await self.board.load()
            for hook in self.on_read if self.reads_because is None else ():
                await hook()
        except (Unavailable, OSError):
            return False
        if self.reads_because is None:
            log.error(
                "nothing can be written, so this service answers what only reads, and tries again: %s", error
            )
        self.reads_because = error
        return True

    async def _lead(self) -> None:
        if self.reads_because is not None:
            self.board.stop()
        self.changes.forget_tenants()  # another may have changed them until now
        for row in rows(Components):
            if row.start is not None:
                await call(row.start, getattr(self, row.name))
        await self.lease.confirm()  # whoever took it meanwhile is not to be hidden by this one
        self.queue.start()  # not before: the end of a job concerns most components
        self._leads = self.lease.is_held
        try:
            for led in self.on_lead if self._leads else ():
                await led()
        except BaseException:
            self._leads = False
            raise

    def _lease_lost(self) -> None:
        """Stop all actions and stand by: another platform decides; one about to lead finds out by itself."""
        self._leads = False
        for lost in self.on_lost:
            lost()
        if self._following is None or self._following.done():
            self._following = asyncio.ensure_future(self._stand_by())

    async def _stand_by(self) -> None:
        await self._act_no_more()
        await self._follow(first=False)

    async def _act_no_more(self) -> None:
        self._leads = False
        await self._stop_components(close=False)

    async def _stop_components(self, *, close: bool) -> None:
        for name, stop in stops(Components, close=close):
            await call(stop.verb, getattr(self, name))

    async def stop(self) -> None:
        """Decide and act no more; finish what is being stored."""
        await self._clock_watch.stop()
        await self._housekeeper.stop()
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)
        await self._stop_components(close=True)

    def watch(self, context: TenantContext, user: str, name: str, since: int = 0) -> AsyncIterator[Frame]:
        """Yield all data of a job: the present state, `synced`, events, `end`. Refuses a missing job."""
        return self.watcher.watch(context, user, name, since)

    def follow_log(
        self, context: TenantContext, user: str, name: str, rank: int, *, since: int, tail: int | None
    ) -> AsyncIterator[Frame]:
        """Yield a rank's log as it is written, until the job has ended and all was given; refuses a missing job or rank."""
        return self.watcher.follow_log(context, user, name, rank, since=since, tail=tail)

    async def _clock_moved(self, by: float) -> None:
        """Keep the length of all timed states, though the wall clock was set by `by` seconds."""
        if not self._leads:
            return
        for row in rows(Components):
            if row.put_off is not None:
                await call(row.put_off, getattr(self, row.name), by)

    async def _housekeep(self) -> None:
        while True:
            await asyncio.sleep(HOUSEKEEPING_EVERY_S)
            if not self._leads:
                continue
            try:
                await self._tidy()
                await self.db.write(self._purge)
            except LeaseLost:
                continue
            except Exception:  # it is tried again soon; nothing depends on it
                log.exception("deleting old rows failed")

    async def _tidy(self) -> None:
        """Keep each component in order; a fault of one keeps no other from it."""
        for row in rows(Components):
            try:
                if row.tidy is not None:
                    await call(row.tidy, getattr(self, row.name))
            except Unavailable:  # all of them need the database
                raise
            except Exception:  # it is tried again soon; nothing depends on it
                log.exception("keeping %s in order failed", row.name)

    def _purge(self, tx: Tx) -> None:
        for row in rows(Components):
            if row.purge is not None:
                row.purge(self, tx, self.clock())
