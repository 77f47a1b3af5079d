"""What people do with jobs: submit, look, stop, go on, delete."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from msgspec import UNSET, structs

from mlp_api import jobs as jobs_api
from mlp_hub.domain.errors import Reason, Refused, not_found
from mlp_hub.domain.job import FINAL, HOLDING, WAITING, Job, JobSpec, Phase, State, Target, state_of
from mlp_hub.executors.base import Executor, LogChunk
from mlp_hub.scheduler.model import Why
from mlp_hub.service import left, submit
from mlp_hub.service import wire_jobs as wire
from mlp_hub.service.admit import Admission
from mlp_hub.service.aiming import store_aimed
from mlp_hub.service.board import Board, Changes
from mlp_hub.service.config import Paths, RunPolicy
from mlp_hub.service.intake import Intake, Once
from mlp_hub.service.looks import Looks
from mlp_hub.service.metrics import Metrics
from mlp_hub.service.stops import LOOKS_BACK, last_stop, newest_checkpoint, suspended_at
from mlp_hub.service.tenants import default_tenant, places
from mlp_hub.service.uids import UidMaker
from mlp_hub.store.repos.jobs import Stale
from mlp_hub.store.tx import Tx

TRIES = 5
MOST_PLACES = 10_000
MOST_LINES = 10_000
# named here, because inside the class `list` is a method
Page = tuple[list[jobs_api.Job], str | None]
Timeline = list[jobs_api.Event]
Queue = list[jobs_api.QueueEntry]
Places = tuple[frozenset[str], str]
_STOPPABLE = frozenset(Phase) - FINAL - {Phase.DELETING}
_RUNS = frozenset({Phase.STARTING, Phase.RUNNING, Phase.RESIZING})
_SUSPENDABLE = _STOPPABLE - {Phase.FINISHING, Phase.CANCELLING}


class Jobs:
    """The jobs of all users. Whether the asker may is not asked here; whether the job exists is."""

    def __init__(  # noqa: PLR0917 - the composition root gives it all
        self,
        board: Board,
        admission: Admission,
        metrics: Metrics,
        executor: Executor,
        clock: Callable[[], float],
        paths: Paths,
        policy: RunPolicy,
    ) -> None:
        self._board = board
        self._admission = admission
        self._metrics = metrics
        self._executor = executor
        self._clock = clock
        self._paths = paths
        self._grace_s = policy.grace_s
        self._uids = UidMaker()
        self._places: dict[str, Places] = {}
        self._intake = Intake(board, policy)
        self._looks = Looks(admission.explain)

    async def stop(self) -> None:
        """Take in no more."""
        await self._intake.stop()
        await self._looks.stop()

    # --------------------------------------------------------------- submit

    async def submit(
        self, user: str, asked: jobs_api.JobCreate, *, idempotency_key: str | None = None
    ) -> jobs_api.Job:
        """Take a job in; it is durable when this returns. The same key with the same body gives the same job."""
        once = None if idempotency_key is None else Once(idempotency_key, submit.fingerprint(asked))
        if once is not None:
            again = await self._intake.answered(user, once)
            if again is not None:
                return self._to_wire(again)
        spec = await self._checked(user, asked)
        submit.check_can_run(await self._admission.possible(), spec)
        return self._to_wire(await self._intake.take(self._new(spec), once))

    async def resubmit(self, user: str, name: str, changes: jobs_api.Resubmit | None = None) -> jobs_api.Job:
        """Submit the same again under a free name like it, in another size where one is given."""
        job = await self._find(user, name)
        taken = await self._board.db.read(lambda tx: tx.jobs.names(user))
        asked = wire.create_of(job.spec, submit.free_name(name, taken))
        given = {} if changes is None else {f: getattr(changes, f) for f in changes.__struct_fields__}
        other = {field: value for field, value in given.items() if value is not UNSET}
        return await self.submit(user, structs.replace(asked, **other))

    async def offer(self, user: str, asked: jobs_api.JobCreate) -> jobs_api.Offer:
        """Say what such a job would get, and when, without submitting it."""
        spec = await self._checked(user, asked)
        why, placement = await self._admission.offer(spec, self._uids.make(self._clock()))
        return wire.offer_to(spec, placement, why, self._grace_s)

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

    async def _checked(self, user: str, asked: jobs_api.JobCreate) -> JobSpec:
        tenants, default = await self._places_of(user)
        spec = submit.checked_spec(asked, user, tenants, default, self._paths)
        home = self._paths.home_name(user)
        submit.check_runtime(spec.runtime, lambda name: self._executor.lacks(name, home), spec.env)
        return spec

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

    async def get(self, user: str, name: str) -> jobs_api.Job:
        """Return the job, with its place in the queue while it waits, and its expected start where that is soon told."""
        job = await self._find(user, name)
        if job.phase is Phase.QUEUED:
            await self._looks.at(job.uid, user)
        return self._to_wire(job)

    async def tenant_of(self, user: str, name: str) -> str | None:
        """Return the tenant of a job, None where there is no such job: as quickly in either case."""
        job = await self._board.db.read(lambda tx: tx.jobs.find(user, name))
        return None if job is None else job.spec.tenant

    async def list(
        self,
        user: str | None = None,
        *,
        tenant: str | None = None,
        state: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page:
        """Return jobs, the newest first, and the cursor of the next page."""
        phases = None
        if state is not None:
            if state not in set(State):
                msg = f"there is no state {state}; choose one of {', '.join(State)}"
                raise Refused(Reason.INVALID, msg)
            phases = [p for p in Phase if state_of(p).value == state]
        tenants = None if tenant is None else [tenant]
        limit = max(1, min(limit, 1000))
        jobs, following = await self._board.db.read(
            lambda tx: tx.jobs.page(user=user, tenants=tenants, phases=phases, limit=limit, cursor=cursor)
        )
        return [self._to_wire(job) for job in jobs], following

    async def why(self, user: str, name: str) -> jobs_api.Why:
        """Say why the job waits, and until when; for one that does not wait, what it does."""
        job = await self._find(user, name)
        return await self.why_of(job)

    async def why_of(self, job: Job) -> jobs_api.Why:
        """Do what `why` does."""
        stopped = await self._stopped(job)
        if job.phase is Phase.QUEUED:
            why = await self._admission.explain(job.uid)
            if why is not None:
                return wire.why_to(job, why, stopped)
        reasons = []
        if job.phase is Phase.SUSPENDED:
            text = "suspended by its user; resume it to go on"
            if await self._has_left(job):
                text = left.words(job.spec)
            elif job.message == left.words(job.spec):
                text = left.back(job.spec)
            reasons = [jobs_api.Verdict(reason=Reason.SUSPENDED.value, message=text, numbers={})]
        else:
            text = job.message or f"it is {job.phase}"
        answer = wire.why_to(job, Why((), None, 0, None, text), stopped)
        answer.reasons = reasons
        return answer

    async def _stopped(self, job: Job) -> jobs_api.Stopped | None:
        """Say what became of the last attempt of a job that waits again."""
        if job.phase not in WAITING or not job.restarts:
            return None
        stop = last_stop(await self._board.db.read(lambda tx: tx.events.last(job.uid, LOOKS_BACK)))
        if stop is None:
            return None
        if await self._has_left(job):
            stop = replace(stop, message=left.ROOM)
        workspace = self._paths.workspace(job.spec.user, job.spec.name)
        return wire.stopped_to(stop, await asyncio.to_thread(newest_checkpoint, workspace))

    async def events(self, user: str, name: str) -> Timeline:
        """Return the job's timeline."""
        job = await self._find(user, name)
        return [wire.event_to(e) for e in await self._board.db.read(lambda tx: tx.events.since(job.uid))]

    async def queue(self, tenant: str | None = None) -> Queue:
        """Return all jobs that wait or hold quota: the running ones first, then by tenant and place."""
        jobs = [j for j in self._board.jobs.values() if tenant in (None, j.spec.tenant)]
        waits = self._admission.waits([j.uid for j in jobs if j.phase is Phase.QUEUED])
        entries = [(j, waits.get(j.uid)) for j in jobs if j.phase is not Phase.DELETING]
        entries.sort(
            key=lambda e: (
                e[0].phase not in HOLDING,
                e[0].phase is Phase.SUSPENDED,
                e[0].spec.tenant,
                e[1].position if e[1] is not None else 0,
                e[0].uid,
            )
        )
        queued = [j.uid for j, _ in entries if j.phase is Phase.QUEUED]
        expected = await self._admission.answers.expected(queued, self._clock())
        return [wire.queue_to(job, waiting, expected.get(job.uid)) for job, waiting in entries]

    async def log_chunk(
        self, user: str, name: str, rank: int, since: int = 0, limit: int = 1000, *, tail: int | None = None
    ) -> LogChunk:
        """Return lines of a rank's output from a cursor on, or its last `tail` lines wherever the cursor is."""
        job = await self._find(user, name)
        ranks = ranks_logged(job)
        if not 0 <= rank < ranks:
            only = "its only rank is 0" if ranks == 1 else f"its ranks are 0 to {ranks - 1}"
            raise Refused(Reason.INVALID, f"job {name} has no rank {rank}; {only}")
        workspace = str(self._paths.workspace(user, name))
        if tail is not None:
            return await asyncio.to_thread(
                self._executor.tail_log, workspace, rank, max(1, min(tail, MOST_LINES))
            )
        lines = max(1, min(limit, MOST_LINES))
        return await asyncio.to_thread(self._executor.read_log, workspace, rank, max(since, 0), lines)

    async def job_of_token(self, token_sha256: str) -> tuple[str, str, str] | None:
        """Return (user, name, uid) of the running job that a token belongs to."""

        def work(tx: Tx) -> tuple[str, str, str] | None:
            uid = tx.tokens.job_of(token_sha256)
            job = None if uid is None else tx.jobs.get(uid)
            if job is None or job.phase not in HOLDING:
                return None
            return job.spec.user, job.spec.name, job.uid

        return await self._board.db.read(work)

    # --------------------------------------------------------------- change

    async def cancel(self, user: str, name: str) -> jobs_api.Job:
        """Stop the job for good; what it holds is given back once its ranks are gone."""

        def aim(job: Job) -> Job | None:
            if job.phase is Phase.CANCELLED or job.target is Target.CANCEL:
                return None
            if job.phase not in _STOPPABLE:
                raise Refused(
                    Reason.WRONG_STATE, f"job {name} is {job.phase} and cannot be cancelled any more"
                )
            return replace(job, target=Target.CANCEL)

        return await self._aim(user, name, aim, "asked to cancel")

    async def suspend(self, user: str, name: str) -> jobs_api.Job:
        """Stop the job so that it can go on later; its ranks get time to save a checkpoint."""

        def aim(job: Job) -> Job | None:
            if job.target is Target.SUSPEND:
                return None
            if job.phase not in _SUSPENDABLE or job.target is Target.CANCEL:
                raise Refused(Reason.WRONG_STATE, f"job {name} is {_now(job)} and cannot be suspended")
            return replace(job, target=Target.SUSPEND)

        return await self._aim(user, name, aim, "asked to suspend")

    async def resume(self, user: str, name: str) -> jobs_api.Job:
        """Let a suspended job wait for its turn again, with the age it had: who is not in the queue does not grow older.

        Not in a tenant that its user has left meanwhile.
        """
        job = await self._find(user, name)
        suspended = suspended_at(await self._board.db.read(lambda tx: tx.events.last(job.uid, LOOKS_BACK)))
        if job.target is Target.SUSPEND and await self._has_left(job):
            raise Refused(
                Reason.FORBIDDEN,
                f"job {name} was submitted to tenant {job.spec.tenant}, of which {user} is not a member any more; "
                "submit it anew to another one",
            )

        def aim(job: Job) -> Job | None:
            if job.target is not Target.SUSPEND:
                msg = f"job {name} is {_now(job)}, not suspended, and cannot be resumed"
                raise Refused(Reason.WRONG_STATE, msg)
            # a resize that was decided before the stop holds what it needs already: it is carried out, not left held
            resizes = job.resize_to and job.phase in _RUNS
            since = job.queued_at
            if job.phase is Phase.SUSPENDED and suspended is not None and since is not None:
                since += max(self._clock() - suspended, 0.0)
            return replace(job, target=Target.RESIZE if resizes else Target.RUN, queued_at=since)

        return await self._aim(user, name, aim, "asked to resume")

    async def delete(self, user: str, name: str) -> jobs_api.Job:
        """Remove a job that has ended, with its directory and its record."""

        def aim(job: Job) -> Job | None:
            if job.phase is Phase.DELETING:
                return None
            if job.phase not in FINAL:
                msg = f"job {name} is {job.phase}; only a job that has ended can be deleted, cancel it first"
                raise Refused(Reason.WRONG_STATE, msg)
            return replace(job, target=Target.DELETE)

        return await self._aim(user, name, aim, "asked to delete")

    async def heartbeat(self, user: str, name: str, beat: jobs_api.Heartbeat) -> None:
        """Take in how far the job says it is. How it ends is told by its processes, not by itself."""
        job = await self._find(user, name)
        if job.phase in FINAL and beat.state == job.state.value:
            return
        if job.phase not in HOLDING:
            raise Refused(Reason.WRONG_STATE, f"job {name} is {job.phase} and cannot report {beat.state}")
        self._metrics.set_progress(job.uid, beat.progress)

    async def _aim(
        self, user: str, name: str, aim: Callable[[Job], Job | None], message: str
    ) -> jobs_api.Job:
        now = self._clock()

        def work(tx: Tx, changes: Changes) -> Job:
            job = tx.jobs.find(user, name)
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

    async def _find(self, user: str, name: str) -> Job:
        job = await self._board.db.read(lambda tx: tx.jobs.find(user, name))
        if job is None:
            raise not_found("job", name)
        return job

    async def _has_left(self, job: Job) -> bool:
        return await self._board.db.read(lambda tx: left.has_left(tx, job.spec))

    def _expected(self, uid: str) -> float | None:
        why = self._admission.expected(uid)
        return None if why is None else why.expected_start

    def _to_wire(self, job: Job) -> jobs_api.Job:
        return wire.job_to(job, self._admission.waiting(job.uid), self._expected(job.uid))


def _now(job: Job) -> str:
    return "being cancelled" if job.target is Target.CANCEL else job.phase.value


def ranks_of(job: Job) -> int:
    """Return how many processes the job has, or may have before it was placed."""
    return len(job.ranks) or len(job.placement) or job.spec.ranks_max


def ranks_logged(job: Job) -> int:
    """Return how many ranks there may be logs of: those that it has, and those that it gave up when it was made smaller."""
    return max(ranks_of(job), job.spec.ranks_max) if job.restarts else ranks_of(job)


def _places(tx: Tx, user: str) -> Places:
    return frozenset(member.tenant for member in places(tx, user)), default_tenant(tx, user)
