"""Holdings of a hub, present or past, as a scenario: to run again as they were, or with changes.

A `Recording` is made by code that knows the hub. This module is free of clocks and of I/O. Times
are seconds since the recording's origin (the present, or the begin of the window). Earlier
submissions have a negative time.
"""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from mlp_hub.domain.resources import Resources
from mlp_hub.domain.workload.workload import JOB, kind_of
from mlp_hub.scheduler.model.types import (
    CapacityWindow,
    Node,
    PendingWorkload,
    SchedulingPolicy,
    Snapshot,
    TenantQueue,
)
from mlp_hub.simulate.forms import PRIORITIES
from mlp_hub.simulate.scenario import JobLine, Scenario
from mlp_language.message import Message, Span, msg, msgs

DEFAULT_LENGTH_S = 3600.0
"""How long a job is taken to run of which nothing tells, and a notebook server that waits to hold its room."""

_NUMBERED = re.compile(r"[-@0-9]+$")


@dataclass(frozen=True, slots=True)
class RecordedJob:
    """A job of a hub. `length` is how long an attempt takes with all its workers, as known or guessed (`told_by`)."""

    name: str
    user: str
    tenant: str
    per_worker: Resources
    submitted: float
    length: float
    # record, workers (the record of how many it had when), widest (that is not known: the most, all the time), limit,
    # like (jobs of like names that ended), default, server (nobody knows how long somebody works)
    told_by: str = "record"
    workers_min: int = 1
    workers_max: int = 1
    ps: int = 0
    priority: str = "normal"
    gpu_kind: str | None = None
    time_limit: float | None = None
    runtime: str = "plain"
    topology: str | None = None
    checkpoint_every: float | None = None
    started: float | None = None  # it runs since then, on `placement`
    placement: tuple[str, ...] = ()
    waited: float | None = None  # what it really waited, all times together, where that is over
    ran: float | None = None  # how long it really ran, with however many workers, where that is over
    attempts: int = 1  # in which it really ran; `length` is that of all together
    since: float | None = None  # its present wait began then, where that is later than its age says
    kind: str = JOB  # or another of `domain.workload.workload`, which waits

    @property
    def full_name(self) -> str:
        """Return a name that no other job of the hub has."""
        return f"{self.user}/{self.name}"


class Shape(Protocol):
    """Request of a job, as the scheduling core has it for a waiting one, and the store for an ended one."""

    @property
    def per_worker(self) -> Resources: ...
    @property
    def workers_min(self) -> int: ...
    @property
    def workers_max(self) -> int: ...
    @property
    def ps(self) -> int: ...
    @property
    def gpu_kind(self) -> str | None: ...
    @property
    def topology(self) -> str | None: ...
    @property
    def checkpoint_every(self) -> float | None: ...


def recorded_job(
    shape: Shape,
    *,
    name: str,
    user: str,
    tenant: str,
    submitted: float,
    length: float,
    priority: str,
    time_limit: float | None,
    told_by: str = "record",
    runtime: str = "plain",
    waited: float | None = None,
    ran: float | None = None,
    attempts: int = 1,
    since: float | None = None,
) -> RecordedJob:
    """Record a job of this shape; see `RecordedJob` for the meaning of the rest."""
    every = shape.checkpoint_every
    return RecordedJob(
        name=name,
        user=user,
        tenant=tenant,
        per_worker=shape.per_worker,
        submitted=submitted,
        length=length,
        told_by=told_by,
        workers_min=shape.workers_min,
        workers_max=shape.workers_max,
        ps=shape.ps,
        priority=priority,
        gpu_kind=shape.gpu_kind,
        time_limit=time_limit,
        runtime=runtime,
        topology=shape.topology,
        checkpoint_every=None if every is None else float(every),
        waited=waited,
        ran=ran,
        attempts=attempts,
        since=since,
    )


@dataclass(frozen=True, slots=True)
class Recording:
    """All that a run needs to know of a hub; `now`: it continues from the present, otherwise a past window."""

    now: bool
    nodes: tuple[Node, ...]
    tenants: tuple[TenantQueue, ...]
    jobs: tuple[RecordedJob, ...]
    policy: SchedulingPolicy = field(default_factory=SchedulingPolicy)
    left_out: Mapping[str, int] = field(
        default_factory=dict
    )  # how many jobs were not taken in, by a key of `LEFT_OUT`
    bookings: tuple[CapacityWindow, ...] = ()  # in seconds from its begin


