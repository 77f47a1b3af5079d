"""What people do with jobs: submit, look, stop, go on, delete."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from mlp_api import types as api
from mlp_hub.domain.errors import Reason, Refused, not_found
from mlp_hub.domain.job import FINAL, HOLDING, WAITING, Job, JobSpec, Phase, State, Target, state_of
from mlp_hub.domain.resources import units
from mlp_hub.executors.base import AttemptPhase, Executor, LogChunk, Observation
from mlp_hub.scheduler.model import Verdict, Why
from mlp_hub.service import decide as d
from mlp_hub.service import submit
from mlp_hub.service import wire_jobs as wire
from mlp_hub.service.admit import Admission
from mlp_hub.service.apart import is_everybodys
from mlp_hub.service.batch import Batch
from mlp_hub.service.board import Board, Changes, Step
from mlp_hub.service.config import Paths, RunPolicy
from mlp_hub.service.metrics import Metrics
from mlp_hub.service.stops import MOST_EVENTS, last_stop, newest_checkpoint
from mlp_hub.service.tenants import default_tenant, places
from mlp_hub.service.uids import UidMaker
from mlp_hub.service.weights import Scales
from mlp_hub.service.wire import maybe_when
from mlp_hub.store.records import Remembered
from mlp_hub.store.repos.jobs import Stale
from mlp_hub.store.tx import Tx

log = logging.getLogger(__name__)
TRIES = 5
MOST_PLACES = 10_000
MOST_LINES = 10_000
# named here, because inside the class `list` is a method
Page = tuple[list[api.Job], str | None]
Timeline = list[api.Event]
Queue = list[api.QueueEntry]
_STOPPABLE = frozenset(Phase) - FINAL - {Phase.DELETING}
_RUNS = frozenset({Phase.STARTING, Phase.RUNNING, Phase.RESIZING})
_SUSPENDABLE = _STOPPABLE - {Phase.FINISHING, Phase.CANCELLING}


Places = tuple[frozenset[str], str]


@dataclass(frozen=True, slots=True)
class _Submitted:
    """A job that is to be stored, under which key its answer is remembered, and what tells two requests apart."""

    job: Job
    key: str | None
    fingerprint: str


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
        self._policy = policy
        self._uids = UidMaker()
        self._places: dict[str, Places] = {}
        self._submits: Batch[_Submitted, Job] = Batch(self._store_all)

    async def stop(self) -> None:
        """Take in no more."""
        await self._submits.stop()

    # --------------------------------------------------------------- submit

    async def submit(self, user: str, asked: api.JobCreate, *, idempotency_key: str | None = None) -> api.Job:
        """Take a job in; it is durable when this returns. The same key with the same body gives the same job."""
        print_ = "" if idempotency_key is None else submit.fingerprint(asked)
        if idempotency_key is not None:
            again = await self._board.db.read(lambda tx: self._answered(tx, user, idempotency_key, print_))
            if again is not None:
                return self._to_wire(again)
        spec = await self._checked(user, asked)
        submit.check_can_run(await self._admission.possible(), spec)
        return self._to_wire(await self._store(spec, idempotency_key, print_))

    async def resubmit(self, user: str, name: str) -> api.Job:
        """Submit the same again under a free name like it."""
        job = await self._find(user, name)
        taken = await self._board.db.read(lambda tx: tx.jobs.names(user))
        asked = wire.create_of(job.spec, submit.free_name(name, taken))
        return await self.submit(user, asked)

    async def offer(self, user: str, asked: api.JobCreate) -> api.Offer:
        """Say what such a job would get, and when, without submitting it."""
        spec = await self._checked(user, asked)
        why, placement = await self._admission.offer(spec, self._uids.make(self._clock()))
        return _offer(spec, placement, why.expected_start, why.reasons, why.would_start_now)

    async def _checked(self, user: str, asked: api.JobCreate) -> JobSpec:
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

    def _answered(self, tx: Tx, user: str, key: str, print_: str) -> Job | None:
        known = tx.idempotency.get(user, key)
        if known is None:
            return None
        if known.fingerprint != print_:
            msg = f"Idempotency-Key {key[:100]} was used for another request; use a new key for each job"
            raise Refused(Reason.CONFLICT, msg)
        return tx.jobs.get(known.answer)

    async def _store(self, spec: JobSpec, key: str | None, print_: str) -> Job:
        now = self._clock()
        job = Job(
            uid=self._uids.make(now),
            spec=spec,
            phase=Phase.QUEUED,
            target=Target.RUN,
            submitted_at=now,
            queued_at=now,
            version=1,
        )
        try:
            return await self._submits.put(_Submitted(job, key, print_))
        except Refused:
            raise
        except Exception as error:
            if not is_everybodys(error):
                log.exception("job %s of %s could not be stored", spec.name, spec.user)
            raise

    async def _store_all(self, lot: Sequence[_Submitted]) -> Sequence[Job | Exception]:
        # here and not before: lots come one after another, so that requests side by side cannot all find room
        scales = Scales(self._board.weights, self._policy.open_bytes_max, self._policy.open_kinds_max)
        refused = [scales.refusal(one.job.spec) for one in lot]
        fitting = [one for one, refusal in zip(lot, refused, strict=True) if refusal is None]
        if not fitting:
            return [refusal for refusal in refused if refusal is not None]
        stored = iter(await self._board.commit(lambda tx, changes: self._insert(tx, changes, fitting)))
        return [next(stored) if refusal is None else refusal for refusal in refused]

    def _insert(self, tx: Tx, changes: Changes, lot: Sequence[_Submitted]) -> list[Job | Exception]:
        """Store new jobs; in place of those that cannot be, the refusal."""
        answers: dict[str, Job | Exception] = {}
        for one in lot:
            if one.key is not None:  # a key may come twice in one lot
                answers[one.job.uid] = self._insert_with_key(tx, changes, one, one.key)
        plain = [one.job for one in lot if one.key is None]
        if plain:
            tx.users.ensure_all(dict.fromkeys(job.spec.user for job in plain), plain[0].submitted_at)
        stored = tx.jobs.insert_many(plain)
        for job in plain:
            if job.uid in stored:
                answers[job.uid] = job
            else:
                answers[job.uid] = submit.name_taken(job.spec.name, tx.jobs.names(job.spec.user))
        new = [job for job in plain if job.uid in stored]
        changes.jobs += new
        if new:
            changes.add_events(tx, [(job.uid, _submission(job)) for job in new], new[0].submitted_at)
        return [answers[one.job.uid] for one in lot]

    def _insert_with_key(self, tx: Tx, changes: Changes, one: _Submitted, key: str) -> Job | Exception:
        job, user = one.job, one.job.spec.user
        try:
            again = self._answered(tx, user, key, one.fingerprint)
        except Refused as refused:
            return refused
        if again is not None:
            return again
        tx.users.ensure(user, job.submitted_at)
        if not tx.jobs.insert(job):
            return submit.name_taken(job.spec.name, tx.jobs.names(user))
        changes.jobs.append(job)
        changes.add_event(tx, job.uid, job.submitted_at, _submission(job))
        tx.idempotency.put(user, key, Remembered(one.fingerprint, job.uid), job.submitted_at)
        return job

    # ----------------------------------------------------------------- look

    async def get(self, user: str, name: str) -> api.Job:
        """Return the job, with its place in the queue and its expected start while it waits."""
        job = await self._find(user, name)
        if job.phase is Phase.QUEUED:
            await self._admission.explain(job.uid)
        return self._to_wire(job)

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

    async def why(self, user: str, name: str) -> api.Why:
        """Say why the job waits, and until when; for one that does not wait, what it does."""
        job = await self._find(user, name)
        return await self.why_of(job)

    async def why_of(self, job: Job) -> api.Why:
        """Do what `why` does."""
        stopped = await self._stopped(job)
        if job.phase is Phase.QUEUED:
            why = await self._admission.explain(job.uid)
            if why is not None:
                return wire.why_to(job, why, stopped)
        reasons = []
        if job.phase is Phase.SUSPENDED:
            text = "suspended by its user; resume it to go on"
            reasons = [api.Verdict(reason=Reason.SUSPENDED.value, message=text, numbers={})]
        else:
            text = job.message or f"it is {job.phase}"
        answer = wire.why_to(job, Why((), None, 0, None, text), stopped)
        answer.reasons = reasons
        return answer

    async def _stopped(self, job: Job) -> api.Stopped | None:
        """Say what became of the last attempt of a job that waits again."""
        if job.phase not in WAITING or not job.restarts:
            return None
        stop = last_stop(await self._board.db.read(lambda tx: tx.events.last(job.uid, MOST_EVENTS)))
        if stop is None:
            return None
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
        ranks = ranks_of(job)
        if not 0 <= rank < ranks:
            raise Refused(Reason.INVALID, f"job {name} has no rank {rank}; its ranks are 0 to {ranks - 1}")
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

    async def cancel(self, user: str, name: str) -> api.Job:
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

    async def suspend(self, user: str, name: str) -> api.Job:
        """Stop the job so that it can go on later; its ranks get time to save a checkpoint."""

        def aim(job: Job) -> Job | None:
            if job.target is Target.SUSPEND:
                return None
            if job.phase not in _SUSPENDABLE or job.target is Target.CANCEL:
                raise Refused(Reason.WRONG_STATE, f"job {name} is {_now(job)} and cannot be suspended")
            return replace(job, target=Target.SUSPEND)

        return await self._aim(user, name, aim, "asked to suspend")

    async def resume(self, user: str, name: str) -> api.Job:
        """Let a suspended job wait for its turn again, with the age it has."""

        def aim(job: Job) -> Job | None:
            if job.target is not Target.SUSPEND:
                msg = f"job {name} is {_now(job)}, not suspended, and cannot be resumed"
                raise Refused(Reason.WRONG_STATE, msg)
            # a resize that was decided before the stop holds what it needs already: it is carried out, not left held
            resizes = job.resize_to and job.phase in _RUNS
            return replace(job, target=Target.RESIZE if resizes else Target.RUN)

        return await self._aim(user, name, aim, "asked to resume")

    async def delete(self, user: str, name: str) -> api.Job:
        """Remove a job that has ended, with its directory and its record."""

        def aim(job: Job) -> Job | None:
            if job.phase is Phase.DELETING:
                return None
            if job.phase not in FINAL:
                msg = f"job {name} is {job.phase}; only a job that has ended can be deleted, cancel it first"
                raise Refused(Reason.WRONG_STATE, msg)
            return replace(job, target=Target.DELETE)

        return await self._aim(user, name, aim, "asked to delete")

    async def heartbeat(self, user: str, name: str, beat: api.Heartbeat) -> None:
        """Take in how far the job says it is. How it ends is told by its processes, not by itself."""
        job = await self._find(user, name)
        if job.phase in FINAL:
            if beat.state == job.state.value:
                return
            raise Refused(Reason.WRONG_STATE, f"job {name} is {job.phase} and cannot report {beat.state}")
        if job.phase not in HOLDING:
            raise Refused(Reason.WRONG_STATE, f"job {name} is {job.phase} and cannot report {beat.state}")
        self._metrics.set_progress(job.uid, beat.progress)

    async def _aim(self, user: str, name: str, aim: Callable[[Job], Job | None], message: str) -> api.Job:
        now = self._clock()

        def work(tx: Tx, changes: Changes) -> Job:
            job = tx.jobs.find(user, name)
            if job is None:
                raise not_found("job", name)
            aimed = aim(job)
            if aimed is None:
                return job
            stored = changes.update(tx, aimed)
            if job.phase in HOLDING:
                changes.add_event(tx, job.uid, now, Step("asked", message))
            # what runs nowhere moves at once
            absent = Observation(stored.attempt, AttemptPhase.ABSENT)
            while stored.phase not in HOLDING and stored.phase is not Phase.DELETING:
                moves = [a for a in d.decide(stored, absent, now, 0.0) if isinstance(a, d.Move)]
                if not moves:
                    break
                m = moves[0]
                stored = changes.move(tx, stored, m.job, now, Step(m.kind, m.message, m.reason))
            return stored

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

    def _expected(self, uid: str) -> float | None:
        why = self._admission.expected(uid)
        return None if why is None else why.expected_start

    def _to_wire(self, job: Job) -> api.Job:
        return wire.job_to(job, self._admission.waiting(job.uid), self._expected(job.uid))


def _submission(job: Job) -> Step:
    least, most = job.spec.ranks_min, job.spec.ranks_max
    count = str(least) if least == most else f"{least} to {most}"
    what = f"{count} rank" + ("s" if most != 1 else "")
    return Step("submitted", f"submitted to {job.spec.tenant}: {what} with runtime {job.spec.runtime}")


def _now(job: Job) -> str:
    return "being cancelled" if job.target is Target.CANCEL else job.phase.value


def ranks_of(job: Job) -> int:
    """Return how many processes the job has, or may have before it was placed."""
    return len(job.ranks) or len(job.placement) or job.spec.ranks_max


def _offer(
    spec: JobSpec,
    placement: dict[str, int],
    expected_start: float | None,
    reasons: Sequence[Verdict],
    smaller: Sequence[str],
) -> api.Offer:
    whole = spec.per_worker * (sum(placement.values()) or spec.ranks_min)
    return api.Offer(
        fits_now=bool(placement),
        expected_start=maybe_when(expected_start),
        placement=placement,
        cpu=units(whole.cpu),
        gpu=units(whole.gpu),
        ram=whole.ram,
        reasons=[wire.verdict_to(v) for v in reasons],
        would_start_now=list(smaller),
    )


def _places(tx: Tx, user: str) -> Places:
    return frozenset(member.tenant for member in places(tx, user)), default_tenant(tx, user)
