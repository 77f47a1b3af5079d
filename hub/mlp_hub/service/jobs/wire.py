"""Jobs, their timelines and answers, to and from their wire form."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Literal

import msgspec

from mlp_api import types as api_types
from mlp_api.jobs import jobs as jobs_api
from mlp_api.jobs.earlier_runs import MemoryOfEarlierRuns
from mlp_api.jobs.idle_jobs import JobIdle
from mlp_api.jobs.jobs import Sureness
from mlp_api.localized import Detail, Text
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.facts import LABELS, Fact
from mlp_hub.domain.jobs.job import Failure, Job, JobSpec, Phase, RankStatus
from mlp_hub.domain.resources import Resources, milli, units
from mlp_hub.domain.runtime.environment import EnvironmentUse
from mlp_hub.domain.runtime.runtime import default_runtime
from mlp_hub.domain.stored.data import parse as parse_data
from mlp_hub.domain.workload.ledger import ResourceRequest
from mlp_hub.domain.workload.workload import APP, JOB, KINDS
from mlp_hub.executors.base import LogChunk
from mlp_hub.scheduler.model.outlook import Outlook
from mlp_hub.scheduler.model.types import Verdict, Wait, Why
from mlp_hub.service.jobs.forecasts import forecast_to
from mlp_hub.service.jobs.history import RecordedStop
from mlp_hub.service.jobs.stages import StagedAttempt
from mlp_hub.service.lifecycle.messages import remedy
from mlp_hub.service.state.frames import Shared
from mlp_hub.service.support.units import maybe_when, pairs_from, when
from mlp_hub.store.records import JobEvent
from mlp_language.message import NOTHING, Message, msg

AS_ASKED = tuple(
    f.name
    for f in fields(JobSpec)
    if f.name in jobs_api.JobCreate.__struct_fields__
    and f.name not in {"name", "tenant", "runtime", "entry", "args", "env", "data"}
)
"""Fields of a job that are the same here as on the wire."""


def spec_of(asked: jobs_api.JobCreate, user: str) -> JobSpec:
    """Return the requested job as the request has it: nothing that it names was looked up, and its tenant may be empty.

    Its memory is an amount. Raises `Refused` for what a specification cannot hold.
    """
    if not isinstance(asked.ram, int):
        raise TypeError("the amount of auto is chosen before")
    low, high = workers_of(asked.workers)
    if asked.gpu and not milli(asked.gpu):
        raise Refused(
            Reason.INVALID,
            msg(
                "gpu is {gpu}, but the smallest share is 0.001; ask for 0.001 or more, or for 0",
                gpu=f"{asked.gpu:g}",
            ),
        )
    return JobSpec(
        name=asked.name,
        user=user,
        tenant=asked.tenant or "",
        runtime=asked.runtime or default_runtime(high, asked.ps),
        per_worker=Resources(
            cpu=milli(asked.cpu),
            gpu=milli(asked.gpu),
            ram=asked.ram,
            amounts=pairs_from("amounts", asked.amounts),
        ),
        workers_min=low,
        workers_max=high,
        entry=asked.entry,
        args=tuple(asked.args),
        env=dict(asked.env),
        data=tuple(parse_data(each, user) for each in asked.data),
        environment=None if asked.env_name is None else EnvironmentUse(asked.env_name),
        **{name: getattr(asked, name) for name in AS_ASKED},
    )


def create_of(spec: JobSpec) -> jobs_api.JobCreate:
    """Return the request that would submit the same again."""
    return jobs_api.JobCreate(name=spec.name, **_asked_of(spec))


def _asked_of(spec: JobSpec) -> dict[str, Any]:
    """Return what was asked for, but the name, as a request has it and an answer repeats it."""
    return {
        "tenant": spec.tenant,
        "runtime": spec.runtime,
        "entry": spec.entry,
        "args": list(spec.args),
        "env": dict(spec.env),
        "data": [use.asked(spec.user) for use in spec.data],
        "env_name": None if spec.environment is None else spec.environment.name,
        "workers": workers_to(spec),
        "cpu": units(spec.per_worker.cpu),
        "gpu": units(spec.per_worker.gpu),
        "ram": spec.per_worker.ram,
        "amounts": dict(spec.per_worker.amounts),
        **{name: getattr(spec, name) for name in AS_ASKED},
    }


def workers_of(workers: int | str) -> tuple[int, int]:
    """Return (least, most) of a number or a range `MIN:MAX`."""
    if isinstance(workers, int):
        return workers, workers
    low, _, high = workers.partition(":")
    return int(low), int(high or low)


def workers_to(spec: JobSpec) -> int | str:
    """Return the number of workers, or the range, as it was asked for."""
    low, high = spec.workers_min, spec.workers_max
    return low if low == high else f"{low}:{high}"


def place_of(verdict: Verdict, position: int | None) -> int | None:
    """Return the place in its queue of a job that waits for this reason: of one that can never start nothing is told."""
    return None if verdict.reason is Reason.EXCEEDS_MAX_QUOTA else position


def job_to(
    job: Job,
    waiting: Wait | None = None,
    expected_start: float | None = None,
    outlook: Outlook | None = None,
    memory: MemoryOfEarlierRuns | None = None,
) -> jobs_api.Job:
    """Return a job; `waiting` is the last scheduling cycle's decision about it, `outlook` its forecast by earlier runs."""
    spec = job.spec
    reason, message, position = job.reason, job.message, None
    if job.phase is Phase.QUEUED and waiting is not None:
        reason, message = waiting.verdict.reason.value, waiting.verdict.headline
        position = place_of(waiting.verdict, waiting.position)
    progress_from, progress_since = job.progress_from or 0, job.progress_since
    if not job.restarts:
        progress_since = job.started_at
    return jobs_api.Job(
        name=spec.name,
        run=job.run,
        user=spec.user,
        **_asked_of(spec),
        sweep=None if spec.trial is None else spec.trial.name,
        trial=None if spec.trial is None else spec.trial.number,
        uid=job.uid,
        state=job.state.value,
        phase=job.phase.value,
        reason=reason,
        message=Text(message),
        detail=Detail(message),
        progress=job.progress,
        restarts=job.restarts,
        position=position,
        expected_start=maybe_when(expected_start),
        forecast=forecast_to(outlook),
        ranks=[rank_to(r) for r in job.ranks],
        failure=None if job.failure is None else failure_to(job.failure, spec.tenant),
        submitted_at=when(job.submitted_at),
        queued_at=maybe_when(job.queued_at),
        admitted_at=maybe_when(job.admitted_at),
        started_at=maybe_when(job.started_at),
        finished_at=maybe_when(job.finished_at),
        waiting_since=maybe_when(job.waiting_since),
        waited_s=round(job.waited, 3),
        ran_s=round(job.ran_in_all, 3),
        progress_from=progress_from,
        progress_since=maybe_when(progress_since),
        put_first=job.steered.place is not None,
        version=job.version,
        source=None if spec.brought is None else spec.brought.title,
        env_lock=None if spec.environment is None else spec.environment.lock or None,
        memory=memory,
        idle=idle_to(job),
        note=job.note,
    )


