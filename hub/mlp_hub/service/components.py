"""All components of the control plane, in one table: how each is made, started, kept in order and stopped."""

from __future__ import annotations

from functools import partial
from typing import TypeVar

from mlp_hub.service.accounting.service import UsageService
from mlp_hub.service.admission.answers import AGAIN_S, ServerRequests
from mlp_hub.service.admission.feasibility import Feasibility
from mlp_hub.service.admission.loop import Admission
from mlp_hub.service.alerts.deliveries import AlertDeliveries
from mlp_hub.service.alerts.service import AlertService
from mlp_hub.service.alerts.service import purge as purge_alerts
from mlp_hub.service.announcements.service import AnnouncementService
from mlp_hub.service.apps.gate import AppGate
from mlp_hub.service.apps.service import AppService
from mlp_hub.service.apps.usage import KeptUsage
from mlp_hub.service.apps.worker import AppWorker
from mlp_hub.service.audit.keeper import ChainKeeper
from mlp_hub.service.audit.log import AuditLog
from mlp_hub.service.audit.shipping import AuditShipping
from mlp_hub.service.bookings.service import BookingService
from mlp_hub.service.budgets.service import BudgetService
from mlp_hub.service.changes import PlatformChanges
from mlp_hub.service.config import DAY_S
from mlp_hub.service.datasets.service import DatasetService
from mlp_hub.service.datasets.sources import DataSources
from mlp_hub.service.datasets.worker import DatasetWorker
from mlp_hub.service.disk.watch import Disk
from mlp_hub.service.environments.service import EnvironmentService
from mlp_hub.service.environments.worker import EnvironmentWorker
from mlp_hub.service.exports.service import ExportService
from mlp_hub.service.forecast.service import Forecasts
from mlp_hub.service.given import Given
from mlp_hub.service.health.problems import Problems, Source, own_problems
from mlp_hub.service.health.provider import ProviderWatch
from mlp_hub.service.jobs.external import ExternalJobIntake
from mlp_hub.service.jobs.idle_jobs import IdleJobs
from mlp_hub.service.jobs.idle_of_teams import IdleOfTeams
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
from mlp_hub.service.monitoring.parts import MonitoredParts
from mlp_hub.service.monitoring.service import Monitoring
from mlp_hub.service.monitoring.traces import TraceExport
from mlp_hub.service.nodes.drains import Drains
from mlp_hub.service.nodes.listing import Nodes
from mlp_hub.service.notices.sender import Sender
from mlp_hub.service.notices.service import NoticeService
from mlp_hub.service.over_time.service import OverTimeService
from mlp_hub.service.overview.service import PlatformOverview
from mlp_hub.service.quota.former_members_servers import FormerMembersServers
from mlp_hub.service.quota.idle import IdleQuota
from mlp_hub.service.quota.idle_policies import IdlePolicyService
from mlp_hub.service.quota.idle_servers import IdleServerStops
from mlp_hub.service.quota.ledger import PLACE_S, Ledger
from mlp_hub.service.runs.service import MOST_TEXTS_DELETED, RunService
from mlp_hub.service.runs.summaries import Summaries
from mlp_hub.service.secrets.service import SecretService
from mlp_hub.service.state.board import Board
from mlp_hub.service.state.bus import Bus
from mlp_hub.service.state.leadership import Leadership, since_boot
from mlp_hub.service.storage.ledger import StorageLedger
from mlp_hub.service.storage_accounting.files import FileAccounting
from mlp_hub.service.storage_migration.worker import StorageMigrationWorker
from mlp_hub.service.support.component import ServiceComponent, StopStage, bound, rows
from mlp_hub.service.sweeps.service import SweepService
from mlp_hub.service.sweeps.worker import SweepWorker
from mlp_hub.service.tenants.caps import MemberCaps
from mlp_hub.service.tenants.networks import Networks
from mlp_hub.service.tenants.previews.preview import Previews
from mlp_hub.service.tenants.requests.joining import Joining
from mlp_hub.service.tenants.requests.quota_requests import QuotaRequests
from mlp_hub.service.tenants.runtimes import RuntimeService
from mlp_hub.service.tenants.service import TenantService
from mlp_hub.service.tenants.service_accounts import ServiceAccounts
from mlp_hub.service.tenants.users import TOKEN_USES_S, UserService
from mlp_hub.service.tenants.visibility import VisibilityService
from mlp_hub.service.whatif.service import WhatIf