class Lengths:
    """Guesses how long a job runs by those of like names that ended: of its user, else of anybody; the median."""

    def __init__(self, ended: Iterable[tuple[str, str, float]]) -> None:
        """Take (user, job name, seconds) of jobs that ended well."""
        self._by_user: dict[tuple[str, str], list[float]] = {}
        self._by_name: dict[str, list[float]] = {}
        for user, name, seconds in ended:
            stem = stem_of(name)
            self._by_user.setdefault((user, stem), []).append(seconds)
            self._by_name.setdefault(stem, []).append(seconds)

    def length_of(self, user: str, name: str, time_limit: float | None) -> tuple[float, str]:
        """Return (seconds, what told them: limit, like, default)."""
        if time_limit is not None:
            return time_limit, "limit"
        stem = stem_of(name)
        known = self._by_user.get((user, stem)) or self._by_name.get(stem)
        if known:
            return max(statistics.median(known), 1.0), "like"
        return DEFAULT_LENGTH_S, "default"


def stem_of(name: str) -> str:
    """Return a job's name without the number, date or run at its end: `digits-12` and `digits-3@2` are alike."""
    return _NUMBERED.sub("", name) or name


def outlived(length: float, ran: float) -> float:
    """Return the length of a job that runs for `ran` seconds already: past its guess it is taken to be half through."""
    return length if length > ran else max(2.0 * ran, 1.0)


_CLASS = {value: name for name, value in PRIORITIES.items()}
_SOON = 1.0  # seconds until what is being stopped has gone


def present_of(snapshot: Snapshot, now: float, lengths: Lengths, left_out: Mapping[str, int]) -> Recording:
    """Return the recording of a hub's present state."""
    jobs = []
    for running in snapshot.running:
        ran = max(now - running.started_at, 0.0)
        length, told_by = lengths.length_of(running.job.user, running.job.name, running.job.time_limit)
        length = ran + _SOON if running.stopping else outlived(length, ran)
        job = _present(running.job, now, length, told_by)
        jobs.append(replace(job, started=-ran, placement=running.placement))
    for waiting in snapshot.waiting:
        if waiting.kind == JOB:
            length, told_by = lengths.length_of(waiting.user, waiting.name, waiting.time_limit)
            jobs.append(_present(waiting, now, length, told_by))
        else:
            asked = _present(waiting, now, DEFAULT_LENGTH_S, "server")
            jobs.append(replace(asked, name=_title_of_request(waiting), kind=waiting.kind))
    booked = tuple(replace(b, start=b.start - now, end=b.end - now) for b in snapshot.bookings)
    return Recording(
        True, snapshot.nodes, snapshot.tenants, tuple(jobs), snapshot.policy, dict(left_out), booked
    )


def _title_of_request(waiting: PendingWorkload) -> str:
    """Return a name that no job can have, since it has a blank."""
    return f"{waiting.name} {waiting.kind} {waiting.uid.split('/', 2)[-1]}".strip()


def past_of(snapshot: Snapshot, jobs: Iterable[RecordedJob], left_out: Mapping[str, int]) -> Recording:
    """Return the recording of jobs that ended, on the nodes and tenants of today, with no usage remembered."""
    tenants = tuple(replace(t, decayed_usage=0.0, member_usage=()) for t in snapshot.tenants)
    known = {t.name for t in tenants}
    kept = []
    counts = dict(left_out)
    for job in jobs:
        if job.tenant in known:
            kept.append(job)
        else:
            counts["gone"] = counts.get("gone", 0) + 1
    return Recording(False, snapshot.nodes, tenants, tuple(kept), snapshot.policy, counts)


LEFT_OUT: Mapping[str, Message] = {
    "suspended": msg("Left out: {n} suspended, waiting for their users."),
    "unstarted": msg("Left out: {n} that never started."),
    "open": msg("Left out: {n} that have not ended."),
    "older": msg("Left out: all except the newest {n}, which is the limit here."),
    "gone": msg("Left out: {n} of teams that no longer exist."),
}
"""Reasons why jobs of the hub are not part of a recording."""


def _present(job: PendingWorkload, now: float, length: float, told_by: str) -> RecordedJob:
    return recorded_job(
        job,
        name=job.name,
        user=job.user,
        tenant=job.tenant,
        submitted=min(job.queued_at - now, 0.0),
        since=None if job.requeued_at is None else min(job.requeued_at - now, 0.0),
        length=length,
        told_by=told_by,
        priority=_CLASS.get(job.priority, "normal"),
        time_limit=job.time_limit,
    )


def changed_recording(
    recording: Recording,
    *,
    tenants: Iterable[TenantQueue] = (),
    added: Iterable[Node] = (),
    removed: Collection[str] = (),
    down: Collection[str] = (),
    policy: SchedulingPolicy | None = None,
) -> Recording:
    """Return the same work on other tenants (replaced or added by name), nodes and policy.

    A job that runs on a node that is gone or down is queued again: with nothing kept, or what its checkpoints kept.
    """
    by_name = {t.name: t for t in recording.tenants} | {t.name: t for t in tenants}
    nodes = [replace(n, up=n.up and n.name not in down) for n in recording.nodes if n.name not in removed]
    gone = {*removed, *down}
    jobs = tuple(_evicted(j) if gone.intersection(j.placement) else j for j in recording.jobs)
    return replace(
        recording,
        tenants=tuple(by_name.values()),
        nodes=(*nodes, *added),
        jobs=jobs,
        policy=policy or recording.policy,
    )