def ends_of(job: Job) -> Literal["suspend", "cancel"]:
    """Return what the end of a countdown of unused GPUs does: a sweep would wait for a suspended trial for ever."""
    return "suspend" if job.spec.trial is None else "cancel"


def idle_to(job: Job) -> JobIdle | None:
    """Return the unused GPUs of a job, None where it uses them, or nothing is known."""
    idle = job.idle
    if idle is None:
        return None
    return JobIdle(
        idle_s=idle.idle_s, left_s=idle.left_s, kept_s=idle.kept_s, ends=ends_of(job), claims=idle.claims
    )


def rank_to(rank: RankStatus) -> jobs_api.Rank:
    """Return one process of a job."""
    return jobs_api.Rank(
        rank=rank.rank,
        role=rank.role,
        node=rank.node,
        state=rank.state,
        exit_code=rank.exit_code,
        signal=rank.signal,
        cpu=rank.cpu,
        ram=rank.ram,
        cpu_mean=rank.cpu_mean,
        cpu_peak=rank.cpu_peak,
        ram_mean=rank.ram_mean,
        ram_peak=rank.ram_peak,
        reported=rank.reported,
    )


def failure_to(failure: Failure, tenant: str) -> jobs_api.Failure:
    """Return what went wrong first in a job of this tenant."""
    return jobs_api.Failure(
        cause=failure.cause.value,
        rank=failure.rank,
        exit_code=failure.exit_code,
        signal=failure.signal,
        message=Text(failure.localized_message),
        tail=failure.tail,
        hint=None if failure.hint is None else failure.hint.value,
        remedy=Text(NOTHING if failure.hint is None else remedy(failure.hint, tenant, failure.hint_limit)),
    )


