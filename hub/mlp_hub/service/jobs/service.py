"""Requests of users about their jobs: submit, look, stop, go on, delete."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from msgspec import UNSET, structs

from mlp_api import jobs as jobs_api
from mlp_hub.domain.errors import Reason, Refused, not_found
from mlp_hub.domain.job import FINAL, HOLDING, PHASES, WAITING, Job, JobSpec, Phase, State, Target, state_of
from mlp_hub.domain.run import Origin
from mlp_hub.domain.runtime import BUILT_IN, Runtime, RuntimeState
from mlp_hub.domain.tenant_context import SYSTEM, TenantContext
from mlp_hub.executors.base import Executor, LogChunk
from mlp_hub.executors.brought import BroughtJob
from mlp_hub.executors.workspace import DirectoryPage, OpenFile
from mlp_hub.scheduler.model.types import Verdict, Why
from mlp_hub.service.admission.feasibility import Feasibility
from mlp_hub.service.admission.loop import Admission
from mlp_hub.service.charges.full import FullStorages
from mlp_hub.service.config import RunPolicy
from mlp_hub.service.forecast.service import Forecasts
from mlp_hub.service.jobs import validation, wire
from mlp_hub.service.jobs.history import LOOKS_BACK, last_stop, suspended_at
from mlp_hub.service.jobs.intake import Intake, Once
from mlp_hub.service.jobs.kept import check_same, kept_of, with_params
from mlp_hub.service.jobs.stages import STEPS, attempts_of
from mlp_hub.service.lifecycle.targets import store_aimed
from mlp_hub.service.metrics.service import MetricsService
from mlp_hub.service.state import former_members
from mlp_hub.service.state.board import Board, Changes
from mlp_hub.service.storage import data
from mlp_hub.service.support.runs import attempt_of, run_of
from mlp_hub.service.support.uids import UidMaker
from mlp_hub.service.tenants.networks import Networks
from mlp_hub.service.tenants.service import default_tenant, places
from mlp_hub.store.repos.jobs import Stale
from mlp_hub.store.tx import Tx
from mlp_language.catalogue import DEFAULT
from mlp_language.message import Message, msg

TRIES = 5
"""Safety: attempts at a change, where somebody else changes the job meanwhile: a job that changes all the time does not hold a
request."""
MOST_PLACES = 10_000
"""Safety: users whose tenants are remembered: bounds memory."""
MOST_SHARED = 41
"""Given: characters of a name that are left beside a dash and eight more."""
_ASKED = msg("asked to cancel")
MOST_LINES = 10_000
"""Safety: lines of a log in one answer: bounds its size."""
# named here, because inside the class `list` is a method
Page = tuple[list[jobs_api.Job], str | None]
Timeline = list[jobs_api.Event]
Attempts = list[jobs_api.JobAttempt]
Places = tuple[frozenset[str], str]
_STOPPABLE = frozenset(Phase) - FINAL - {Phase.DELETING}
_RUNS = frozenset({Phase.STARTING, Phase.RUNNING, Phase.RESIZING})
_SUSPENDABLE = _STOPPABLE - {Phase.FINISHING, Phase.CANCELLING}


class JobService:
    """The jobs of all users. Whether the asker may is not asked here; whether the job exists is.

    `check_home` refuses a new job of a user whose home is too large, `full` of one whose storage is; `runtimes` returns those of a tenant by name.

    The `name` of a job is that of its latest run; `NAME@RUN` is a certain one.
    """

    def __init__(  # noqa: PLR0917 - the composition root gives it all
        self,
        board: Board,
        admission: Admission,
        feasibility: Feasibility,
        forecasts: Forecasts,
        metrics: MetricsService,
        executor: Executor,
        clock: Callable[[], float],
        policy: RunPolicy,
        networks: Networks,
        check_home: Callable[[str], Awaitable[None]],
        full: FullStorages,
        runtimes: Callable[[str], Awaitable[Mapping[str, Runtime]]],
    ) -> None:
        self._board = board
        self._admission = admission
        self._feasibility = feasibility
        self._forecasts = forecasts
        self._metrics = metrics
        self._executor = executor
        self._clock = clock
        self._grace_s = policy.grace_s
        self._networks = networks
        self._uids = UidMaker()
        self._places: dict[str, Places] = {}
        self._intake = Intake(board, policy)
        self._check_home = check_home
        self._full = full
        self._runtimes = runtimes

    async def stop(self) -> None:
        """Take in no more."""
        await self._intake.stop()
        await self._forecasts.stop()

    # --------------------------------------------------------------- submit

    async def submit(
        self,
        user: str,
        asked: jobs_api.JobCreate,
        *,
        idempotency_key: str | None = None,
        language: str = DEFAULT,
    ) -> jobs_api.Job:
        """Take a job in; it is durable when this returns. The same key with the same body gives the same job.

        In `language` its ranks are told what `mlp` has to say to them.
        """
        once = None if idempotency_key is None else Once(idempotency_key, validation.fingerprint(asked))
        again = await self._answered(user, once)
        return await self._take(user, asked, once, language) if again is None else again

    async def _answered(self, user: str, once: Once | None) -> jobs_api.Job | None:
        job = None if once is None else await self._intake.answered(user, once)
        return None if job is None else self._to_wire(job)

    async def _take(  # noqa: PLR0917 - each is needed
        self,
        user: str,
        asked: jobs_api.JobCreate,
        once: Once | None,
        language: str,
        again: Runtime | None = None,
        exactly: Job | None = None,
    ) -> jobs_api.Job:
        spec = await self._checked(user, asked, again)
        if language != DEFAULT:
            spec = replace(spec, language=language)
        await self._check_home(user)
        await self._full.check(user, spec.tenant)
        await self._feasibility.check(spec)
        if exactly is not None:
            await self._check_same(exactly, spec, asked.provenance)
        kept = await kept_of(self._executor.workspace, spec, asked.provenance)
        return self._to_wire(
            await self._intake.take(self._new(spec), once, replaces=asked.replace, kept=kept)
        )

    async def _check_same(self, job: Job, spec: JobSpec, said: jobs_api.Provenance | None) -> None:
        def work(tx: Tx) -> tuple[Origin, str | None]:
            origin = tx.runs.origin(job.uid)
            return origin, tx.runs.text(origin.environment)

        origin, before = await self._board.db.read(work)
        await check_same(self._executor.workspace, job, spec, origin, before, said)

    async def resubmit(
        self,
        context: TenantContext,
        user: str,
        name: str,
        changes: jobs_api.Resubmit | None = None,
        *,
        idempotency_key: str | None = None,
        language: str = DEFAULT,
    ) -> jobs_api.Job:
        """Submit the same again as the next run of its name, with what is to be other. Keys are as for `submit`."""
        given = {} if changes is None else {f: getattr(changes, f) for f in changes.__struct_fields__}
        other = {field: value for field, value in given.items() if value is not UNSET}
        # by what was asked: which run `name` is may be another one by now
        once = (
            None if idempotency_key is None else Once(idempotency_key, validation.fingerprint(other, of=name))
        )
        again = await self._answered(user, once)
        if again is not None:
            return again
        job = await self._find(context, user, name)
        if job.spec.brought is not None:
            raise Refused(
                Reason.INVALID,
                msg(
                    "job {name} was made with kubectl, as {what}: create it again there",
                    name=job.title,
                    what=job.spec.brought.title,
                ),
            )
        exactly = bool(other.pop("exactly", False))
        if exactly and other.keys() - {"provenance"}:
            raise Refused(
                Reason.INVALID,
                msg(
                    "exactly and {others} are both given; leave out exactly to run it again with something other",
                    others=", ".join(sorted(other.keys() - {"provenance"})),
                ),
            )
        if "params" in other:
            other |= with_params(job.spec, other["params"])
        wanted = structs.replace(wire.create_of(job.spec), **other)
        return await self._take(user, wanted, once, language, job.spec.own_runtime, job if exactly else None)

    async def submit_brought(self, found: BroughtJob) -> Job:
        """Take in a job that its user made past the hub, once for each; raises `Refused` where it may not run."""
        spec = await self._brought_spec(found)
        await self._check_home(spec.user)
        await self._full.check(spec.user, spec.tenant)
        await self._feasibility.check(spec)
        once = Once(f"brought/{found.what.uid}", found.what.uid)
        try:
            return await self._intake.take(self._new(spec), once)
        except Refused as refused:
            if refused.reason is not Reason.CONFLICT:
                raise
        # another of its name has not ended: of objects of different kinds, and of the hub's own, all may have one name
        other = f"{spec.name[:MOST_SHARED]}-{found.what.uid[:8]}"
        return await self._intake.take(self._new(replace(spec, name=other)), once)

    async def _brought_spec(self, found: BroughtJob) -> JobSpec:
        known = await self._board.db.read(lambda tx: tx.users.get(found.user))
        if known is None:
            raise Refused(
                Reason.FORBIDDEN,
                msg(
                    "the hub knows no user {user}; log in there once, or say your name there in the annotation mlp-hub/user",
                    user=found.user,
                ),
            )
        tenants, _ = await self._places_of(found.user)
        return validation.brought_spec(found, tenants)

    async def submit_replica(self, spec: JobSpec) -> Job:
        """Take in a replica of an app as a job like all others; raises `Refused` where it may not run."""
        await self._check_home(spec.user)
        await self._feasibility.check(spec)
        return await self._intake.take(self._new(spec))

    async def checked_trial(self, user: str, asked: jobs_api.JobCreate, language: str = DEFAULT) -> JobSpec:
        """Return what a trial of a sweep runs, but for its parameters; raises `Refused` where it could never run."""
        spec = await self._checked(user, asked)
        if language != DEFAULT:
            spec = replace(spec, language=language)
        await self._check_home(user)
        await self._full.check(user, spec.tenant)
        await self._feasibility.check(spec)
        return spec

    async def submit_trial(self, spec: JobSpec) -> Job:
        """Take in a trial of a sweep as a job like all others; raises `Refused` where it may not run now."""
        await self._check_home(spec.user)
        await self._full.check(spec.user, spec.tenant)
        await self._feasibility.check(spec)
        kept = await kept_of(self._executor.workspace, spec, None)
        return await self._intake.take(self._new(spec), kept=kept)

    async def offer_of(self, spec: JobSpec) -> tuple[Why, dict[str, int]]:
        """Say of a job that was checked what `offer` does: why it would wait and until when, and its ranks by node."""
        return await self._forecasts.offer(spec, self._uids.make(self._clock()))

    async def check_replica(self, spec: JobSpec) -> None:
        """Raise `Refused` where a replica of an app could never run."""
        await validation.check_runtime(
            spec.started_by, lambda package: self._executor.lacks(package, spec.user), spec.env
        )
        await self._feasibility.check(spec)

    async def runtimes_of(self, tenant: str) -> Mapping[str, Runtime]:
        """Return a tenant's own runtimes by name, in whatever state."""
        return await self._runtimes(tenant)

    async def offer(self, user: str, asked: jobs_api.JobCreate) -> jobs_api.Offer:
        """Say what such a job would get, and when, without submitting it."""
        spec = await self._checked(user, asked)
        why, placement = await self._forecasts.offer(spec, self._uids.make(self._clock()))
        network = await self._networks.of(spec.tenant)
        return wire.offer_to(spec, placement, why, self._grace_s, network)

    def _new(self, spec: JobSpec) -> Job:
        now = self._clock()
        return Job(
            uid=self._uids.make(now),
            spec=spec,
            phase=Phase.QUEUED,
            target=Target.RUN,
            submitted_at=now,
            queued_at=now,
            waiting_since=now,
            version=1,
        )

    async def _checked(self, user: str, asked: jobs_api.JobCreate, again: Runtime | None = None) -> JobSpec:
        """Return what is asked for; `again` is the runtime of a job that is to run once more."""
        tenants, default = await self._places_of(user)
        own: Mapping[str, Runtime] = {}
        if asked.runtime is not None and asked.runtime not in BUILT_IN:
            own = await self._runtimes(validation.tenant_for(asked.tenant, tenants, default))
            if again is not None and again.name not in {
                r.name for r in own.values() if r.state is RuntimeState.DISABLED
            }:
                own = {again.name: again}
        workspace = self._executor.workspace
        spec = await validation.checked_spec(asked, user, tenants, default, workspace, own)
        await validation.check_runtime(
            spec.started_by, lambda package: self._executor.lacks(package, user), spec.env
        )
        return await self._board.db.read(lambda tx: data.found_now(tx, spec)) if spec.data else spec

    async def _places_of(self, user: str) -> Places:
        """Return the user's tenants and which of them is meant when none is named."""
        known = self._places.get(user)
        if known is not None:
            return known
        before = self._places
        found = await self._board.db.read(lambda tx: _places(tx, user))
        if len(before) >= MOST_PLACES:
            before.clear()
        before[user] = found  # into what was forgotten meanwhile, if it was
        return found

    def forget_places(self) -> None:
        """Read memberships anew from now on: some have changed."""
        self._places = {}

    # ----------------------------------------------------------------- look

    async def get(self, context: TenantContext, user: str, name: str) -> jobs_api.Job:
        """Return the job; while it waits with its place in the queue, and its expected start where that is known already.

        Nothing is worked out for one who asks: at most the next look at all that wait is made sooner.
        """
        job = await self._find(context, user, name)
        if job.phase is Phase.QUEUED:
            self._forecasts.look_soon()
        return self._to_wire(job)

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
                    "there is no state {state}; choose one of {states}", state=state, states=", ".join(State)
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
            return wire.why_to(job, Why((), None, 0, None, text), stopped)
        text = msg("suspended by its user; resume it to go on")
        if await self._has_left(job):
            text = former_members.suspended_message(job.spec)
        elif job.message == former_members.suspended_message(job.spec):
            text = former_members.resumable_message(job.spec)
        return wire.why_to(job, Why((Verdict(Reason.SUSPENDED, text),), None, 0, None, text), stopped)

    async def _stopped(self, job: Job) -> jobs_api.Stopped | None:
        """Say what became of the last attempt of a job that waits again."""
        if job.phase not in WAITING or not job.restarts:
            return None
        stop = last_stop(await self._board.db.read(lambda tx: tx.events.last(job.uid, LOOKS_BACK)))
        if stop is None:
            return None
        return wire.stopped_to(stop, await self._executor.workspace.newest_checkpoint(run_of(job)))

    async def events(self, context: TenantContext, user: str, name: str) -> Timeline:
        """Return the job's timeline."""
        job = await self._find(context, user, name)
        return [wire.event_to(e) for e in await self._board.db.read(lambda tx: tx.events.since(job.uid))]

    async def attempts(self, context: TenantContext, user: str, name: str) -> Attempts:
        """Return the job's newest attempts, each with when it came to which stage."""
        return await self.attempts_of(await self._find(context, user, name))

    async def attempts_of(self, job: Job) -> Attempts:
        """Do what `attempts` does."""
        told = await self._board.db.read(lambda tx: dict(tx.events.of_kinds([job.uid], STEPS)))
        return [wire.attempt_to(each) for each in attempts_of(told.get(job.uid, ()), job.restarts)]

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
        """List a directory of a job's run; what comes `after` a name."""
        job = await self._find(context, user, name)
        return await self._executor.workspace.files(run_of(job), path, after, limit)

    async def open_file(self, context: TenantContext, user: str, name: str, path: str) -> OpenFile:
        """Open a file of a job's run; who asks closes it."""
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
        """Stop the job for good; what it holds is given back once its ranks are gone."""

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

        return await self._aim(context, user, name, aim, why)

    async def suspend(self, context: TenantContext, user: str, name: str) -> jobs_api.Job:
        """Stop the job so that it can go on later; its ranks get time to save a checkpoint."""

        def aim(job: Job) -> Job | None:
            if job.target is Target.SUSPEND:
                return None
            if job.phase not in _SUSPENDABLE or job.target is Target.CANCEL:
                raise Refused(
                    Reason.WRONG_STATE,
                    msg("job {name} is {now} and cannot be suspended", name=name, now=_now(job)),
                )
            return replace(job, target=Target.SUSPEND)

        return await self._aim(context, user, name, aim, msg("asked to suspend"))

    async def resume(self, context: TenantContext, user: str, name: str) -> jobs_api.Job:
        """Let a suspended job wait for its turn again, with the age it had: who is not in the queue does not grow older.

        Not in a tenant that its user has left meanwhile.
        """
        job = await self._find(context, user, name)
        suspended = suspended_at(await self._board.db.read(lambda tx: tx.events.last(job.uid, LOOKS_BACK)))
        if job.target is Target.SUSPEND and await self._has_left(job):
            raise Refused(
                Reason.FORBIDDEN,
                msg(
                    "job {name} was submitted to tenant {tenant}, of which {user} is not a member any more; submit "
                    "it anew to another one",
                    name=name,
                    tenant=job.spec.tenant,
                    user=user,
                ),
            )

        def aim(job: Job) -> Job | None:
            if job.target is not Target.SUSPEND:
                text = msg(
                    "job {name} is {now}, not suspended, and cannot be resumed", name=name, now=_now(job)
                )
                raise Refused(Reason.WRONG_STATE, text)
            # a resize that was decided before the stop holds what it needs already: it is carried out, not left held
            resizes = job.resize_to and job.phase in _RUNS
            since = job.queued_at
            if job.phase is Phase.SUSPENDED and suspended is not None and since is not None:
                since += max(self._clock() - suspended, 0.0)
            return replace(job, target=Target.RESIZE if resizes else Target.RUN, queued_at=since)

        return await self._aim(context, user, name, aim, msg("asked to resume"))

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

        return await self._aim(context, user, name, aim, msg("asked to delete"))

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

    async def _aim(
        self, context: TenantContext, user: str, name: str, aim: Callable[[Job], Job | None], message: Message
    ) -> jobs_api.Job:
        now = self._clock()

        def work(tx: Tx, changes: Changes) -> Job:
            job = tx.jobs.find(context, user, name)
            if job is None:
                raise not_found("job", name)
            aimed = aim(job)
            if aimed is None:
                return job
            return store_aimed(tx, changes, job, aimed, now=now, message=message)

        for _ in range(TRIES - 1):
            try:
                return self._to_wire(await self._board.commit(work))
            except Stale:
                continue
        return self._to_wire(await self._board.commit(work))

    # ---------------------------------------------------------------- parts

    async def _find(self, context: TenantContext, user: str, name: str) -> Job:
        job = await self._board.db.read(lambda tx: tx.jobs.find(context, user, name))
        if job is None:
            raise not_found("job", name)
        return job

    async def _has_left(self, job: Job) -> bool:
        return await self._board.db.read(lambda tx: former_members.has_left(tx, job.spec))

    def _to_wire(self, job: Job) -> jobs_api.Job:
        return wire.job_to(job, self._admission.waiting(job.uid), self._forecasts.start_of(job))


def _now(job: Job) -> Message:
    return msg("being cancelled") if job.target is Target.CANCEL else PHASES[job.phase]


def ranks_of(job: Job) -> int:
    """Return how many processes the job has, or may have before it was placed."""
    return len(job.ranks) or len(job.placement) or job.spec.ranks_max


def ranks_logged(job: Job) -> int:
    """Return how many ranks there may be logs of: those that it has, and those that it gave up when it was made smaller."""
    return max(ranks_of(job), job.spec.ranks_max) if job.restarts else ranks_of(job)


def check_rank(job: Job, rank: int) -> None:
    """Refuse a rank that there are no logs of."""
    ranks = ranks_logged(job)
    if not 0 <= rank < ranks:
        only = msg("its only rank is 0") if ranks == 1 else msg("its ranks are 0 to {last}", last=ranks - 1)
        raise Refused(
            Reason.INVALID,
            msg("job {name} has no rank {rank}; {only}", name=job.spec.name, rank=rank, only=only),
        )


def _places(tx: Tx, user: str) -> Places:
    return frozenset(member.tenant for member in places(tx, user)), default_tenant(tx, user)