def _evicted(job: RecordedJob) -> RecordedJob:
    ran = -(job.started or 0.0)
    kept = ran - ran % job.checkpoint_every if job.checkpoint_every else 0.0
    return replace(job, started=None, placement=(), length=max(job.length - kept, 1.0))


def scenario_of(recording: Recording) -> Scenario:
    """Return the scenario of a recording; running jobs are lines too, and `continued` starts them in place."""
    tenants = {t.name for t in recording.tenants}
    lines = tuple(line_of(job) for job in recording.jobs if job.tenant in tenants)
    return Scenario(
        recording.policy,
        recording.nodes,
        recording.tenants,
        dict(PRIORITIES),
        lines,
        bookings=recording.bookings,
    )


def line_of(job: RecordedJob) -> JobLine:
    """Return the job as a line of a scenario."""
    return JobLine(
        name=job.full_name,
        tenant=job.tenant,
        user=job.user,
        submit=max(job.submitted, 0.0),
        duration=job.length,
        # a parameter server is one more rank of the same size
        workers_min=job.workers_min + job.ps,
        workers_max=job.workers_max + job.ps,
        per_worker=job.per_worker,
        gpu_kind=job.gpu_kind,
        priority=job.priority,
        time_limit=job.time_limit,
        runtime=job.runtime,
        topology=job.topology,
        preemptible=job.kind == JOB or kind_of(job.kind).preemptible,
        checkpoint_every=job.checkpoint_every,
    )


def _guessed(guesses: Mapping[str, int]) -> list[Message]:
    """Return the messages about the number of guessed lengths, by their source."""
    said: list[Message] = []
    if n := guesses.get("limit", 0):
        said.append(
            msgs(
                "1 job counts as if it ran until its time limit.",
                "{n} jobs count as if they ran until their time limits.",
                n=n,
            )
        )
    if n := guesses.get("like", 0):
        said.append(
            msgs(
                "1 job counts with the median run time of jobs with similar names.",
                "{n} jobs count with the median run time of jobs with similar names.",
                n=n,
            )
        )
    if n := guesses.get("default", 0):
        said.append(
            msgs(
                "1 job counts with a run time of {span}, because its actual run time is not known.",
                "{n} jobs count with a run time of {span}, because their actual run times are not known.",
                n=n,
                span=Span(DEFAULT_LENGTH_S),
            )
        )
    if n := guesses.get("server", 0):
        said.append(
            msgs(
                "1 waiting notebook server counts as if it held its resources for {span}.",
                "{n} waiting notebook servers count as if they held their resources for {span}.",
                n=n,
                span=Span(DEFAULT_LENGTH_S),
            )
        )
    return said


def remarks(recording: Recording) -> list[Message]:
    """Say in sentences what had to be assumed and what cannot be told."""
    said = _guessed(Counter(j.told_by for j in recording.jobs))
    if n := sum(j.attempts > 1 for j in recording.jobs):
        said.append(
            msgs(
                "1 job ran in several attempts. Its run time is the sum of all attempts, including repeated work.",
                "{n} jobs ran in several attempts. Their run times are the sums of all attempts, including repeated work.",
                n=n,
            )
        )
    if n := sum(j.told_by == "workers" and j.ran is not None and j.length < j.ran for j in recording.jobs):
        said.append(
            msgs(
                "1 elastic job had fewer workers than its maximum for a while. Its run time counts as that of the same worker-seconds with all workers.",
                "{n} elastic jobs had fewer workers than their maximum for a while. Their run times count as those of the same worker-seconds with all workers.",
                n=n,
            )
        )
    if n := sum(j.told_by == "widest" for j in recording.jobs):
        said.append(
            msgs(
                "1 elastic job counts with its maximum of workers all the time, because the actual number is not known.",
                "{n} elastic jobs count with their maximum of workers all the time, because the actual numbers are not known.",
                n=n,
            )
        )
    if recording.now:
        said.append(msg("Jobs that are submitted from now on are not known and not included."))
    else:
        said.append(msg("Nodes, quotas and policy are those of today; earlier ones are not recorded."))
    if any(not t.used.is_zero for t in recording.tenants):
        said.append(msg("Notebooks and apps count as if they held their present amounts all the time."))
    if any(j.ps for j in recording.jobs):
        said.append(msg("Parameter servers count as workers."))
    said += [Message(LEFT_OUT[why].template, {"n": n}) for why, n in recording.left_out.items() if n]
    return said