def verdict_to(verdict: Verdict) -> jobs_api.Verdict:
    """Return a typed reason."""
    return jobs_api.Verdict(
        reason=verdict.reason.value,
        message=Text(verdict.headline),
        detail=Detail(verdict.headline),
        facts=[fact_to(f) for f in verdict.facts],
        numbers=dict(verdict.numbers),
    )


def fact_to(fact: Fact) -> api_types.Fact:
    """Return a row of the table below a reason."""
    who = msg("{who}", who=fact.who) if fact.who else NOTHING
    label = LABELS[fact.key]
    return api_types.Fact(
        key=fact.key,
        dimension=fact.dimension or None,
        label=Text(label),
        value=Text(msg("{value}", value=fact.value)),
        number=fact.number,
        who=Text(who),
        detail=Detail(
            msg("{value} {who}", value=fact.value, who=who) if who else msg("{value}", value=fact.value)
        ),
    )


def why_to(job: Job, why: Why, stopped: jobs_api.Stopped | None = None) -> jobs_api.Why:
    """Return why a job waits and until when, and what became of its last attempt."""
    return jobs_api.Why(
        job=job.spec.name,
        run=job.run,
        phase=job.phase.value,
        reasons=[verdict_to(v) for v in why.reasons],
        position=place_of(why.reasons[0], why.position) if why.reasons else why.position,
        queue_length=why.queue_length,
        expected_start=maybe_when(why.expected_start),
        expected_because=Text(why.expected_because),
        forecast=forecast_to(why.outlook),
        how_sure=msgspec.convert(why.how_sure, Sureness),
        sure_because=Text(why.sure_because),
        would_start_now=list(why.would_start_now),
        cut_short=Text(why.cut_short),
        stopped=stopped,
    )


def offer_to(
    spec: JobSpec,
    placement: dict[str, int],
    why: Why,
    grace_s: float,
    network: str,
    *,
    cost: jobs_api.OfferedCost | None,
    memory: MemoryOfEarlierRuns | None = None,
    ram_because: Message = NOTHING,
) -> jobs_api.Offer:
    """Return what a job would get: ranks by node, none where it would wait, and then why.

    `grace_s` is what those have to end who are stopped for it; `network` what jobs of its tenant have. `memory` is what
    earlier runs used, `ram_because` the reason of an amount that was chosen by it.
    """
    whole = spec.per_worker * (sum(placement.values()) or spec.ranks_min)
    return jobs_api.Offer(
        fits_now=bool(placement),
        expected_start=maybe_when(why.expected_start),
        placement=placement,
        cpu=units(whole.cpu),
        gpu=units(whole.gpu),
        ram=whole.ram,
        amounts=dict(whole.amounts),
        reasons=[verdict_to(v) for v in why.reasons],
        would_start_now=list(why.would_start_now),
        gives_way=[Text(m) for m in why.gives_way],
        grace=grace_s if why.gives_way else 0.0,
        expected_because=Text(why.expected_because),
        forecast=forecast_to(why.outlook),
        tenant=spec.tenant,
        network=network,
        memory=memory,
        ram_because=Text(ram_because),
        cost=cost,
    )


def preview_to(job: Job, offer: jobs_api.Offer) -> jobs_api.Preview:
    """Return a preview of a job that is not stored, with the resources that it would get."""
    return jobs_api.Preview(
        name=job.spec.name,
        run=job.run,
        runtime=job.spec.runtime,
        ranks_min=job.spec.ranks_min,
        ranks_max=job.spec.ranks_max,
        offer=offer,
    )


def stopped_to(stop: RecordedStop, kept: Message, checkpoint: float | None) -> jobs_api.Stopped:
    """Return how the last attempt was stopped, and what of its work is kept."""
    return jobs_api.Stopped(
        kind=msgspec.convert(stop.kind, Literal["preempted", "suspended", "requeued"]),
        time=when(stop.time),
        message=Text(stop.message),
        detail=Detail(stop.message),
        kept=Text(kept),
        checkpoint_at=maybe_when(checkpoint),
    )


