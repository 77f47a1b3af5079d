"""Requests of users about their jobs: show, stop, resume, delete; `submissions` accepts new ones."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from mlp_api.jobs import jobs as jobs_api
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.jobs.job import FINAL, HOLDING, PHASES, WAITING, Job, Phase, State, Target, state_of
from mlp_hub.domain.tenants.tenant import Role
from mlp_hub.domain.tenants.tenant_context import SYSTEM, TenantContext
from mlp_hub.executors.base import Executor, LogChunk
from mlp_hub.executors.workspace import DirectoryPage, OpenFile
from mlp_hub.scheduler.model.types import SchedulingPolicy, Verdict, Why
from mlp_hub.service.forecast.service import Forecasts
from mlp_hub.service.jobs import steering, wire
from mlp_hub.service.jobs.history import LOOKS_BACK, kept_words, last_stop, suspended_at
from mlp_hub.service.jobs.notes import store_note
from mlp_hub.service.jobs.stages import STEPS, attempts_of
from mlp_hub.service.jobs.submissions import Submissions
from mlp_hub.service.lifecycle.next_action import grace_note
from mlp_hub.service.lifecycle.targets import store_aimed
from mlp_hub.service.metrics.service import MetricsService
from mlp_hub.service.state import former_members
from mlp_hub.service.state.board import Board, Changes
from mlp_hub.service.state.moves import Step
from mlp_hub.service.storage_accounting.full import FullStorages
from mlp_hub.service.support.acts import Act
from mlp_hub.service.support.runs import attempt_of, found_job, run_of
from mlp_hub.store.repos.jobs.jobs import Stale
from mlp_hub.store.tx import Tx
from mlp_language.message import NOTHING, Message, msg

TRIES = 5
"""Safety: attempts at a change, where somebody else changes the job meanwhile: a job that changes all the time does not hold a
request."""
_ASKED = msg("asked to cancel")
MOST_LINES = 10_000
"""Limit of jobs: lines of a log in one answer."""
# named here, because inside the class `list` is a method
Page = tuple[list[jobs_api.Job], str | None]
Timeline = list[jobs_api.Event]
Attempts = list[jobs_api.JobAttempt]
_STOPPABLE = frozenset(Phase) - FINAL - {Phase.DELETING}
_RUNS = frozenset({Phase.STARTING, Phase.RUNNING, Phase.RESIZING})
_SUSPENDABLE = _STOPPABLE - {Phase.FINISHING, Phase.CANCELLING}


class JobService:
    """The jobs of all users. Whether the asker may is not asked here; whether the job exists is.

    The `name` of a job is that of its latest run; `NAME@RUN` is a certain one.
    """

    def __init__(  # noqa: PLR0917 - the composition root gives it all
        self,
        board: Board,
        submissions: Submissions,
        forecasts: Forecasts,
        metrics: MetricsService,
        executor: Executor,
        clock: Callable[[], float],
        full: FullStorages,
        cost: Callable[[Job], Awaitable[jobs_api.JobCost]],
        scheduling: SchedulingPolicy | None = None,
    ) -> None:
        self.submit = submissions.submit
        self.resubmit = submissions.resubmit
        self.offer = submissions.offer
        self.preview = submissions.preview
        self._to_wire = submissions.to_wire
        self._with_memory = submissions.with_memory
        self._board = board
        self._forecasts = forecasts
        self._metrics = metrics
        self._executor = executor
        self._clock = clock
        self._full = full
        self._cost = cost
        self._scheduling = scheduling or SchedulingPolicy()
        self._firsts = asyncio.Lock()

    # ----------------------------------------------------------------- look

    async def get(self, context: TenantContext, user: str, name: str) -> jobs_api.Job:
        """Return the job; while it waits with its place in the queue, and its expected start where that is known already.

        Nothing is worked out for one who asks: at most the next look at all that wait is made sooner.
        """
        job = await self._find(context, user, name)
        if job.phase is Phase.QUEUED:
            self._forecasts.look_soon()
        return self._with_memory(job)

    async def cost(self, context: TenantContext, user: str, name: str) -> jobs_api.JobCost:
        """Return what a run has cost until now."""
        return await self._cost(await self._find(context, user, name))

    async def tenant_of(self, user: str, name: str) -> tuple[str, str] | None:
        """Return the tenant of a job and what means this run of it; None where there is none: as quickly in either case."""
        job = await self._board.db.read(lambda tx: tx.jobs.find(SYSTEM, user, name))
        return None if job is None else (job.spec.tenant, job.reference)

    async def list(
        self,
        context: TenantContext,
        user: str | None = None,
        *,
        tenant: str | None = None,
        state: str | None = None,
        name: str | None = None,
        sweep: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page:
        """Return jobs, the newest first, and the cursor of the next page: those of a `sweep` by its uid, else none that is a trial."""
        phases = None
        if state is not None:
            if state not in set(State):
                text = msg(
                    "state {state} does not exist; choose one of {states}",
                    state=state,
                    states=", ".join(State),
                )
                raise Refused(Reason.INVALID, text)
            phases = [p for p in Phase if state_of(p).value == state]
        tenants = None if tenant is None else [tenant]
        limit = max(1, min(limit, 1000))
        jobs, following = await self._board.db.read(
            lambda tx: tx.jobs.page(
                context,
                user=user,
                name=name,
                tenants=tenants,
                phases=phases,
                replicas=False,
                trials=sweep is not None or name is not None,
                sweep=sweep,
                limit=limit,
                cursor=cursor,
            )
        )
        return [self._to_wire(job) for job in jobs], following

    async def why(self, context: TenantContext, user: str, name: str) -> jobs_api.Why:
        """Say why the job waits, and until when; for one that does not wait, what it does."""
        job = await self._find(context, user, name)
        return await self.why_of(job)

    async def why_of(self, job: Job) -> jobs_api.Why:
        """Do what `why` does."""
        stopped = await self._stopped(job)
        if job.phase is Phase.QUEUED:
            why = await self._forecasts.explain(job.uid)
            if why is not None:
                return wire.why_to(job, why, stopped)
        if job.phase is not Phase.SUSPENDED:
            text = job.message or msg("it is {phase}", phase=job.phase.value)
            full = await self._full.warning(job.spec.user, job.spec.tenant) if job.phase in HOLDING else None
            if full is not None:
                text = msg("{text}; {full}", text=text, full=full)
            outlook = self._forecasts.outlook_of(job)
            return wire.why_to(job, Why((), None, 0, None, text, outlook=outlook), stopped)
        text, reason = msg("suspended by its user; resume it to continue"), Reason.SUSPENDED
        if await self._has_left(job):
            text = former_members.suspended_message(job.spec)
        elif job.message == former_members.suspended_message(job.spec):
            text = former_members.resumable_message(job.spec)
        elif job.reason == Reason.IDLE_GPUS:
            text, reason = job.message, Reason.IDLE_GPUS
        return wire.why_to(job, Why((Verdict(reason, text),), None, 0, None, text), stopped)

    async def _stopped(self, job: Job) -> jobs_api.Stopped | None:
        """Say what became of the last attempt of a job that waits, starts or runs again."""
        if job.phase not in {*WAITING, Phase.ADMITTED, Phase.STARTING, Phase.RUNNING} or not job.restarts:
            return None
        stop = last_stop(await self._board.db.read(lambda tx: tx.events.last(job.uid, LOOKS_BACK)))
        if stop is None:
            return None
        if job.phase is Phase.RUNNING:  # its checkpoints are those of this attempt by now
            return wire.stopped_to(stop, NOTHING, None)
        checkpoint = await self._executor.workspace.newest_checkpoint(run_of(job))
        return wire.stopped_to(stop, kept_words(stop, checkpoint), checkpoint)

    async def events(self, context: TenantContext, user: str, name: str) -> Timeline:
        """Return the job's timeline."""
        job = await self._find(context, user, name)
        return [wire.event_to(e) for e in await self._board.db.read(lambda tx: tx.events.since(job.uid))]

    async def attempts(self, context: TenantContext, user: str, name: str) -> Attempts:
        """Return the job's newest attempts, each with when it came to which stage."""
        return await self.attempts_of(await self._find(context, user, name))

    async def attempts_of(self, job: Job) -> Attempts:
        """Do what `attempts` does."""
        steps = await self._board.db.read(lambda tx: dict(tx.events.of_kinds([job.uid], STEPS)))
        return [wire.attempt_to(each) for each in attempts_of(steps.get(job.uid, ()), job.restarts)]

    async def log_chunk(
        self,
        context: TenantContext,
        user: str,
        name: str,
        rank: int,
        *,
        since: int = 0,
        limit: int = 1000,
        tail: int | None = None,
    ) -> LogChunk:
        """Return lines of a rank's output from a cursor on, or its last `tail` lines wherever the cursor is."""
        job = await self._find(context, user, name)
        check_rank(job, rank)
        attempt = attempt_of(job)
        if tail is not None:
            return await self._executor.tail_log(attempt, rank, max(1, min(tail, MOST_LINES)))
        return await self._executor.read_log(attempt, rank, max(since, 0), max(1, min(limit, MOST_LINES)))

    async def files(
        self, context: TenantContext, user: str, name: str, path: str, *, after: str, limit: int
    ) -> DirectoryPage:
        """List a directory of a job's run, from `after` a name on."""
        job = await self._find(context, user, name)
        try:
            return await self._executor.workspace.files(run_of(job), path, after, limit)
        except Refused as refused:
            if job.phase is Phase.QUEUED and not path.strip("/") and refused.reason is Reason.NOT_FOUND:
                return DirectoryPage([], more=False)  # its directory is made when it starts
            raise

    async def open_file(self, context: TenantContext, user: str, name: str, path: str) -> OpenFile:
        """Open a file of a job's run; the caller closes it."""
        job = await self._find(context, user, name)
        return await self._executor.workspace.open_file(run_of(job), path)

    async def job_of_token(self, token_sha256: str) -> tuple[str, str, str] | None:
        """Return (user, what means this run of the job, uid) of the running job that a token belongs to."""

        def work(tx: Tx) -> tuple[str, str, str] | None:
            uid = tx.tokens.job_of(token_sha256)
            job = None if uid is None else tx.jobs.get(SYSTEM, uid)
            if job is None or job.phase not in HOLDING:
                return None
            return job.spec.user, job.reference, job.uid

        return await self._board.db.read(work)

    # --------------------------------------------------------------- change

    async def cancel(
        self, context: TenantContext, user: str, name: str, why: Message = _ASKED
    ) -> jobs_api.Job:
        """Stop the job for good; its resources are given back once its ranks are gone."""

        def aim(job: Job) -> Job | None:
            if job.phase is Phase.CANCELLED or job.target is Target.CANCEL:
                return None
            if job.phase not in _STOPPABLE:
                raise Refused(
                    Reason.WRONG_STATE,
                    msg(
                        "job {name} is {phase} and cannot be cancelled any more",
                        name=name,
                        phase=PHASES[job.phase],
                    ),
                )
            return replace(job, target=Target.CANCEL)

        return await self._aim(user, name, aim, Act(context, "job.cancel", why))

    async def suspend(self, context: TenantContext, user: str, name: str) -> jobs_api.Job:
        """Stop the job so that it can resume later; its ranks get time to save a checkpoint."""

        def aim(job: Job) -> Job | None:
            if job.target is Target.SUSPEND:
                return None
            if job.phase not in _SUSPENDABLE or job.target is Target.CANCEL:
                raise Refused(
                    Reason.WRONG_STATE,
                    msg("job {name} is {now} and cannot be suspended", name=name, now=_now(job)),
                )
            return replace(job, target=Target.SUSPEND)

        return await self._aim(user, name, aim, Act(context, "job.suspend", msg("asked to suspend")))

    async def resume(self, context: TenantContext, user: str, name: str) -> jobs_api.Job:
        """Queue a suspended job again, with the age it had: a job outside the queue does not grow older.

        It is refused in a tenant that the user has left in the meantime.
        """
        now = self._clock()

        def work(tx: Tx, changes: Changes) -> Job:
            job = found_job(tx, context, user, name)
            if job.target is not Target.SUSPEND:
                text = msg(
                    "job {name} is {now}, not suspended, and cannot be resumed", name=name, now=_now(job)
                )
                raise Refused(Reason.WRONG_STATE, text)
            if former_members.has_left(tx, job.spec):
                raise Refused(
                    Reason.FORBIDDEN,
                    msg(
                        "job {name} was submitted to team {tenant}, of which {user} is no longer a member; submit it again to another team",
                        name=name,
                        tenant=job.spec.tenant,
                        user=user,
                    ),
                )
            # a resize that was decided before the stop holds what it needs already: it is carried out, not left held
            resizes = job.resize_to and job.phase in _RUNS
            since = job.queued_at
            if job.phase is Phase.SUSPENDED and since is not None:
                suspended = suspended_at(tx.events.last(job.uid, LOOKS_BACK))
                since += 0.0 if suspended is None else max(now - suspended, 0.0)
            aimed = replace(job, target=Target.RESIZE if resizes else Target.RUN, queued_at=since)
            if job.reason == Reason.IDLE_GPUS and job.phase in _RUNS:  # why it was to stop, which it does not
                aimed = replace(aimed, reason=None, message=grace_note(aimed) or NOTHING)
            return _store_act(
                tx, changes, Act(context, "job.resume", msg("asked to resume")), job, aimed, now=now
            )

        return await self._tried(work)

    async def delete(self, context: TenantContext, user: str, name: str) -> jobs_api.Job:
        """Remove a job that has ended, with its directory and its record."""

        def aim(job: Job) -> Job | None:
            if job.phase is Phase.DELETING:
                return None
            if job.phase not in FINAL:
                text = msg(
                    "job {name} is {phase}; only a job that has ended can be deleted, cancel it first",
                    name=name,
                    phase=PHASES[job.phase],
                )
                raise Refused(Reason.WRONG_STATE, text)
            return replace(job, target=Target.DELETE)

        return await self._aim(user, name, aim, Act(context, "job.delete", msg("asked to delete")))

    async def heartbeat(self, context: TenantContext, user: str, name: str, beat: jobs_api.Heartbeat) -> None:
        """Take in how far the job says it is. How it ends is told by its processes, not by itself."""
        job = await self._find(context, user, name)
        if job.phase in FINAL and beat.state == job.state.value:
            return
        if job.phase not in HOLDING:
            raise Refused(
                Reason.WRONG_STATE,
                msg(
                    "job {name} is {phase} and cannot report {state}",
                    name=name,
                    phase=PHASES[job.phase],
                    state=beat.state,
                ),
            )
        self._metrics.set_progress(job.uid, beat.progress)

    async def _aim(self, user: str, name: str, aim: Callable[[Job], Job | None], act: Act) -> jobs_api.Job:
        now = self._clock()

        def work(tx: Tx, changes: Changes) -> Job:
            job = found_job(tx, act.context, user, name)
            aimed = aim(job)
            return job if aimed is None else _store_act(tx, changes, act, job, aimed, now=now)

        return await self._tried(work)

    async def _tried(self, work: Callable[[Tx, Changes], Job]) -> jobs_api.Job:
        for _ in range(TRIES - 1):
            try:
                return self._to_wire(await self._board.commit(work))
            except Stale:
                continue
        return self._to_wire(await self._board.commit(work))

    async def update(
        self,
        context: TenantContext,
        user: str,
        name: str,
        asked: jobs_api.JobUpdate,
        *,
        actor: str,
        platform: bool = False,
    ) -> jobs_api.Job:
        """Change a job that has not ended; the allowed changes follow from the role of `actor`, also as stored.

        `platform`: they are an admin of the platform.
        """
        now = self._clock()
        if asked == jobs_api.JobUpdate():
            raise Refused(
                Reason.INVALID, msg("the request changes nothing; give priority, time_limit or place")
            )
        if asked.place == "first":
            steering.check_lines(self._scheduling)

        def work(tx: Tx, changes: Changes) -> Job:
            job = found_job(tx, context, user, name)
            tenant = job.spec.tenant
            member = None if platform else tx.members.get(tenant, actor)
            leads = platform or (member is not None and member.role is Role.ADMIN)
            # a copy: this runs in a thread, beside the loop that changes it
            jobs = self._board.jobs.copy().values()
            place = steering.front(jobs, tenant) if asked.place == "first" else None
            made = steering.steered(
                job, asked, steering.Changer(actor, leads), now, place=place, limits=self._executor.limits
            )
            if not made.after:
                return job
            stored = changes.update(tx, made.job)
            changes.add_events(tx, [(job.uid, Step("changed", said)) for said in made.said], now)
            detail = {"user": user, "before": made.before, "after": made.after}
            tx.audit.add(now, actor, "job.update", job.title, tenant=tenant, detail=detail)
            return stored

        if asked.place == "first":
            async with self._firsts:  # what the one before took is known only after its transaction
                return await self._tried(work)
        return await self._tried(work)

    async def note(
        self, context: TenantContext, user: str, name: str, asked: jobs_api.JobNote, *, actor: str
    ) -> jobs_api.Job:
        """Attach a note to a job in any phase, or remove it with an empty text."""
        now = self._clock()

        def work(tx: Tx, changes: Changes) -> Job:
            return store_note(
                tx, changes, found_job(tx, context, user, name), asked.note, actor=actor, now=now
            )

        return self._to_wire(await self._board.commit(work))

    # ---------------------------------------------------------------- parts

    async def _find(self, context: TenantContext, user: str, name: str) -> Job:
        return await self._board.db.read(lambda tx: found_job(tx, context, user, name))

    async def _has_left(self, job: Job) -> bool:
        return await self._board.db.read(lambda tx: former_members.has_left(tx, job.spec))


