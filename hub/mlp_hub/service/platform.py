"""The composed root: all services of the control plane on one database and one executor."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable

from mlp_hub.domain.errors import Unavailable
from mlp_hub.executors.base import Executor
from mlp_hub.service.admit import Admission
from mlp_hub.service.audit import AuditLog
from mlp_hub.service.board import Board
from mlp_hub.service.bookings import Bookings
from mlp_hub.service.broker import QUEUE_TOPIC, Broker
from mlp_hub.service.config import Paths, RunPolicy
from mlp_hub.service.decisions import KEPT_S
from mlp_hub.service.idle_quota import IdleQuota
from mlp_hub.service.jobs import Jobs
from mlp_hub.service.lease import Leadership
from mlp_hub.service.ledger import Ledger
from mlp_hub.service.metrics import Metrics
from mlp_hub.service.nodes import Nodes
from mlp_hub.service.preview import Previews
from mlp_hub.service.reclaim import Reclaims
from mlp_hub.service.reconcile import Reconciler
from mlp_hub.service.retention import Retention
from mlp_hub.service.strays import Strays
from mlp_hub.service.tenants import Tenants
from mlp_hub.service.users import Users
from mlp_hub.service.watch import Frame, Watcher
from mlp_hub.service.whatif import WhatIf
from mlp_hub.store.database import Database
from mlp_hub.store.errors import StoreUnavailable
from mlp_hub.store.tx import Tx

log = logging.getLogger(__name__)
SWEEP_EVERY_S = 30.0
MOST_SWEPT = 1000
"""Entries of the audit log that are forgotten in one sweep."""
CLAIM_S = 30.0
"""So long besides the grace of those who are stopped for it a claim is kept for who does not ask again."""


class Platform:
    """All services, made once and started once.

    `clock` gives seconds since the epoch. After `start` everything that is not final has been or is being
    looked at, whatever was killed before; `stop` leaves running jobs alone. Neither opens nor closes the
    database and the executor: who made them does.

    `alone`: the database lets no other service in, so that a lease that is found is a dead one's. Otherwise `start`
    returns only once no other platform decides; what loses its lease stops acting and stands by.
    """

    def __init__(
        self,
        db: Database,
        executor: Executor,
        clock: Callable[[], float],
        paths: Paths,
        policy: RunPolicy,
        *,
        alone: bool = False,
    ) -> None:
        self.db = db
        self.executor = executor
        self.paths = paths
        self.policy = policy
        self._clock = clock
        self.broker = Broker()
        self.lease = Leadership(
            db,
            clock,
            length_s=policy.lease_s,
            poll_s=policy.lease_s / 10,
            alone=alone,
            floor=executor.epoch,
        )
        self.lease.lost = self._lease_lost
        self.board = Board(db, self.broker, self.lease.check)
        self.admission = Admission(self.board, executor.nodes, clock, policy)
        self.metrics = Metrics(self.board, clock, policy.metric_points_max)
        self.jobs = Jobs(self.board, self.admission, self.metrics, executor, clock, paths, policy)
        self.reconciler = Reconciler(self.board, executor, self.metrics, clock, paths, policy, self.lease)
        self.admission.starts = self.reconciler.will_start
        self.retention = Retention(self.board, clock, policy.keep)
        self.idle = IdleQuota(db, clock, policy.idle, changed=self._room_changed)
        self.bookings = Bookings(db, clock, executor.nodes, changed=self._room_changed)
        self.strays = Strays(db, clock)
        self.tenants = Tenants(
            db,
            clock,
            executor.nodes,
            changed=self._room_changed,
            left=self.strays.look_soon,
            review=self.idle.review_in,
            windows=self.bookings.review_in,
            board=self.board,
        )
        self.previews = Previews(db, self.admission.snapshot, clock, executor.nodes, policy.idle)
        self.users = Users(db, clock, changed=self.jobs.forget_places)
        self.ledger = Ledger(
            db,
            clock,
            executor.nodes,
            changed=self._room_changed,
            asks=self.idle.asks,
            reclaimer=Reclaims(db, self.admission, clock, policy.grace_s),
            claim_s=policy.grace_s + CLAIM_S,
        )
        self.nodes = Nodes(db, executor, clock)
        self.decisions = self.admission.decisions
        self.audit = AuditLog(db)
        self.whatif = WhatIf(self.board, self.admission, clock)
        self._watcher = Watcher(self.board, self.admission, self.jobs, self.metrics, executor, paths)
        self._sweeper: asyncio.Task[None] | None = None
        self._leads = False  # all is taken up, and the lease was not lost since
        self._following: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Wait until no other platform decides about this database, recover, then run jobs."""
        self._following = asyncio.ensure_future(self._follow(first=True))
        await self._following
        self._sweeper = asyncio.ensure_future(self._sweep())

    async def _follow(self, *, first: bool) -> None:
        """Return once this platform decides and has taken up all there is to do.

        Who loses the lease meanwhile stands by, and tries again; so does who comes second when something is not there.
        """
        while True:
            try:
                await self.lease.take()
                await self.executor.fence(self.lease.epoch, self.policy.lease_s)
                await self._lead()
            except Unavailable as error:
                if first and isinstance(error, StoreUnavailable):
                    raise
                log.warning("this service cannot take over yet: %s", error)
            except Exception:
                if first:
                    raise
                log.exception("this service could not take over; it tries again")
            if self._leads:
                return
            await self._act_no_more()
            await asyncio.sleep(self.policy.lease_s / 10)

    async def _lead(self) -> None:
        await self.tenants.start()
        await self.ledger.sweep()
        await self.board.load()
        self.board.on_change(self.idle.job_changed)
        await self.idle.start()
        await self.reconciler.start()
        await self.admission.start()
        await self.retention.start()
        self._leads = self.lease.is_held

    def _lease_lost(self) -> None:
        """Another platform decides: act no more, and stand by. Who is just about to lead finds out by itself."""
        self._leads = False
        if self._following is None or self._following.done():
            self._following = asyncio.ensure_future(self._stand_by())

    async def _stand_by(self) -> None:
        await self._act_no_more()
        await self._follow(first=False)

    async def _act_no_more(self) -> None:
        self._leads = False
        await self.retention.stop()
        await self.admission.stop()
        await self.reconciler.stop()
        self.board.stop()

    async def stop(self) -> None:
        """Decide and act no more; finish what is being stored."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            await asyncio.gather(self._sweeper, return_exceptions=True)
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)
        await self.strays.stop()
        await self.retention.stop()
        await self.jobs.stop()
        await self.admission.stop()
        await self.reconciler.stop()
        await self.metrics.stop()
        self.board.stop()
        await self.idle.stop()
        await self.board.drain()
        await self.lease.give_up()
        self.broker.close()

    def watch(self, user: str, name: str, since: int = 0) -> AsyncIterator[Frame]:
        """Yield all that concerns a job: what there is, `synced`, what happens, `end`. Refuses a missing job."""
        return self._watcher.watch(user, name, since)

    def _room_changed(self) -> None:
        self.idle.something_changed()
        self.admission.wake()
        self.jobs.forget_places()
        self.broker.publish(QUEUE_TOPIC, {"type": "changed"})

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_EVERY_S)
            try:
                await self.ledger.sweep()
                await self.bookings.sweep()
                await self.idle.sweep()
                await self.tenants.sample()
                await self.strays.end_all()
                await self.db.write(self._forget)
            except asyncio.CancelledError:
                raise
            except Exception:  # it is tried again soon; nothing depends on it
                log.exception("sweeping the ledger and idempotency keys failed")

    def _forget(self, tx: Tx) -> None:
        tx.idempotency.sweep(self._clock() - self.policy.idempotency_s)
        tx.decisions.sweep(self._clock() - KEPT_S)
        if self.policy.keep.audit_s is not None:
            tx.audit.sweep(self._clock() - self.policy.keep.audit_s, MOST_SWEPT)