def event_to(event: JobEvent) -> jobs_api.Event:
    """Return one step of a timeline."""
    return jobs_api.Event(
        seq=event.seq,
        time=when(event.time),
        kind=event.kind,
        message=Text(event.message),
        detail=Detail(event.message),
        reason=event.reason,
    )


def attempt_to(attempt: StagedAttempt) -> jobs_api.JobAttempt:
    """Return an attempt with its stages."""
    return jobs_api.JobAttempt(
        attempt=attempt.number,
        stages=[
            jobs_api.AttemptStage(
                stage=msgspec.convert(stage.value, jobs_api.StageName),
                time=when(at),
                seconds=None if seconds is None else round(seconds, 3),
            )
            for stage, at, seconds in attempt.in_order()
        ],
        ended=attempt.ended,
        ended_at=maybe_when(attempt.ended_at),
    )


def queue_to(
    job: Job,
    waiting: Wait | None,
    expected: tuple[float | None, Message] | None,
    outlook: Outlook | None = None,
) -> jobs_api.QueueEntry:
    """Return a job as the cluster's queue shows it; the amounts are those of all its ranks."""
    at, because = expected or (None, NOTHING)
    ranks = len(job.placement) or job.spec.ranks_min
    whole = job.spec.per_worker * ranks
    queued = job.phase is Phase.QUEUED and waiting is not None
    said = waiting.verdict.headline if queued and waiting else job.message
    return jobs_api.QueueEntry(
        kind=JOB if job.spec.replica is None else APP,
        user=job.spec.user,
        name=job.spec.name if job.spec.replica is None else job.spec.replica.name,
        run=job.run if job.spec.replica is None else 0,
        tenant=job.spec.tenant,
        phase=job.phase.value,
        priority=job.spec.priority,
        position=place_of(waiting.verdict, waiting.position) if queued and waiting else None,
        reason=waiting.verdict.reason.value if queued and waiting else job.reason,
        message=Text(said),
        detail=Detail(said),
        cpu=units(whole.cpu),
        gpu=units(whole.gpu),
        ram=whole.ram,
        amounts=dict(whole.amounts),
        submitted_at=when(job.submitted_at),
        waiting_since=maybe_when(job.waiting_since),
        waited_s=round(job.waited, 3),
        ran_s=round(job.ran_in_all, 3),
        started_at=maybe_when(job.started_at),
        expected_start=maybe_when(at),
        expected_because=Text(because),
        forecast=forecast_to(outlook),
        put_first=job.steered.place is not None,
        facts=[],
        replica=job.spec.slot,
    )


def pending_to(
    request: ResourceRequest,
    waiting: Wait | None,
    expected: tuple[float | None, Message] | None,
    outlook: Outlook | None = None,
) -> jobs_api.QueueEntry:
    """Return a request that waits to be admitted, as that of a notebook server, as the cluster's queue shows it."""
    at, because = expected or (None, NOTHING)
    kind, amount = KINDS[request.applier], request.amount
    verdict = None if waiting is None else waiting.verdict
    said = NOTHING if verdict is None else verdict.headline
    return jobs_api.QueueEntry(
        kind=kind.name,
        user=request.user,
        name=request.id.partition("/")[2],
        run=0,
        tenant=request.tenant,
        phase=Phase.QUEUED.value,
        priority=kind.priority,
        position=None if waiting is None else place_of(waiting.verdict, waiting.position),
        reason=None if verdict is None else verdict.reason.value,
        message=Text(said),
        detail=Detail(said),
        cpu=units(amount.cpu),
        gpu=units(amount.gpu),
        ram=amount.ram,
        amounts=dict(amount.amounts),
        submitted_at=when(request.created_at),
        waiting_since=when(request.created_at),
        waited_s=0.0,
        ran_s=0.0,
        started_at=None,
        expected_start=maybe_when(at),
        expected_because=Text(because),
        forecast=forecast_to(outlook),
        put_first=False,
        facts=[] if verdict is None else [fact_to(fact) for fact in verdict.facts],
    )


def log_frame(chunk: LogChunk) -> Shared:
    """Return log lines as the stream shows them."""
    return Shared(
        type="log",
        rank=chunk.rank,
        lines=[
            {"time": x.time, "stream": x.stream, "text": x.text, **({"partial": True} if x.partial else {})}
            for x in chunk.lines
        ],
        offset=chunk.offset,
        dropped=chunk.dropped,
        dropped_lines=chunk.dropped_lines,
    )