def _now(job: Job) -> Message:
    being_cancelled = job.target is Target.CANCEL and job.phase not in FINAL
    return msg("being cancelled") if being_cancelled else PHASES[job.phase]


def ranks_of(job: Job) -> int:
    """Return how many processes the job has, or may have before it was placed."""
    return len(job.ranks) or len(job.placement) or job.spec.ranks_max


def ranks_logged(job: Job) -> int:
    """Return how many ranks there may be logs of: those that it has, and those that it gave up when it was made smaller."""
    return max(ranks_of(job), job.spec.ranks_max) if job.restarts else ranks_of(job)


def check_rank(job: Job, rank: int) -> None:
    """Refuse a rank without logs."""
    ranks = ranks_logged(job)
    if not 0 <= rank < ranks:
        only = msg("its only rank is 0") if ranks == 1 else msg("its ranks are 0 to {last}", last=ranks - 1)
        raise Refused(
            Reason.INVALID,
            msg("job {name} has no rank {rank}; {only}", name=job.spec.name, rank=rank, only=only),
        )


def _store_act(tx: Tx, changes: Changes, act: Act, job: Job, aimed: Job, *, now: float) -> Job:
    owner = job.spec.user
    act.record(tx, job.title, owner=owner, tenant=job.spec.tenant, now=now)
    return store_aimed(tx, changes, job, aimed, now=now, message=act.signed(owner))
