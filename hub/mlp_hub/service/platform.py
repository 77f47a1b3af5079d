"""The composed root: all services of the control plane on one database and one executor."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable

from mlp_hub.domain.errors import Unavailable
from mlp_hub.domain.jobs.job import Job
from mlp_hub.domain.tenants.tenant import Tenant
from mlp_hub.domain.tenants.tenant_context import TenantContext
from mlp_hub.executors.base import Executor
from mlp_hub.service.admission.answers import ServerRequests
from mlp_hub.service.admission.feasibility import Feasibility
from mlp_hub.service.admission.loop import Admission
from mlp_hub.service.announcements.service import AnnouncementService
from mlp_hub.service.apps.gate import AppGate
from mlp_hub.service.apps.service import AppService
from mlp_hub.service.apps.usage import KeptUsage
from mlp_hub.service.apps.worker import AppWorker
from mlp_hub.service.audit import AuditLog
from mlp_hub.service.bookings.service import BookingService
from mlp_hub.service.config import RunPolicy
from mlp_hub.service.datasets.service import DatasetService
from mlp_hub.service.datasets.sources import DataSources
from mlp_hub.service.datasets.worker import DatasetWorker
from mlp_hub.service.disk.watch import Disk
from mlp_hub.service.environments.service import EnvironmentService
from mlp_hub.service.environments.worker import EnvironmentWorker
from mlp_hub.service.forecast.service import Forecasts
from mlp_hub.service.health.problems import Problem, Problems
from mlp_hub.service.health.provider import ProviderWatch
from mlp_hub.service.jobs.external import ExternalJobIntake
from mlp_hub.service.jobs.log_feed import LogFeeds
from mlp_hub.service.jobs.queue import ClusterQueue
from mlp_hub.service.jobs.service import JobService
from mlp_hub.service.jobs.stream import Watcher
from mlp_hub.service.jobs.submissions import Submissions
from mlp_hub.service.lifecycle.images_used import ImagesUsed
from mlp_hub.service.lifecycle.offboarding import Offboarding
from mlp_hub.service.lifecycle.reconciler import Reconciler
from mlp_hub.service.lifecycle.retention import Retention
from mlp_hub.service.lifecycle.stored import WorkerContext
from mlp_hub.service.lifecycle.tenant_places import TenantPlaces
from mlp_hub.service.lifecycle.workqueue import WorkQueue
from mlp_hub.service.metrics.service import MetricsService
from mlp_hub.service.models.service import ModelService
from mlp_hub.service.models.worker import ModelWorker
from mlp_hub.service.nodes.drains import Drains
from mlp_hub.service.nodes.listing import Nodes
from mlp_hub.service.notices.service import NoticeService
from mlp_hub.service.overview.service import PlatformOverview
from mlp_hub.service.quota.former_members_servers import FormerMembersServers
from mlp_hub.service.quota.idle import IdleQuota
from mlp_hub.service.quota.ledger import Ledger
from mlp_hub.service.reasons.decisions import KEPT_S, DecisionLog
from mlp_hub.service.runs.service import RunService
from mlp_hub.service.runs.summaries import Summaries
from mlp_hub.service.secrets.service import SecretService
from mlp_hub.service.state.board import Board
from mlp_hub.service.state.bus import QUEUE_TOPIC, Bus
from mlp_hub.service.state.frames import Frame
from mlp_hub.service.state.leadership import Leadership, LeaseLost, since_boot
from mlp_hub.service.storage.ledger import StorageLedger
from mlp_hub.service.storage_accounting.files import FileAccounting
from mlp_hub.service.storage_migration.worker import StorageMigrationWorker
from mlp_hub.service.support.wall_clock import WallClockWatch
from mlp_hub.service.sweeps.service import SweepService
from mlp_hub.service.sweeps.worker import SweepWorker
from mlp_hub.service.tenants.caps import MemberCaps
from mlp_hub.service.tenants.groups import GroupPolicy
from mlp_hub.service.tenants.joining import Joining
from mlp_hub.service.tenants.networks import Networks
from mlp_hub.service.tenants.preview import Previews
from mlp_hub.service.tenants.quota_requests import QuotaRequests
from mlp_hub.service.tenants.runtimes import RuntimeService
from mlp_hub.service.tenants.service import TenantService
from mlp_hub.service.tenants.service_accounts import ServiceAccounts
from mlp_hub.service.tenants.users import UserService
from mlp_hub.service.tenants.visibility import VisibilityService
from mlp_hub.service.whatif.service import WhatIf
from mlp_hub.store.database import Database
from mlp_hub.store.errors import StoreUnavailable
from mlp_hub.store.tx import Tx
from mlp_language.message import Message, msg

log = logging.getLogger(__name__)
HOUSEKEEPING_EVERY_S = 30.0
"""Tuning: seconds between two sweeps of old data: sooner with less, cheaper with more."""
MOST_DELETED = 1000
"""Tuning: entries of the audit log that are forgotten in one sweep: size of a lot, for how long others wait behind it."""
MOST_TEXTS_DELETED = 100
"""Tuning: texts of runs that are forgotten in one sweep: size of a lot, for how long others wait behind it."""
TOKEN_USES_S = 400 * 24 * 3600
"""Tuning: seconds that it is kept from where a token was used: longer than tokens usually hold, for how many rows there are."""
PLACE_S = 120.0
"""Tuning: seconds that a pending request keeps its place without a renewal.

