"""An open transaction with its repositories."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cached_property

from sqlalchemy import Connection

from mlp_hub.domain.workload.idle_policy import IdleKind
from mlp_hub.store.repos.audit import Audit, Decisions
from mlp_hub.store.repos.audit_chain import AuditChain
from mlp_hub.store.repos.hub import Idempotency, Leases, SettingsRepo
from mlp_hub.store.repos.jobs.ended_jobs import EndedJobs
from mlp_hub.store.repos.jobs.jobs import Jobs
from mlp_hub.store.repos.jobs.metrics import Metrics
from mlp_hub.store.repos.jobs.point_exports import PointExports
from mlp_hub.store.repos.jobs.runs import Runs
from mlp_hub.store.repos.jobs.sweeps import Sweeps
from mlp_hub.store.repos.jobs.timelines import Events, Tokens
from mlp_hub.store.repos.owned.app_gate import AppGateRepo, AppUses
from mlp_hub.store.repos.owned.apps import Apps
from mlp_hub.store.repos.owned.datasets import Datasets
from mlp_hub.store.repos.owned.models import Models
from mlp_hub.store.repos.owned.stored import StoredItems
from mlp_hub.store.repos.tenants.alerts import Alerts
from mlp_hub.store.repos.tenants.credentials import BrowserSessions, TokenUsesRepo
from mlp_hub.store.repos.tenants.notices import Announcements, Notices
from mlp_hub.store.repos.tenants.relocations import Relocations
from mlp_hub.store.repos.tenants.requests import TeamRequests
from mlp_hub.store.repos.tenants.runtimes import Environments, Runtimes
from mlp_hub.store.repos.tenants.secrets import Secrets
from mlp_hub.store.repos.tenants.service_accounts import ServiceAccountsRepo
from mlp_hub.store.repos.tenants.tenants import Members, Tenants, Users
from mlp_hub.store.repos.workload.accounting import Accounting
from mlp_hub.store.repos.workload.budgets import Budgets
from mlp_hub.store.repos.workload.capacity import Bookings, DrainedNodes
from mlp_hub.store.repos.workload.caps import Caps
from mlp_hub.store.repos.workload.idle_jobs import IdleTolds
from mlp_hub.store.repos.workload.idle_policies import IDLE_POLICIES, IdleWorkPolicies
from mlp_hub.store.repos.workload.idle_servers import IdleCountdowns
from mlp_hub.store.repos.workload.ledger import Requests
from mlp_hub.store.repos.workload.over_time import OverTimeSums
from mlp_hub.store.repos.workload.usage import Usages


class Tx:
    """Transaction for a function that was given to `Database.write` or `Database.read`.

    It is valid inside that function only. All its changes are kept together or not at all. No caller
    may act on them before `write` has returned, which is when they are durable. The function runs in
    another thread: it must not touch the event loop. It runs once: a failed write is reported, not
    repeated.
    """

    def __init__(self, connection: Connection, clock: Callable[[], float] = time.time) -> None:
        self.connection = connection
        self._clock = clock

    @cached_property
    def jobs(self) -> Jobs:
        """The jobs."""
        return Jobs(self.connection)

    @cached_property
    def ended(self) -> EndedJobs:
        """How much is stored of the jobs that ended, and since when they have."""
        return EndedJobs(self.connection)

    @cached_property
    def runs(self) -> Runs:
        """Data and results of runs, and people's notes on them."""
        return Runs(self.connection)

    @cached_property
    def events(self) -> Events:
        """The timelines of jobs."""
        return Events(self.connection)

    @cached_property
    def decisions(self) -> Decisions:
        """Why the scheduler did what it did with jobs."""
        return Decisions(self.connection)

    @cached_property
    def metrics(self) -> Metrics:
        """The points that jobs reported."""
        return Metrics(self.connection)

    @cached_property
    def point_exports(self) -> PointExports:
        """How far points were handed on to programs outside of the hub."""
        return PointExports(self.connection)

    @cached_property
    def tokens(self) -> Tokens:
        """The jobs' tokens."""
        return Tokens(self.connection)

    @cached_property
    def ledger(self) -> Requests:
        """The resource requests; `quota.ledger` has the rules."""
        return Requests(self.connection, self._clock)

    @cached_property
    def accounting(self) -> Accounting:
        """Exact sums of the amounts that were held and used."""
        return Accounting(self.connection)

    @cached_property
    def budgets(self) -> Budgets:
        """The budgets of tenants."""
        return Budgets(self.connection)

    @cached_property
    def stored(self) -> StoredItems:
        """Stored objects of people; `storage.ledger` has the rules."""
        return StoredItems(self.connection, self.ledger)

    @cached_property
    def datasets(self) -> Datasets:
        """The datasets."""
        return Datasets(self.connection)

    @cached_property
    def secrets(self) -> Secrets:
        """Secrets of tenants and users, sealed."""
        return Secrets(self.connection)

    @cached_property
    def tenants(self) -> Tenants:
        """The owners of quota."""
        return Tenants(self.connection)

    @cached_property
    def bookings(self) -> Bookings:
        """The windows that tenants booked."""
        return Bookings(self.connection)

    @cached_property
    def app_uses(self) -> AppUses:
        """Requests to apps."""
        return AppUses(self.connection)

    @cached_property
    def app_gate(self) -> AppGateRepo:
        """Keys of apps, and browsers that opened one."""
        return AppGateRepo(self.connection)

    @cached_property
    def environments(self) -> Environments:
        """Environments of tenants; `stored` has the use of quota by their files."""
        return Environments(self.connection)

    @cached_property
    def models(self) -> Models:
        """Versions of models; `stored` has the use of quota by each."""
        return Models(self.connection)

    @cached_property
    def apps(self) -> Apps:
        """The apps; their replicas are among the jobs."""
        return Apps(self.connection)

    @cached_property
    def sweeps(self) -> Sweeps:
        """The sweeps with their trials, whose jobs are among the jobs."""
        return Sweeps(self.connection)

    @cached_property
    def notices(self) -> Notices:
        """Notices to people about their jobs, and their channels."""
        return Notices(self.connection)

    @cached_property
    def announcements(self) -> Announcements:
        """Messages of administrators to everybody, or to their tenant."""
        return Announcements(self.connection)

    @cached_property
    def alerts(self) -> Alerts:
        """Alerts of the service's own evaluation, and silences."""
        return Alerts(self.connection)

    @cached_property
    def drains(self) -> DrainedNodes:
        """The nodes that were taken out of service."""
        return DrainedNodes(self.connection)

    def idle_policies(self, kind: IdleKind) -> IdleWorkPolicies:
        """Return the policies of tenants for work of a kind that is not used."""
        return IDLE_POLICIES[kind](self.connection)

    @cached_property
    def idle_countdowns(self) -> IdleCountdowns:
        """Countdowns of idle notebook servers."""
        return IdleCountdowns(self.connection)

    @cached_property
    def idle_told(self) -> IdleTolds:
        """Times of the last notices to admins of tenants about idle work."""
        return IdleTolds(self.connection)

    @cached_property
    def caps(self) -> Caps:
        """How much a member of a tenant may hold."""
        return Caps(self.connection)

    @cached_property
    def asking(self) -> TeamRequests:
        """Requests for decisions: more quota, places in tenants."""
        return TeamRequests(self.connection)

    @cached_property
    def runtimes(self) -> Runtimes:
        """The runtimes that tenants registered."""
        return Runtimes(self.connection)

    @cached_property
    def relocations(self) -> Relocations:
        """Tenants' files on their way to another grade of isolation."""
        return Relocations(self.connection)

    @cached_property
    def members(self) -> Members:
        """Members of tenants."""
        return Members(self.connection)

    @cached_property
    def users(self) -> Users:
        """The people."""
        return Users(self.connection)

    @cached_property
    def usage(self) -> Usages:
        """Use by tenants over time."""
        return Usages(self.connection)

    @cached_property
    def over_time(self) -> OverTimeSums:
        """Sums of samples over time, of tenants and the cluster."""
        return OverTimeSums(self.connection)

    @cached_property
    def idempotency(self) -> Idempotency:
        """Answers by idempotency key."""
        return Idempotency(self.connection)

    @cached_property
    def service_accounts(self) -> ServiceAccountsRepo:
        """The accounts of tenants, with their tokens."""
        return ServiceAccountsRepo(self.connection)

    @cached_property
    def token_uses(self) -> TokenUsesRepo:
        """From where tokens were used."""
        return TokenUsesRepo(self.connection)

    @cached_property
    def sessions(self) -> BrowserSessions:
        """The sessions of browsers."""
        return BrowserSessions(self.connection)

    @cached_property
    def audit(self) -> Audit:
        """Changes and their actors."""
        return Audit(self.connection)

    @cached_property
    def audit_chain(self) -> AuditChain:
        """The hashes that make a change of the audit log visible."""
        return AuditChain(self.connection)

    @cached_property
    def leases(self) -> Leases:
        """Holders of leases."""
        return Leases(self.connection)

    @cached_property
    def settings(self) -> SettingsRepo:
        """Values of the hub that live in its database."""
        return SettingsRepo(self.connection)
