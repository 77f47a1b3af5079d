"""Ends jobs that hold GPUs and do not use them, by the policy of their team, after a countdown that their owner can stop.

The executor measures: the engines of the GPUs, and the processors, because a job that loads data works. The countdown is stored
with the job, so a restart of the service, or another replica, continues it. It pauses while nothing is measured. Apps are not
counted: they scale by their requests. Nothing ends unless the very look that ends it has seen that it does nothing.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from mlp_api.jobs import idle_jobs as api
from mlp_api.jobs import jobs as jobs_api
from mlp_hub.domain.errors import MLPError, Reason, Refused
from mlp_hub.domain.jobs import idle_gpus
from mlp_hub.domain.jobs.idle_gpus import LONG_S, GpuIdle
from mlp_hub.domain.jobs.job import PHASES, Job, Phase, Target
from mlp_hub.domain.notices.notice import NoticeKind
from mlp_hub.domain.resources import units
from mlp_hub.domain.tenants.account_names import THE_HUB
from mlp_hub.domain.tenants.tenant_context import SYSTEM, TenantContext
from mlp_hub.domain.workload.idle_policy import IdleKind, IdleWorkPolicy
from mlp_hub.executors.base import AttemptWork, Executor
from mlp_hub.service.jobs import wire
from mlp_hub.service.jobs.wire import ends_of
from mlp_hub.service.lifecycle.targets import store_aimed
from mlp_hub.service.quota.idle_policies import HOUR_S, MOST_PASSED_S
from mlp_hub.service.state.board import Board, Changes
from mlp_hub.service.state.moves import Step
from mlp_hub.service.support.runs import found_job
from mlp_hub.store.tx import Tx
from mlp_language.message import Arg, Message, Span, msg

log = logging.getLogger(__name__)
MEASURED_S = 20.0
"""Safety: seconds in which the executor has to answer: a driver that hangs, or a slow volume, holds no request up."""
SHOWN_S = 300.0
"""Tuning: seconds without use from which on that is stored and shown: fewer writes, for how early it is seen."""
STORED_EVERY_S = 60.0
"""Tuning: seconds of a longer idle time that are stored while nothing counts down: writes, for the seconds that a restart forgets."""


class JobNotices(Protocol):
    """Interface for notices about jobs."""

    def about_job(self, tx: Tx, job: Job, kind: NoticeKind, text: Message) -> set[str]: ...
    def notify(self, users: set[str]) -> None: ...


@dataclass(frozen=True, slots=True)
class _Seen:
    """Result of a look at a job: its idle time by now, and whether the job was seen to do nothing."""

    job: Job
    idle: GpuIdle
    nothing: bool
    policy: IdleWorkPolicy | None  # of its team

    @property
    def due(self) -> bool:
        return self.nothing and self.idle.left_s is not None and self.idle.left_s <= 0

    @property
    def stored(self) -> GpuIdle | None:
        """The part that is stored with the job: nothing of one that works, or whose team has no policy."""
        idle = self.idle
        shown = self.policy is not None and (idle.idle_s >= SHOWN_S or idle.claims)
        if shown or idle.kept_s > 0 or idle.left_s is not None:
            return idle
        return None


class IdleJobs:
    """Counts down, and ends, by looks at all jobs with GPUs. `monotonic` is a clock that never jumps.

    Whether who asks may is for the caller to say.
    """

    def __init__(
        self,
        board: Board,
        executor: Executor,
        clock: Callable[[], float],
        notices: JobNotices,
        to_wire: Callable[[Job], jobs_api.Job] = wire.job_to,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._board, self._executor, self._clock = board, executor, clock
        self._notices, self._to_wire, self._monotonic = notices, to_wire, monotonic
        self._one_by_one = asyncio.Lock()
        self._looked: float | None = None
        self._idle: dict[str, tuple[str, GpuIdle]] = {}  # by uid: its attempt, and what is known of that

    def start(self) -> None:
        """Continue the countdowns that are stored."""
        self._looked = None
        self._idle = {
            job.uid: (job.attempt, job.idle) for job in self._board.jobs.values() if job.idle is not None
        }

    # ------------------------------------------------------------- answers

    def long_idle(self, tenant: str | None = None) -> list[tuple[Job, GpuIdle]]:
        """List the running jobs of a tenant, or of all, whose GPUs were not used for long, that count down, or that claim to work; the longest first."""
        found = []
        for uid, (attempt, idle) in self._idle.items():
            job = self._board.holding.get(uid)
            if job is None or job.attempt != attempt or tenant not in (None, job.spec.tenant):
                continue
            if idle.idle_s >= LONG_S or idle.left_s is not None or idle.claims:
                found.append((job, idle))
        return sorted(found, key=lambda one: (-one[1].idle_s, one[0].uid))

    def gpus_by_node(self) -> Mapping[str, float]:
        """Return the GPUs of each node that jobs hold and that were not used for long."""
        found: dict[str, float] = defaultdict(float)
        for job, idle in self.long_idle():
            if idle.idle_s >= LONG_S:
                for node in job.placement:
                    found[node] += units(job.spec.per_worker.gpu)
        return found

    async def keep(
        self, context: TenantContext, user: str, name: str, asked: api.JobKeep, *, actor: str
    ) -> jobs_api.Job:
        """Keep a running job for some hours from now on: its countdown stops. Raises `WrongState`."""
        async with self._one_by_one:
            seconds = float(asked.hours * HOUR_S)

            def work(tx: Tx, changes: Changes) -> Job:
                job = found_job(tx, context, user, name)
                check_counted(job)
                if tx.idle_policies(IdleKind.JOB).get(job.spec.tenant) is None:
                    raise Refused(
                        Reason.WRONG_STATE,
                        msg(
                            "team {tenant} has no policy for unused GPUs, so nothing ends job {name}",
                            tenant=job.spec.tenant,
                            name=job.title,
                        ),
                    )
                idle = self._of(job)
                if seconds > (most := idle.could_be_kept()):
                    raise _kept_enough(job, asked.hours, most)
                kept = changes.update(tx, replace(job, idle=idle.keep(seconds)))
                said = msg("{who} keeps it for {time}, used or not", who=actor, time=Span(seconds))
                changes.add_event(tx, job.uid, self._clock(), Step("kept", said))
                detail = {"user": user, "hours": asked.hours}
                tx.audit.add(
                    self._clock(), actor, "job.keep", job.title, tenant=job.spec.tenant, detail=detail
                )
                return kept

            job = await self._board.commit(work)
            if job.idle is not None:
                self._idle[job.uid] = job.attempt, job.idle
        return self._to_wire(job)

    def _of(self, job: Job) -> GpuIdle:
        attempt, idle = self._idle.get(job.uid, ("", GpuIdle()))
        return idle if attempt == job.attempt else GpuIdle()

    # --------------------------------------------------------------- looks

    async def look(self) -> None:
        """Look at all jobs with GPUs: count those that do nothing, and end those whose countdown is over."""
        async with self._one_by_one:
            now = self._monotonic()
            passed = 0.0 if self._looked is None else min(max(now - self._looked, 0.0), MOST_PASSED_S)
            self._looked = now
            jobs = [job for job in self._board.holding.values() if is_counted(job)]
            if not jobs:
                self._idle = {}
                return
            works = await self._works(jobs)
            policies = await self._board.db.read(lambda tx: tx.idle_policies(IdleKind.JOB).all())
            seen = []
            for job in jobs:
                policy = policies.get(job.spec.tenant)
                does, claims = works.get(job.attempt, (None, False))
                idle = replace(self._of(job).after(passed, does, policy), claims=claims)
                seen.append(_Seen(job, idle, does is False, policy))
            self._idle = {one.job.uid: (one.job.attempt, one.idle) for one in seen}
            changed = [one for one in seen if one.due or _differs(one.job.idle, one.stored)]
            if changed:
                self._notices.notify(await self._board.commit(lambda tx, c: self._store(tx, c, changed)))

    async def _works(self, jobs: list[Job]) -> Mapping[str, tuple[bool | None, bool]]:
        """Return of each attempt whether it works, and whether it claims to work."""
        try:
            async with asyncio.timeout(MEASURED_S):
                found = await self._executor.work_of([job.attempt for job in jobs])
        except (OSError, MLPError) as error:
            log.info("the work of GPUs is not known now: %s", error)
            return {}
        return {attempt: _judged(one) for attempt, one in found.items()}

    def _store(self, tx: Tx, changes: Changes, seen: list[_Seen]) -> set[str]:
        told: set[str] = set()
        policies = tx.idle_policies(IdleKind.JOB).all() if any(one.due for one in seen) else {}
        for one in seen:
            job = tx.jobs.get(SYSTEM, one.job.uid)
            if job is None or job.attempt != one.job.attempt or not is_counted(job):
                continue  # somebody was quicker
            if one.due and policies.get(job.spec.tenant) != one.policy:
                continue  # the next look goes by the policy of now
            if one.due:
                told |= self._end(tx, changes, job, one.idle)
                continue
            stored = changes.update(tx, replace(job, idle=one.stored))
            began = job.idle is not None and job.idle.left_s is not None
            counts = one.idle.left_s is not None
            if counts and not began:
                words = _warning(stored, one.idle)
                changes.add_event(tx, job.uid, self._clock(), Step("idle", words))
                told |= self._notices.about_job(tx, stored, NoticeKind.IDLE_JOB, words)
            elif began and not counts and not one.nothing:
                said = msg("it works again: its countdown is over")
                changes.add_event(tx, job.uid, self._clock(), Step("idle", said))
        return told

    def _end(self, tx: Tx, changes: Changes, job: Job, idle: GpuIdle) -> set[str]:
        now, target = self._clock(), Target.SUSPEND if ends_of(job) == "suspend" else Target.CANCEL
        words = _ended(job, idle)
        aimed = replace(job, target=target, reason=Reason.IDLE_GPUS.value, message=words)
        stored = store_aimed(tx, changes, job, aimed, now=now, message=words)
        detail = {"user": job.spec.user, "message": words}
        action = "job.suspend" if target is Target.SUSPEND else "job.cancel"
        tx.audit.add(now, THE_HUB, action, job.title, tenant=job.spec.tenant, detail=detail)
        return self._notices.about_job(tx, stored, NoticeKind.IDLE_JOB, words)


def _judged(work: AttemptWork) -> tuple[bool | None, bool]:
    values = work.gpu, work.cores
    reported = {"gpu_reported": work.gpu_reported, "cores_reported": work.cores_reported}
    return idle_gpus.works(*values, **reported), idle_gpus.claims_work(*values, **reported)


def is_counted(job: Job) -> bool:
    """Return whether a job is one that may end for unused GPUs: it runs, nobody has asked it to end, and it is not an app's."""
    return (
        job.phase is Phase.RUNNING
        and job.target is Target.RUN
        and job.spec.per_worker.gpu > 0
        and job.spec.replica is None
    )