The grace of work that is stopped for it is added. It trades a place held for nobody for a longer
pause between renewals.
"""
AGAIN_S = 90.0
"""Tuning: seconds after which who waits is told to ask again, where nobody knows when there is room: fewer requests, for how
late room is noticed."""


class Platform:
    """All services, made once and started once.

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

    def __init__(  # noqa: PLR0915 - all there is
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
        self.db = db
        self.executor = executor
        self.policy = policy
        self._clock = clock
        self.bus = Bus()
        self.lease = Leadership(
            db,
            clock,
            length_s=policy.lease_s,
            poll_s=policy.lease_s / 30,
            alone=alone,
            floor=executor.epoch,
            lost=self._lease_lost,
            steady=clock if steady is None else since_boot,
        )
        self.board = Board(db, self.bus)
        self.metrics = MetricsService(
            self.board, clock, policy.metric_points_max, policy.metric_bytes_max, policy.broker
        )
        self._networks = Networks(db, policy.job_network)
        self.queue = WorkQueue(policy.backoff_s, policy.backoff_max_s)
        self.reconciler = Reconciler(
            self.queue,
            self.board,
            executor,
            self.metrics,
            clock,
            policy,
            self.lease,
            self._networks,
            self._data_ready,
            steady or clock,
        )
        self._places = TenantPlaces(self.queue, db, executor, self.lease, clock)
        self._images = ImagesUsed(self.queue, db, executor, self.lease, clock)
        self.drains = Drains(
            self.board, executor, clock, changed=self._nodes_changed, settled=self._cycle_over
        )
        self.admission = Admission(
            self.board,
            self.drains.nodes,
            clock,
            policy,
            self.reconciler.will_start,
            changed=self._room_changed,
        )
        self.feasibility = Feasibility(self.admission.capacity, self.drains.nodes)
        self.forecasts = Forecasts(self.board, self.admission, self.feasibility, clock)
        self._file_accounting = FileAccounting(
            self.queue, self.board, executor, clock, changed=self._room_changed, wanted=policy.charge_files
        )
        self.metrics.points.listeners.append(self._file_accounting.points_changed)
        self.metrics.deleted.append(self._file_accounting.points_changed)
        self.disk = Disk(
            db,
            executor,
            clock,
            policy.disk,
            jobs=lambda: list(self.board.holding.values()),
            hold=self.admission.hold,
            stop=self.reconciler.end,
            measured=self._file_accounting.note,
        )
        self.runtimes = RuntimeService(
            self.board, clock, review=policy.runtime_review, images=executor.images
        )
        self.submissions = Submissions(
            self.board,
            self.admission,
            self.feasibility,
            self.forecasts,
            executor,
            clock,
            policy,
            self._networks,
            self.disk.check_home,
            self._file_accounting.full,
            self.runtimes.of_tenant,
        )
        self.jobs = JobService(
            self.board,
            self.submissions,
            self.forecasts,
            self.metrics,
            executor,
            clock,
            self._file_accounting.full,
            policy.scheduling,
        )
        self.runs = RunService(self.board, self.jobs, clock)
        self._summaries = Summaries(self.board, self.metrics.points)
        self.cluster_queue = ClusterQueue(self.board, self.admission, self.forecasts)
        self._external_jobs: ExternalJobIntake | None = None
        if executor.external_jobs is not None:
            self._external_jobs = ExternalJobIntake(
                self.queue, self.board, self.submissions, self.jobs, executor.external_jobs, self.lease
            )
        self.retention = Retention(self.board, clock, policy.keep)
        self.idle = IdleQuota(db, clock, policy.idle, changed=self._room_changed)
        self.bookings = BookingService(db, clock, self.drains.nodes, changed=self._room_changed)
        self.former_members_servers = FormerMembersServers(db, clock)
        self.storage_migration = StorageMigrationWorker(
            self.queue,
            self.board,
            executor,
            self.lease,
            clock,
            hold=self.admission.hold_tenants,
            changed=self._room_changed,
            idle_s=policy.unmount_idle_s,
        )
        self.tenants = TenantService(
            db,
            clock,
            self.drains.nodes,
            changed=self._tenants_changed,
            left=self.former_members_servers.look_soon,
            review=self.idle.review_in,
            windows=self.bookings.review_in,
            board=self.board,
            job_network=policy.job_network,
            groups=groups,
            files=executor.workspace.tenants,
            relocate=self.storage_migration.look_at,
            moved=self.storage_migration.done,
        )
        self.quota_requests = QuotaRequests(db, self.tenants, clock)
        self.member_caps = MemberCaps(db, self.tenants, clock)
        self.joining = Joining(db, self.tenants, clock, "" if groups is None else groups.title)
        self.previews = Previews(
            db,
            self.admission.jobs_snapshot,
            clock,
            self.drains.nodes,
            policy.idle,
            isolation=self._preview_isolation,
        )
        self.visibility = VisibilityService(db)
        self.users = UserService(db, clock, changed=self._default_changed)
        self.service_accounts = ServiceAccounts(db, clock)
        self.ledger = Ledger(
            db,
            clock,
            self.drains.nodes,
            changed=self._room_changed,
            asks=self._asks,
            refuses=self.disk.refuses_servers,
            scheduler=ServerRequests(
                db, self.admission, clock, grace_s=policy.grace_s, again_s=policy.grace_s + AGAIN_S
            ),
            place_s=policy.grace_s + PLACE_S,
        )
        self.storage = StorageLedger(clock, self.drains.nodes, self.disk.free)
        stored = WorkerContext(self.queue, db, executor, self.lease, self.storage, self._room_changed)
        self.models = ModelService(
            db,
            executor,
            self.storage,
            ModelWorker(stored),
            clock,
            changed=self._room_changed,
        )
        self.environments = EnvironmentService(
            db,
            executor,
            EnvironmentWorker(stored, clock=clock, first_uid=policy.first_uid, floor=policy.disk.floor),
            self._networks,
            clock,
            allowed=None if not policy.runtime_review else policy.environment_images,
        )
        self.secrets = SecretService(db, clock, policy.secrets_key)
        self.notices = NoticeService(
            self.queue,
            self.board,
            self.forecasts,
            self.secrets,
            clock=clock,
            policy=policy.notices,
            first_uid=policy.first_uid,
        )
        self.quota_requests.notices = self.joining.notices = self.notices.outbox
        sources = DataSources(self.secrets, policy.data_endpoints)
        self.datasets = DatasetService(
            db,
            self.storage,
            DatasetWorker(stored, clock=clock, sources=sources, first_uid=policy.first_uid),
            clock,
            sources=sources,
            first_uid=policy.first_uid,
            silent_s=policy.upload_silent_s,
            changed=self._room_changed,
        )
        self.offboarding = Offboarding(
            self.queue, self.board, executor, self.lease, clock, owned_data=(self.models, self.datasets)
        )
        self._app_worker = AppWorker(self.queue, self.board, self.submissions, executor, self.lease, clock)
        self.apps = AppService(
            self.board,
            self.submissions,
            self.admission,
            self.forecasts,
            self._app_worker,
            executor,
            clock,
            policy.notices.pages,
        )
        self.offboarding.running += [self.apps, self.notices, self.forecasts.past]
        self.app_usage = KeptUsage(db, self._app_worker.busy)
        self.sweeps = SweepService(
            self.board,
            self.submissions,
            SweepWorker(self.queue, self.board, self.submissions, self.metrics, clock),
            clock,
        )
        self.offboarding.running.append(self.sweeps)
        self.app_gate = AppGate(db, clock, self.apps.endpoints, self.apps.wake)
        self.nodes = Nodes(db, self.drains.nodes, clock)
        self.audit = AuditLog(db)
        self.whatif = WhatIf(self.board, self.admission, clock, first_uid=policy.first_uid)
        self._watcher = Watcher(
            self.board, self.admission, self.forecasts, self.jobs, self.metrics, LogFeeds(executor)
        )
        self.login_provider = ProviderWatch("" if groups is None else groups.title)
        self.problems = Problems(
            self._own_problems, self.disk.problems, self.metrics.problems, self.login_provider.problems
        )
        self.overview = PlatformOverview(
            db,
            self.board,
            self.admission,
            self.tenants,
            self.problems,
            self.drains.nodes,
            clock,
            self.forecasts.starts,
        )
        self.announcements = AnnouncementService(db, clock)
        self._housekeeper: asyncio.Task[None] | None = None
        self._clock_watch = WallClockWatch(clock, self._clock_moved, steady or clock)
        self._leads = False  # all is taken up, and the lease was not lost since
        self.reads_because: StoreUnavailable | None = None
        """Why this platform, which does not lead, answers what only reads: nothing can be written, as on a full disk."""
        self.on_read: list[Callable[[], Awaitable[None]]] = []
        self._following: asyncio.Task[None] | None = None
        self.on_lead: list[Callable[[], Awaitable[None]]] = []
        self.on_lost: list[Callable[[], None]] = []
        executor.on_nodes(self._nodes_changed)

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
        self._following = asyncio.ensure_future(self._follow(first=True))
        await self._following
        self._housekeeper = asyncio.ensure_future(self._housekeep())
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
        self._forget_tenants()  # another may have changed tenants until now, and languages
        self.users.forget_languages()
        await self.tenants.start()
        await self.ledger.expire_requests()
        await self.board.load()
        self.board.on_change(self.idle.job_changed)
        await self.drains.start()
        await self.announcements.start()
        await self.idle.start()
        self.queue.start()
        if self._external_jobs is not None:
            await self._external_jobs.start()
        await self.storage_migration.start()
        await self.notices.start()
        await self._file_accounting.start()
        await self.reconciler.start()
        await self.environments.start()
        await self.models.start()
        await self.datasets.start()
        await self.apps.start()
        await self.sweeps.start()
        self._places.look_soon()
        await self.offboarding.start()
        self._images.begin()
        await self.forecasts.start()
        await self.admission.start()
        await self.retention.start()
        self._summaries.start()
        await self.disk.start()
        self.metrics.start_reading()
        await self.lease.confirm()  # whoever took it meanwhile is not to be hidden by this one
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
        await self.metrics.stop_reading()
        await self.disk.stop()
        await self.retention.stop()
        await self._summaries.stop()
        await self.admission.stop()
        await self.queue.stop()
        await self.notices.stop()
        await self.drains.stop()
        self.apps.stop()
        self.sweeps.stop()
        await self.reconciler.stop()
        self.board.stop()

    async def stop(self) -> None:
        """Decide and act no more; finish what is being stored."""
        await self._clock_watch.stop()
        if self._housekeeper is not None:
            self._housekeeper.cancel()
            await asyncio.gather(self._housekeeper, return_exceptions=True)
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)
        await self.metrics.stop_reading()
        await self.disk.stop()
        await self.former_members_servers.stop()
        await self.retention.stop()
        await self._summaries.stop()
        await self.drains.stop()
        await self.submissions.stop()
        await self.forecasts.stop()
        await self.admission.stop()
        await self.queue.stop()
        self.apps.stop()
        self.sweeps.stop()
        await self.reconciler.stop()
        await self.metrics.stop()
        self.board.stop()
        await self.idle.stop()
        await self.board.drain()
        await self.notices.stop()
        await self.lease.give_up()
        self.bus.close()

    def watch(self, context: TenantContext, user: str, name: str, since: int = 0) -> AsyncIterator[Frame]:
        """Yield all data of a job: the present state, `synced`, events, `end`. Refuses a missing job."""
        return self._watcher.watch(context, user, name, since)

    def follow_log(
        self, context: TenantContext, user: str, name: str, rank: int, *, since: int, tail: int | None
    ) -> AsyncIterator[Frame]:
        """Yield a rank's log as it is written, until the job has ended and all was given; refuses a missing job or rank."""
        return self._watcher.follow_log(context, user, name, rank, since=since, tail=tail)

    async def _own_problems(self) -> list[Problem]:
        found = []
        if self.db.trouble is not None:
            message = msg(
                "the database accepts no writes; nothing new is accepted until it does, jobs continue"
            )
            found.append(Problem("database", "DatabaseUnavailable", message))
        if (trouble := self.executor.trouble()) is not None:
            found.append(Problem("executor", "ExecutorTrouble", trouble, fails=False))
        return found

    async def _preview_isolation(self, before: Tenant, after: Tenant) -> Message | None:
        await self.tenants.check_isolation(after)
        return await self.storage_migration.preview(before, after)

    async def _asks(self, tenant: str) -> None:
        await self.storage_migration.refuses(tenant)
        await self.idle.asks(tenant)

    def _room_changed(self) -> None:
        self.idle.something_changed()
        self.admission.wake()
        self._forget_tenants()
        self.bus.publish(QUEUE_TOPIC, {"type": "changed"})

    def _tenants_changed(self) -> None:
        self._room_changed()
        self._places.look_soon()
        self._file_accounting.places_changed()

    def _nodes_changed(self) -> None:
        self.admission.nodes_changed()
        self.bus.publish(QUEUE_TOPIC, {"type": "changed"})

    async def _cycle_over(self) -> None:
        """Return once every decision in progress is stored."""
        await self.admission.cycle()

    def _forget_tenants(self) -> None:
        self.feasibility.forget()
        self._forget_places()
        self._networks.forget()

    def _default_changed(self) -> None:
        self._forget_places()
        self._file_accounting.places_changed()

    def _forget_places(self) -> None:
        self.submissions.forget_places()
        self.visibility.forget()

    async def _data_ready(self, job: Job) -> None:
        await self.datasets.ready_for(job)  # which is made after who asks

    async def _clock_moved(self, by: float) -> None:
        """Keep the length of all timed states, though the wall clock was set by `by` seconds."""
        if not self._leads:
            return
        await self.db.write(lambda tx: tx.ledger.put_off(by))
        self.datasets.put_off(by)
        self._app_worker.put_off(by)

    async def _housekeep(self) -> None:
        while True:
            await asyncio.sleep(HOUSEKEEPING_EVERY_S)
            if not self._leads:
                continue
            try:
                await self.ledger.expire_requests()
                await self.bookings.review_windows()
                await self.idle.review_idle()
                await self.datasets.end_silent_uploads()
                await self.storage_migration.remove_unused_mounts()
                await self.notices.notice_late_starts()
                await self._file_accounting.review_homes()
                await self._file_accounting.full.warn()
                await self.tenants.sample()
                await self.former_members_servers.end_all()
                await self.drains.review_drains()
                await self.db.write(self._forget)
            except asyncio.CancelledError:
                raise
            except LeaseLost:
                continue
            except Exception:  # it is tried again soon; nothing depends on it
                log.exception("sweeping the ledger and idempotency keys failed")

    def _forget(self, tx: Tx) -> None:
        tx.idempotency.delete_before(self._clock() - self.policy.idempotency_s)
        tx.decisions.delete_before(self._clock() - KEPT_S)
        tx.sessions.delete_expired(self._clock())
        tx.app_gate.delete_expired(self._clock())
        tx.announcements.delete_expired(self._clock())
        tx.token_uses.delete_before(self._clock() - TOKEN_USES_S)
        tx.runs.delete_unused_texts(MOST_TEXTS_DELETED)
        if self.policy.keep.audit_s is not None:
            tx.audit.delete_before(self._clock() - self.policy.keep.audit_s, MOST_DELETED)
