"""Jobs, their timelines and answers, to and from what crosses the wire."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from mlp_api import jobs as jobs_api
from mlp_api.jobs import Sureness
from mlp_hub.domain.errors import Reason
from mlp_hub.domain.job import Failure, Job, JobSpec, Phase, RankStatus
from mlp_hub.domain.resources import Resources, milli, units
from mlp_hub.executors.base import LogChunk
from mlp_hub.scheduler.model import Verdict, Wait, Why
from mlp_hub.service.stops import Stop, kept_words
from mlp_hub.service.wire import maybe_when, when
from mlp_hub.store.records import JobEvent


def spec_of(asked: jobs_api.JobCreate, user: str, tenant: str, runtime: str, entry: str | None) -> JobSpec:
    """Return what was submitted, with what was left out filled in."""
    low, high = workers_of(asked.workers)
    return JobSpec(
        name=asked.name,
        user=user,
        tenant=tenant,
        runtime=runtime,
        per_worker=Resources(cpu=milli(asked.cpu), gpu=milli(asked.gpu), ram=asked.ram),
        workers_min=low,
        workers_max=high,
        ps=asked.ps,
        entry=entry,
        code=asked.code,
        args=tuple(asked.args),
        env=dict(asked.env),
        gpu_kind=asked.gpu_kind,
        priority=asked.priority,
        time_limit=asked.time_limit,
        retries=asked.retries,
        checkpoint_every=asked.checkpoint_every,
        topology=asked.topology,
    )


def create_of(spec: JobSpec, name: str) -> jobs_api.JobCreate:
    """Return the request that would submit the same again under another name."""
    return jobs_api.JobCreate(name=name, **_asked_of(spec))


def _asked_of(spec: JobSpec) -> dict[str, Any]:
    """Return what was asked for, but the name, as a request has it and an answer repeats it."""
    return {
        "tenant": spec.tenant,
        "runtime": spec.runtime,
        "entry": spec.entry,
        "code": spec.code,
        "args": list(spec.args),
        "env": dict(spec.env),
        "workers": workers_to(spec),
        "ps": spec.ps,
        "cpu": units(spec.per_worker.cpu),
        "gpu": units(spec.per_worker.gpu),
        "gpu_kind": spec.gpu_kind,
        "ram": spec.per_worker.ram,
        "priority": spec.priority,
        "time_limit": spec.time_limit,
        "retries": spec.retries,
        "checkpoint_every": spec.checkpoint_every,
        "topology": spec.topology,
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


def job_to(job: Job, waiting: Wait | None = None, expected_start: float | None = None) -> jobs_api.Job:
    """Return a job; `waiting` is what the last scheduling cycle said of it."""
    spec = job.spec
    reason, message, position = job.reason, job.message, None
    if job.phase is Phase.QUEUED and waiting is not None:
        reason, message = waiting.verdict.reason.value, waiting.verdict.message
        position = place_of(waiting.verdict, waiting.position)
    progress_from, progress_since = job.progress_from or 0, job.progress_since
    if not job.restarts:
        progress_since = job.started_at
    return jobs_api.Job(
        name=spec.name,
        user=spec.user,
        **_asked_of(spec),
        uid=job.uid,
        state=job.state.value,
        phase=job.phase.value,
        reason=reason,
        message=message,
        progress=job.progress,
        restarts=job.restarts,
        position=position,
        expected_start=maybe_when(expected_start),
        ranks=[rank_to(r) for r in job.ranks],
        failure=None if job.failure is None else failure_to(job.failure),
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
        version=job.version,
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
    )


def failure_to(failure: Failure) -> jobs_api.Failure:
    """Return what went wrong first."""
    return jobs_api.Failure(
        cause=failure.cause.value,
        rank=failure.rank,
        exit_code=failure.exit_code,
        signal=failure.signal,
        message=failure.message,
        tail=failure.tail,
    )


def verdict_to(verdict: Verdict) -> jobs_api.Verdict:
    """Return a typed reason."""
    return jobs_api.Verdict(
        reason=verdict.reason.value, message=verdict.message, numbers=dict(verdict.numbers)
    )


def why_to(job: Job, why: Why, stopped: jobs_api.Stopped | None = None) -> jobs_api.Why:
    """Return why a job waits and until when, and what became of its last attempt."""
    return jobs_api.Why(
        job=job.spec.name,
        phase=job.phase.value,
        reasons=[verdict_to(v) for v in why.reasons],
        position=place_of(why.reasons[0], why.position) if why.reasons else why.position,
        queue_length=why.queue_length,
        expected_start=maybe_when(why.expected_start),
        expected_because=why.expected_because,
        how_sure=msgspec.convert(why.how_sure, Sureness),
        sure_because=why.sure_because,
        would_start_now=list(why.would_start_now),
        cut_short=why.cut_short,
        stopped=stopped,
    )


def offer_to(spec: JobSpec, placement: dict[str, int], why: Why, grace_s: float) -> jobs_api.Offer:
    """Return what a job would get: ranks by node, none where it would wait, and then why.

    `grace_s` is what those have to end who are stopped for it.
    """
    whole = spec.per_worker * (sum(placement.values()) or spec.ranks_min)
    return jobs_api.Offer(
        fits_now=bool(placement),
        expected_start=maybe_when(why.expected_start),
        placement=placement,
        cpu=units(whole.cpu),
        gpu=units(whole.gpu),
        ram=whole.ram,
        reasons=[verdict_to(v) for v in why.reasons],
        would_start_now=list(why.would_start_now),
        gives_way=list(why.gives_way),
        grace=grace_s if why.gives_way else 0.0,
        expected_because=why.expected_because,
    )


def stopped_to(stop: Stop, checkpoint: float | None) -> jobs_api.Stopped:
    """Return how the last attempt was stopped, and what of its work is kept."""
    return jobs_api.Stopped(
        kind=msgspec.convert(stop.kind, Literal["preempted", "suspended", "requeued"]),
        time=when(stop.time),
        message=stop.message,
        kept=kept_words(stop, checkpoint),
        checkpoint_at=maybe_when(checkpoint),
    )


def event_to(event: JobEvent) -> jobs_api.Event:
    """Return one step of a timeline."""
    return jobs_api.Event(
        seq=event.seq, time=when(event.time), kind=event.kind, message=event.message, reason=event.reason
    )


def queue_to(
    job: Job, waiting: Wait | None, expected: tuple[float | None, str] | None
) -> jobs_api.QueueEntry:
    """Return a job as the cluster's queue shows it; the amounts are those of all its ranks."""
    at, because = expected or (None, "")
    ranks = len(job.placement) or job.spec.ranks_min
    whole = job.spec.per_worker * ranks
    queued = job.phase is Phase.QUEUED and waiting is not None
    return jobs_api.QueueEntry(
        user=job.spec.user,
        name=job.spec.name,
        tenant=job.spec.tenant,
        phase=job.phase.value,
        priority=job.spec.priority,
        position=place_of(waiting.verdict, waiting.position) if queued and waiting else None,
        reason=waiting.verdict.reason.value if queued and waiting else job.reason,
        message=waiting.verdict.message if queued and waiting else job.message,
        cpu=units(whole.cpu),
        gpu=units(whole.gpu),
        ram=whole.ram,
        submitted_at=when(job.submitted_at),
        waiting_since=maybe_when(job.waiting_since),
        waited_s=round(job.waited, 3),
        ran_s=round(job.ran_in_all, 3),
        started_at=maybe_when(job.started_at),
        expected_start=maybe_when(at),
        expected_because=because,
    )


def log_frame(chunk: LogChunk) -> dict[str, object]:
    """Return log lines as the stream shows them."""
    return {
        "type": "log",
        "rank": chunk.rank,
        "lines": [{"time": x.time, "stream": x.stream, "text": x.text} for x in chunk.lines],
        "offset": chunk.offset,
        "dropped": chunk.dropped,
    }