def check_counted(job: Job) -> None:
    """Raise `WrongState` for a job that unused GPUs cannot end."""
    if job.spec.replica is not None or not job.spec.per_worker.gpu:
        raise Refused(
            Reason.WRONG_STATE,
            msg("job {name} has no GPUs that could be unused, so nothing ends it for that", name=job.title),
        )
    if not is_counted(job):
        raise Refused(
            Reason.WRONG_STATE,
            msg(
                "job {name} is {phase}; only a running job can be kept",
                name=job.title,
                phase=PHASES[job.phase] if job.target is Target.RUN else msg("being stopped"),
            ),
        )


def _differs(stored: GpuIdle | None, now: GpuIdle | None) -> bool:
    """Return whether a change is worth a write: each second of a countdown, and some of an idle time."""
    if stored is None or now is None or stored.left_s is not None or now.left_s is not None:
        return stored != now
    if stored.claims is not now.claims:
        return True
    return bool(stored.kept_s) is not bool(now.kept_s) or abs(stored.idle_s - now.idle_s) >= STORED_EVERY_S


def _kept_enough(job: Job, hours: int, most: float) -> Refused:
    left = int(most // HOUR_S)
    if left:
        return Refused(
            Reason.WRONG_STATE,
            msg(
                "job {name} cannot be kept for {hours} h: it was kept before without using its GPUs, and {left} h are left; ask for {left} or fewer",
                name=job.title,
                hours=hours,
                left=left,
            ),
        )
    return Refused(
        Reason.WRONG_STATE,
        msg(
            "job {name} was kept for {most} without using its GPUs, which is all there is; use them, or suspend it and resume it later",
            name=job.title,
            most=Span(idle_gpus.MOST_KEPT_S),
        ),
    )


def _warning(job: Job, idle: GpuIdle) -> Message:
    said: dict[str, Arg] = {
        "time": Span(idle.idle_s),
        "left": Span(idle.left_s or 0.0),
        "tenant": job.spec.tenant,
        "name": job.reference,
    }
    if ends_of(job) == "suspend":
        return msg(
            "It did not use its GPUs for {time} and is suspended in {left}, by the policy of {tenant}. To keep it, use them, or run: mlp keep {name}",
            **said,
        )
    return msg(
        "It did not use its GPUs for {time} and is cancelled in {left}, by the policy of {tenant}. To keep it, use them, or run: mlp keep {name}",
        **said,
    )


def _ended(job: Job, idle: GpuIdle) -> Message:
    said: dict[str, Arg] = {"time": Span(idle.idle_s), "tenant": job.spec.tenant}
    if ends_of(job) == "suspend":
        return msg(
            "suspended: it did not use its GPUs for {time}, and the policy of {tenant} ends that; resume it to continue",
            **said,
        )
    return msg("cancelled: it did not use its GPUs for {time}, and the policy of {tenant} ends that", **said)