T = TypeVar("T")


class Made(ServiceComponent["Components", T]):
    """A row of this table."""


class Components(Given):
    """All components, made once. Their rows are in the order in which they start; none opens the database or the executor."""

    changes: Made[PlatformChanges] = Made(PlatformChanges)
    bus: Made[Bus] = Made(lambda _: Bus(), close=(StopStage.LAST, Bus.close))
    lease: Made[Leadership] = Made(
        lambda p: Leadership(
            p.db,
            p.clock,
            length_s=p.policy.lease_s,
            poll_s=p.policy.lease_s / 30,
            alone=p.alone,
            floor=p.executor.epoch,
            lost=p.lost,
            steady=p.clock if p.steady is None else since_boot,
        ),
        close=(StopStage.LAST, Leadership.give_up),
    )
    users: Made[UserService] = Made(
        lambda p: UserService(p.db, p.clock, changed=p.changes.default_changed),
        start=UserService.forget_languages,  # another may have changed them until now
        purge=lambda _, tx, now: (
            tx.sessions.delete_expired(now),
            tx.token_uses.delete_before(now - TOKEN_USES_S),
        ),
    )
    tenants: Made[TenantService] = Made(
        lambda p: TenantService(
            p.db,
            p.clock,
            p.drains.nodes,
            changed=p.changes.tenants_changed,
            left=p.former_members_servers.look_soon,
            review=p.idle.review_in,
            windows=p.bookings.review_in,
            board=p.board,
            job_network=p.policy.job_network,
            groups=p.groups,
            files=p.executor.workspace.tenants,
            relocate=p.storage_migration.look_at,
            moved=p.storage_migration.done,
        ),
        start=TenantService.start,
        tidy=TenantService.sample,
    )
    ledger: Made[Ledger] = Made(
        lambda p: Ledger(
            p.db,
            p.clock,
            p.drains.nodes,
            changed=p.changes.room_changed,
            asks=p.changes.check_request,
            refuses=p.disk.refuses_servers,
            refuses_new=lambda tenant: p.budgets.refusal(tenant),  # noqa: PLW0108 - which are made later
            scheduler=ServerRequests(
                p.db, p.admission, p.clock, grace_s=p.policy.grace_s, again_s=p.policy.grace_s + AGAIN_S
            ),
            place_s=p.policy.grace_s + PLACE_S,
        ),
        start=Ledger.expire_requests,
        tidy=Ledger.expire_requests,
        put_off=Ledger.put_off,
    )
    board: Made[Board] = Made(
        lambda p: Board(p.db, p.bus),
        start=Board.load,
        stand_by=(StopStage.STATE, Board.stop),
        close=(StopStage.COMMITS, Board.drain),
    )
    bookings: Made[BookingService] = Made(
        lambda p: BookingService(
            p.db, p.clock, p.drains.nodes, changed=p.changes.room_changed, most=p.policy.limits
        ),
        tidy=BookingService.review_windows,
    )
    idle: Made[IdleQuota] = Made(
        lambda p: IdleQuota(
            p.db, p.clock, p.policy.idle, changed=p.changes.room_changed, on_change=p.board.on_change
        ),
        start=IdleQuota.start,
        tidy=IdleQuota.review_idle,
        close=(StopStage.STATE, IdleQuota.stop),
    )
    drains: Made[Drains] = Made(
        lambda p: Drains(
            p.board, p.executor, p.clock, changed=p.changes.nodes_changed, settled=p.changes.cycle_over
        ),
        start=Drains.start,
        tidy=Drains.review_drains,
        stand_by=(StopStage.WORKERS, Drains.stop),
    )
    announcements: Made[AnnouncementService] = Made(
        lambda p: AnnouncementService(p.db, p.clock),
        start=AnnouncementService.start,
        purge=lambda _, tx, now: tx.announcements.delete_expired(now),
    )
    queue: Made[WorkQueue] = Made(
        lambda p: WorkQueue(p.policy.backoff_s, p.policy.backoff_max_s),
        start=WorkQueue.open,  # it works once all have started
        stand_by=(StopStage.QUEUE, WorkQueue.stop),
    )
    external_jobs: Made[ExternalJobIntake | None] = Made(
        lambda p: (
            None
            if p.executor.external_jobs is None
            else ExternalJobIntake(
                p.queue, p.board, p.submissions, p.jobs, p.executor.external_jobs, p.lease, p.admission
            )
        ),
        start=lambda intake: None if intake is None else intake.start(),
    )
    storage_migration: Made[StorageMigrationWorker] = Made(
        lambda p: StorageMigrationWorker(
            p.queue,
            p.board,
            p.executor,
            p.lease,
            p.clock,
            hold=lambda why: p.admission.hold_tenants(why, by="moves"),
            changed=p.changes.room_changed,
            idle_s=p.policy.unmount_idle_s,
        ),
        start=StorageMigrationWorker.start,
        tidy=StorageMigrationWorker.remove_unused_mounts,
    )
    notices: Made[NoticeService] = Made(
        lambda p: NoticeService(
            p.queue,
            p.board,
            p.forecasts,
            p.secrets,
            clock=p.clock,
            policy=p.policy.notices,
            first_uid=p.policy.first_uid,
        ),
        start=NoticeService.start,
        tidy=NoticeService.notice_late_starts,
        stand_by=(StopStage.LAST, NoticeService.stop),  # commits in progress store notices too
    )
    file_accounting: Made[FileAccounting] = Made(
        lambda p: FileAccounting(
            p.queue,
            p.board,
            p.executor,
            p.clock,
            p.metrics,
            changed=p.changes.storage_changed,
            wanted=p.policy.charge_files,
        ),
        start=FileAccounting.start,
        tidy=FileAccounting.tidy,
        stand_by=(StopStage.WORKERS, FileAccounting.stop),
    )
    networks: Made[Networks] = Made(lambda p: Networks(p.db, p.policy.job_network))
    reconciler: Made[Reconciler] = Made(
        lambda p: Reconciler(
            p.queue,
            p.board,
            p.executor,
            p.metrics,
            p.clock,
            p.policy,
            p.lease,
            p.networks,
            lambda job: p.datasets.ready_for(job),  # noqa: PLW0108 - which are made later
            p.steady or p.clock,
        ),
        start=Reconciler.start,
        stand_by=(StopStage.WORKERS, Reconciler.stop),
    )
    storage: Made[StorageLedger] = Made(lambda p: StorageLedger(p.clock, p.drains.nodes, p.disk.free))
    worker_context: Made[WorkerContext] = Made(
        lambda p: WorkerContext(p.queue, p.db, p.executor, p.lease, p.storage, p.changes.room_changed)
    )
    environments: Made[EnvironmentService] = Made(
        lambda p: EnvironmentService(
            p.db,
            p.executor,
            EnvironmentWorker(
                p.worker_context, clock=p.clock, first_uid=p.policy.first_uid, floor=p.policy.disk.floor
            ),
            p.networks,
            p.clock,
            allowed=None if not p.policy.runtime_review else p.policy.environment_images,
            most=p.policy.limits.environments_per_tenant,
        ),
        start=lambda environments: environments.start(),
    )
    models: Made[ModelService] = Made(
        lambda p: ModelService(
            p.db,
            p.executor,
            p.storage,
            ModelWorker(p.worker_context),
            p.clock,
            changed=p.changes.room_changed,
        ),
        start=lambda models: models.start(),
    )
    secrets: Made[SecretService] = Made(
        lambda p: SecretService(p.db, p.clock, p.policy.secrets_key, p.policy.limits.secrets_per_owner)
    )
    sources: Made[DataSources] = Made(lambda p: DataSources(p.secrets, p.policy.data_endpoints))
    datasets: Made[DatasetService] = Made(
        lambda p: DatasetService(
            p.db,
            p.storage,
            DatasetWorker(p.worker_context, clock=p.clock, sources=p.sources, first_uid=p.policy.first_uid),
            p.clock,
            sources=p.sources,
            first_uid=p.policy.first_uid,
            silent_s=p.policy.upload_silent_s,
            changed=p.changes.room_changed,
        ),
        start=lambda datasets: datasets.start(),
        tidy=DatasetService.end_silent_uploads,
        put_off=DatasetService.put_off,
    )
    app_worker: Made[AppWorker] = Made(
        lambda p: AppWorker(
            p.queue, p.board, p.submissions, p.executor, p.lease, p.clock, most=p.policy.limits
        ),
        start=AppWorker.start,
        stand_by=(StopStage.WORKERS, AppWorker.stop),
        put_off=AppWorker.put_off,
    )
    apps: Made[AppService] = Made(
        lambda p: AppService(
            p.board,
            p.submissions,
            p.admission,
            p.forecasts,
            p.app_worker,
            p.executor,
            p.clock,
            p.policy.notices.pages,
            p.policy.limits,
        ),
    )
    sweeps: Made[SweepService] = Made(
        lambda p: SweepService(
            p.board,
            p.submissions,
            SweepWorker(p.queue, p.board, p.submissions, p.metrics, p.clock),
            p.clock,
            p.policy.limits.sweeps_per_user,
        ),
        start=lambda sweeps: sweeps.start(),
        stand_by=(StopStage.WORKERS, lambda sweeps: sweeps.stop()),
    )
    tenant_places: Made[TenantPlaces] = Made(
        lambda p: TenantPlaces(p.queue, p.db, p.executor, p.lease, p.clock), start=TenantPlaces.look_soon
    )
    offboarding: Made[Offboarding] = Made(
        lambda p: Offboarding(
            p.queue,
            p.board,
            p.executor,
            p.lease,
            p.clock,
            owned_data=(p.models, p.datasets),
            running=(p.apps, p.notices, p.forecasts.past, p.sweeps, p.idle_servers),
        ),
        start=Offboarding.start,
    )
    images_used: Made[ImagesUsed] = Made(
        lambda p: ImagesUsed(
            p.queue,
            p.db,
            p.executor,
            p.lease,
            p.clock,
            since_s=p.policy.limits.kubernetes_prewarmed_days * DAY_S,
        ),
        start=ImagesUsed.begin,
    )
    forecasts: Made[Forecasts] = Made(
        lambda p: Forecasts(p.board, p.admission, p.feasibility, p.clock),
        start=Forecasts.start,
        close=(StopStage.INTAKE, Forecasts.stop),
    )
    admission: Made[Admission] = Made(
        lambda p: Admission(
            p.board,
            p.drains.nodes,
            p.clock,
            p.policy,
            p.reconciler.will_start,
            changed=p.changes.room_changed,
        ),
        start=Admission.start,
        stand_by=(StopStage.DECISIONS, Admission.stop),
        purge=lambda p, tx, now: tx.decisions.delete_before(
            now - p.policy.limits.keep_decisions_days * DAY_S
        ),
    )
    retention: Made[Retention] = Made(
        lambda p: Retention(p.board, p.clock, p.policy.keep),
        start=Retention.start,
        stand_by=(StopStage.INTAKE, Retention.stop),
    )
    summaries: Made[Summaries] = Made(
        lambda p: Summaries(p.board, p.metrics.points),
        start=Summaries.start,
        stand_by=(StopStage.INTAKE, Summaries.stop),
    )
    disk: Made[Disk] = Made(
        lambda p: Disk(
            p.db,
            p.executor,
            p.clock,
            p.policy.disk,
            jobs=lambda: list(p.board.holding.values()),
            hold=p.admission.hold,
            stop=p.reconciler.end,
            measured=p.file_accounting.note,
        ),
        start=Disk.start,
        stand_by=(StopStage.INTAKE, Disk.stop),
        problems=Disk.problems,
    )
    metrics: Made[MetricsService] = Made(
        lambda p: MetricsService(
            p.board, p.clock, p.policy.metric_points_max, p.policy.metric_bytes_max, p.policy.broker
        ),
        start=MetricsService.start_reading,
        stand_by=(StopStage.INTAKE, MetricsService.stop_reading),
        close=(StopStage.STATE, MetricsService.stop),
        problems=MetricsService.problems,
    )

    monitoring: Made[Monitoring] = Made(
        lambda p: Monitoring(
            MonitoredParts(
                p.db,
                p.executor,
                p.lease,
                p.board,
                p.admission,
                p.queue,
                p.metrics.points,
                p.notices,
                p.problems,
                p.drains.nodes,
                p.leads_now,
                p.metrics.lag,
                p.audit_shipping.delays,
                lambda: p.idle_jobs.gpus_by_node(),  # noqa: PLW0108 - which are made later
            ),
            p.clock,
            p.policy.monitoring,
        ),
        start=Monitoring.lead,
        close=(StopStage.INTAKE, Monitoring.stop),
    )
    over_time: Made[OverTimeService] = Made(
        lambda p: OverTimeService(p.monitoring, p.clock),
        start=OverTimeService.start,
        stand_by=(StopStage.INTAKE, OverTimeService.stop),
    )

    alert_deliveries: Made[AlertDeliveries] = Made(
        lambda p: AlertDeliveries(
            p.policy.alertmanager,
            lambda: Sender(p.policy.notices, p.policy.first_uid, only="alertmanager"),
            clock=p.clock,
            steady=p.steady or p.clock,
        ),
        start=AlertDeliveries.start,
        stand_by=(StopStage.INTAKE, AlertDeliveries.stop),
    )
    alerts: Made[AlertService] = Made(
        lambda p: AlertService(
            p.board,
            p.monitoring,
            p.notices.outbox,
            clock=p.clock,
            steady=p.steady or p.clock,
            deliveries=p.alert_deliveries.shown,
        ),
        start=AlertService.start,
        stand_by=(StopStage.INTAKE, AlertService.stop),
        purge=lambda _, tx, now: purge_alerts(tx, now),
    )

    traces: Made[TraceExport] = Made(
        lambda p: TraceExport(
            p.board,
            Sender(p.policy.notices, p.policy.first_uid, only="traces"),
            p.clock,
            p.policy.traces_endpoint,
            p.monitoring.events.traces,
            ca=p.policy.traces_ca,
        ),
        start=TraceExport.start,
        stand_by=(StopStage.INTAKE, TraceExport.stop),
    )
    audit_shipping: Made[AuditShipping] = Made(
        lambda p: AuditShipping(p.db, p.clock, p.policy.audit),
        start=AuditShipping.start,
        stand_by=(StopStage.INTAKE, AuditShipping.stop),
        problems=AuditShipping.problems,
    )

    exports: Made[ExportService] = Made(
        lambda p: ExportService(
            p.board,
            p.metrics.points,
            p.policy.exports,
            lambda: p.monitoring,  # which has the problems, of which some are of exporters
            lambda kind: Sender(p.policy.notices, p.policy.first_uid, only=kind),
        ),
        start=ExportService.start,
        stand_by=(StopStage.INTAKE, ExportService.stop),
        problems=ExportService.problems,
    )

    # --- components that only answer: nothing of them runs by itself

    feasibility: Made[Feasibility] = Made(lambda p: Feasibility(p.admission.capacity, p.drains.nodes))
    runtimes: Made[RuntimeService] = Made(
        lambda p: RuntimeService(
            p.board,
            p.clock,
            review=p.policy.runtime_review,
            images=p.executor.images,
            most=p.policy.limits.runtimes_per_tenant,
        )
    )
    submissions: Made[Submissions] = Made(
        lambda p: Submissions(
            p.board,
            p.admission,
            p.feasibility,
            p.forecasts,
            p.executor,
            p.clock,
            p.policy,
            p.networks,
            p.disk.check_home,
            p.file_accounting.full,
            p.runtimes.of_tenant,
            p.accounting.cost_of_shape,
            p.budgets.check,
        ),
        close=(StopStage.INTAKE, Submissions.stop),
        purge=lambda p, tx, now: tx.idempotency.delete_before(now - p.policy.idempotency_s),
    )
    jobs: Made[JobService] = Made(
        lambda p: JobService(
            p.board,
            p.submissions,
            p.forecasts,
            p.metrics,
            p.executor,
            p.clock,
            p.file_accounting.full,
            p.accounting.cost_of_job,
            p.policy.scheduling,
        )
    )
    runs: Made[RunService] = Made(
        lambda p: RunService(p.board, p.jobs, p.clock),
        purge=lambda _, tx, _now: tx.runs.delete_unused_texts(MOST_TEXTS_DELETED),
    )
    cluster_queue: Made[ClusterQueue] = Made(lambda p: ClusterQueue(p.board, p.admission, p.forecasts))
    former_members_servers: Made[FormerMembersServers] = Made(
        lambda p: FormerMembersServers(p.db, p.clock),
        tidy=FormerMembersServers.end_all,
        close=(StopStage.INTAKE, FormerMembersServers.stop),
    )
    quota_requests: Made[QuotaRequests] = Made(
        lambda p: QuotaRequests(p.db, p.tenants, p.clock, p.notices.outbox)
    )
    idle_policies: Made[IdlePolicyService] = Made(lambda p: IdlePolicyService(p.db, p.clock))
    idle_servers: Made[IdleServerStops] = Made(
        lambda p: IdleServerStops(p.db, p.clock, p.notices.outbox),
        start=IdleServerStops.start,
        tidy=IdleServerStops.look,
    )
    idle_jobs: Made[IdleJobs] = Made(
        lambda p: IdleJobs(p.board, p.executor, p.clock, p.notices.outbox, p.submissions.to_wire),
        start=IdleJobs.start,
        tidy=IdleJobs.look,
    )
    idle_of_teams: Made[IdleOfTeams] = Made(
        lambda p: IdleOfTeams(p.db, p.idle_servers, p.idle_jobs, p.clock, p.notices.outbox),
        start=IdleOfTeams.start,
        tidy=IdleOfTeams.tell,
    )
    member_caps: Made[MemberCaps] = Made(lambda p: MemberCaps(p.db, p.tenants, p.clock))
    joining: Made[Joining] = Made(lambda p: Joining(p.db, p.tenants, p.clock, p.notices.outbox, p.provider))
    previews: Made[Previews] = Made(
        lambda p: Previews(
            p.db,
            p.admission.jobs_snapshot,
            p.clock,
            p.drains.nodes,
            p.policy.idle,
            isolation=p.changes.preview_isolation,
        )
    )
    visibility: Made[VisibilityService] = Made(lambda p: VisibilityService(p.db))
    service_accounts: Made[ServiceAccounts] = Made(lambda p: ServiceAccounts(p.db, p.clock))
    app_usage: Made[KeptUsage] = Made(lambda p: KeptUsage(p.db, p.app_worker.busy))
    app_gate: Made[AppGate] = Made(
        lambda p: AppGate(p.db, p.clock, p.apps.endpoints, p.apps.wake, p.policy.limits),
        purge=lambda _, tx, now: tx.app_gate.delete_expired(now),
    )
    nodes: Made[Nodes] = Made(lambda p: Nodes(p.db, p.drains.nodes, p.clock))
    audit_chain: Made[ChainKeeper] = Made(
        lambda p: ChainKeeper(
            p.db,
            p.clock,
            p.policy.audit,
            p.policy.keep.audit_s,
            Sender(p.policy.notices, p.policy.first_uid),
        ),
        tidy=ChainKeeper.keep,
        close=(StopStage.LAST, ChainKeeper.stop),
        problems=ChainKeeper.problems,
    )
    audit: Made[AuditLog] = Made(lambda p: AuditLog(p.db, p.audit_chain))
    accounting: Made[UsageService] = Made(
        lambda p: UsageService(p.db, p.drains.nodes, p.clock, measures=p.executor.measures),
        tidy=lambda accounting: accounting.roll_up.roll_up(),
        put_off=lambda accounting, by: accounting.roll_up.put_off(by),
    )
    budgets: Made[BudgetService] = Made(
        lambda p: BudgetService(
            p.db,
            p.accounting,
            p.clock,
            p.notices.outbox,
            lambda why: p.admission.hold_tenants(why, by="budgets"),
        ),
        start=BudgetService.start,
        tidy=BudgetService.review,
    )
    whatif: Made[WhatIf] = Made(
        lambda p: WhatIf(p.board, p.admission, p.clock, first_uid=p.policy.first_uid, most=p.policy.limits)
    )
    watcher: Made[Watcher] = Made(
        lambda p: Watcher(p.board, p.admission, p.forecasts, p.jobs, p.metrics, LogFeeds(p.executor))
    )
    login_provider: Made[ProviderWatch] = Made(
        lambda p: ProviderWatch(p.provider), problems=ProviderWatch.problems
    )
    problems: Made[Problems] = Made(
        lambda p: Problems(partial(own_problems, p.db, p.executor), *p.sources_of_problems())
    )
    overview: Made[PlatformOverview] = Made(
        lambda p: PlatformOverview(
            p.db, p.board, p.admission, p.tenants, p.problems, p.drains.nodes, p.clock, p.forecasts.starts
        )
    )

    def sources_of_problems(self) -> list[Source]:
        """Return what lists the problems of each component that has any."""
        return [bound(row.problems, getattr(self, row.name)) for row in rows(type(self)) if row.problems]
