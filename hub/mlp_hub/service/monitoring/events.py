"""Instruments of what happens to jobs, requests and the store: fed by the parts where it happens."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from mlp_hub.domain.jobs.job import FINAL, HOLDING, Cause, Job, Phase
from mlp_hub.scheduler.model.types import Preempt
from mlp_hub.service.monitoring import table as t
from mlp_hub.service.monitoring.instruments import CountedMetric, ObservedMetric
from mlp_hub.service.state.moves import Move
from mlp_hub.store.records import Appended

FAILED_STEP = "attempt-failed"
"""Contract: kind of the step of a timeline that has the cause of a failed attempt as its reason."""
_WITHOUT_FAILURE = ("preempted", "resized", "suspended")
MOST_DELAY_S = 86_400.0
"""Safety: seconds of delay that a point counts for: programs set the times of their points, and one of 1970 would be the whole sum."""


class PlatformEvents:
    """All instruments; `clock` gives seconds since the epoch."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.last_cycle: float | None = None
        self.lease = CountedMetric(t.LEASE_CHANGES)
        self.loop_lag = ObservedMetric(t.LOOP_LAG)
        self.requests = CountedMetric(t.REQUESTS)
        self.request_s = ObservedMetric(t.REQUEST_S)
        self.tenant_request_s = ObservedMetric(t.TENANT_REQUEST_S)
        self.tenant_errors = CountedMetric(t.TENANT_REQUEST_ERRORS)
        self.commits = ObservedMetric(t.COMMIT_S)
        self.cycles = ObservedMetric(t.CYCLE_S)
        self.admissions = CountedMetric(t.ADMISSIONS)
        self.wait = ObservedMetric(t.ADMISSION_WAIT)
        self.tenant_wait = ObservedMetric(t.TENANT_WAIT)
        self.start = ObservedMetric(t.START_S)
        self.evictions = CountedMetric(t.EVICTIONS)
        self.preemptions = CountedMetric(t.PREEMPTIONS)
        self.submitted = CountedMetric(t.SUBMITTED)
        self.ended = CountedMetric(t.ENDED)
        self.failed = CountedMetric(t.FAILED)
        self.phases = ObservedMetric(t.PHASE_S)
        self.points = CountedMetric(t.POINTS)
        self.points_delay = ObservedMetric(t.POINTS_DELAY)
        self.notices = CountedMetric(t.NOTICES_SENT)
        self.traces = CountedMetric(t.TRACES)
        self.exported = CountedMetric(t.EXPORTED)
        self.export_failures = CountedMetric(t.EXPORT_FAILURES)
        for cause in Cause:
            self.failed.begin(cause.value)
        for why in (*_WITHOUT_FAILURE, *(cause.value for cause in Cause)):
            self.evictions.begin(why)
        for event in ("acquired", "lost"):
            self.lease.begin(event)

    def all(self) -> list[CountedMetric | ObservedMetric]:
        """Return all instruments."""
        return [one for one in vars(self).values() if isinstance(one, CountedMetric | ObservedMetric)]

    def keep(self, tenants: Collection[str]) -> None:
        """Forget tenants other than these, which are gone, and begin the counts of new ones."""
        for tenant in tenants:
            self.submitted.begin(tenant)
            for phase in FINAL:
                self.ended.begin(tenant, phase.value)
        for one in self.all():
            one.keep(tenants)

    # --- what the parts call

    def request(self, group: str, tenant: str, status: int, seconds: float) -> None:
        """Note an answered request; `tenant` is empty where it concerns none, or several."""
        self.requests.add(group, f"{status // 100}xx")
        self.request_s.observe(seconds, group)
        if tenant:
            self.tenant_request_s.observe(seconds, tenant)
            if status >= 500:
                self.tenant_errors.add(tenant)

    def committed(self, seconds: float, done: bool) -> None:
        """Note a transaction of the database; for the thread that writes."""
        self.commits.observe(seconds, "committed" if done else "failed")

    def cycle(self, outcome: str, seconds: float) -> None:
        """Note a scheduling cycle."""
        self.cycles.observe(seconds, outcome)
        if outcome != "failed":
            self.last_cycle = self._clock()

    def preempted(self, preempt: Preempt) -> None:
        """Note that a job is stopped for another one."""
        self.preemptions.add(preempt.verdict.reason.value)

    def stored(self, _: str, done: Appended) -> None:
        """Note points of a job that were stored."""
        points = done.accepted
        self.points.add(amount=len(points))
        self.points_delay.observe(min(self._clock() - points[-1].t, MOST_DELAY_S))

    def sent(self, channel: str, accepted: bool) -> None:
        """Note notices that were sent together."""
        self.notices.add(channel, "accepted" if accepted else "refused")

    def changed(self, job: Job, before: Job | None) -> None:
        """Note a new job."""
        if before is None and job.phase is Phase.QUEUED and not job.restarts:
            self.submitted.add(job.spec.tenant)

    def moved(self, moves: Sequence[Move]) -> None:
        """Note moves of jobs."""
        for move in moves:
            old, new = move.old, move.new
            if old.phase is Phase.QUEUED and new.phase in HOLDING:
                self._admitted(old, new)
            if old.started_at is None and new.started_at is not None and new.admitted_at is not None:
                self.start.observe(new.started_at - new.admitted_at)
            if new.restarts > old.restarts:
                self.evictions.add(_cause(move))
            if new.phase in FINAL and old.phase not in FINAL:
                self._ended(new)

    def _admitted(self, old: Job, new: Job) -> None:
        tenant, waited = new.spec.tenant, new.waited - old.waited
        self.admissions.add(tenant)
        self.wait.observe(waited, new.spec.priority)
        self.tenant_wait.observe(waited, tenant)

    def _ended(self, job: Job) -> None:
        result = job.phase.value
        self.ended.add(job.spec.tenant, result)
        self.phases.observe(job.waited, "waiting", result)
        self.phases.observe(job.ran_in_all, "running", result)
        if job.phase is Phase.FAILED:
            self.failed.add("unknown" if job.failure is None else job.failure.cause.value)


def _cause(move: Move) -> str:
    """Return why an attempt ended and its job did not."""
    old, new = move.old, move.new
    failed = next((step.reason for step in move.steps if step.kind == FAILED_STEP), None)
    if failed is None and old.failure is not None:
        failed = old.failure.cause.value
    if failed is not None:
        return failed
    if new.phase is Phase.SUSPENDED:
        return "suspended"
    return "preempted" if new.phase is Phase.QUEUED else "resized"
