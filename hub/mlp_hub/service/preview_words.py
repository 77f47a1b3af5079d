"""The sentences of a preview: what changes, and where nothing does, why not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mlp_api import tenants as tenant_api
from mlp_hub.domain.booking import BookedWindow
from mlp_hub.domain.errors import Reason
from mlp_hub.scheduler.model import Verdict, WaitingJob
from mlp_hub.scheduler.words import count, listing, span
from mlp_hub.service import wire
from mlp_hub.service.booking_room import sentence
from mlp_hub.service.preview_ahead import Moved
from mlp_hub.service.refusals import number, unit

MOST_JOBS = 20
"""Jobs of one list of the answer; the sentences count all."""
MOST_MOVED = 3
"""Jobs that would start at another time, of which the times are told."""
FOR_QUOTA = frozenset({Reason.WAITING_FOR_QUOTA, Reason.EXCEEDS_MAX_QUOTA})
"""Reasons of who waits for quota, in vain too."""
WAITS_FOR: Mapping[Reason, str] = {
    Reason.WAITING_FOR_QUOTA: "quota",
    Reason.WAITING_FOR_RESOURCES: "room on the nodes",
    Reason.TOPOLOGY_PLACEMENT_FAILED: "room where the topology asked for wants it",
    Reason.NO_MATCHING_FLAVOR: "a node of the kind asked for",
    Reason.WAITING_FOR_PREEMPTED: "the end of jobs that are being stopped",
    Reason.RESERVED: "room that is kept for others",
    Reason.SUSPENDED: "being resumed",
    Reason.GATED: "being released",
}
"""What jobs wait for, by reason."""


@dataclass(frozen=True, slots=True)
class Over:
    """A tenant that holds more than it may hold then, with all others as they are."""

    tenant: str
    dimension: str
    used: int
    may_hold: int

    def to_wire(self) -> tenant_api.PreviewOver:
        """Return it in the units of the wire."""
        d = self.dimension
        return tenant_api.PreviewOver(
            tenant=self.tenant,
            dimension=d,
            inuse=wire.amount_to(d, self.used),
            may_hold=wire.amount_to(d, self.may_hold),
            above=wire.amount_to(d, self.used - self.may_hold),
        )


@dataclass(frozen=True, slots=True)
class Stop:
    """A running job that would be stopped, or shrunk, for another one."""

    victim: WaitingJob
    winner: WaitingJob
    message: str
    shrunk: bool

    def to_wire(self) -> tenant_api.PreviewStop:
        """Return it for the wire."""
        v, w = self.victim, self.winner
        return tenant_api.PreviewStop(
            user=v.user,
            name=v.name,
            tenant=v.tenant,
            for_user=w.user,
            for_name=w.name,
            for_tenant=w.tenant,
            shrunk=self.shrunk,
            message=self.message,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the core decides on the tenants as they would be, beside what it decides now."""

    tenant: str
    starts: Sequence[WaitingJob]  # of all tenants, that do not start as things are
    grows: Sequence[tuple[WaitingJob, int]]  # elastic jobs, and with how many workers they go on
    stops: Sequence[Stop]
    over: Sequence[Over]
    own: Mapping[tuple[str, str], int | None]  # quota then, by tenant and dimension, of those in `over`
    borrows: Sequence[tuple[str, int]]
    running: int  # jobs of the tenant
    waits: Sequence[tuple[WaitingJob, Verdict]]  # of the tenant
    never: frozenset[str] | set[str]  # uids of those that ask for more than there ever is
    now: Mapping[str, Reason]  # by uid, why they wait as things are
    windows: Sequence[BookedWindow]  # that no longer fit then, or fit again
    since: float  # the present time
    moved: Sequence[Moved]  # waiting jobs of any tenant that are expected at another time
    same: bool  # every job is told the same now and then


def notes(o: Outcome) -> list[tenant_api.PreviewNote]:
    """Say it, the good first; never nothing."""
    found = [*_of_windows(o), *_of_starts(o), *_of_over(o), *_of_stops(o), *_of_moved(o)]
    if not found and o.same and not _gets_quota(o) and not _lost(o):
        found = [_note("idle", _no_change(o))]
    return [*found, *_of_waits(o)]


def _of_windows(o: Outcome) -> Iterator[tenant_api.PreviewNote]:
    for window in o.windows[:MOST_JOBS]:
        text = sentence(window)
        yield _note("good" if window.short is None else "bad", text[0].upper() + text[1:])


def _of_starts(o: Outcome) -> Iterator[tenant_api.PreviewNote]:
    mine = [j for j in o.starts if j.tenant == o.tenant]
    if mine:
        yield _note("good", f"{count(len(mine), 'waiting job')} could start: {_names(mine)}")
    others = [j for j in o.starts if j.tenant != o.tenant]
    if others:
        where = listing(dict.fromkeys(j.tenant for j in others))
        yield _note("good", f"{count(len(others), 'waiting job')} of {where} could start: {_names(others)}")
    if o.grows:
        parts = [f"{job.name} of {job.user} to {count(n, 'worker')}" for job, n in o.grows]
        yield _note("good", f"Could grow: {listing(parts)}")


def _of_over(o: Outcome) -> Iterator[tenant_api.PreviewNote]:
    for over in o.over:
        used = f"{number(over.dimension, over.used)} {unit(over.dimension)}"
        beyond = f"{number(over.dimension, over.used - over.may_hold)} {unit(over.dimension)}"
        own = o.own.get((over.tenant, over.dimension))
        if over.tenant == o.tenant:
            what = "the new quota" if own == over.may_hold else "what it may hold then"
            yield _note("bad", f"{used} in use, {beyond} above {what}")
        elif own is not None and over.used <= own:
            text = f"Tenant {over.tenant} is inside its quota; of the {used} in use there {beyond} would be kept for others"
            yield _note("wait", f"{text}. What runs goes on")
        else:
            yield _note("bad", f"Tenant {over.tenant}: {used} in use, {beyond} above what it may hold then")
    if any(over.tenant == o.tenant for over in o.over):
        goes = "goes" if o.running == 1 else "go"
        kept = f"{count(o.running, 'running job')} {goes} on" if o.running else "What runs goes on"
        yield _note(
            "idle", f"{kept}; the change stops nothing, and nothing new starts until enough is given back"
        )
    elif o.borrows:
        what = listing(f"{number(d, v)} {unit(d)}" for d, v in o.borrows)
        yield _note("wait", f"{what} of what it uses would be borrowed, and can be taken back")


def _of_stops(o: Outcome) -> Iterator[tenant_api.PreviewNote]:
    for s in o.stops[:MOST_JOBS]:
        tenant = "" if s.victim.tenant == o.tenant else f" ({s.victim.tenant})"
        does = "would give up workers" if s.shrunk else "would be stopped and queued again"
        yield _note(
            "bad",
            f"{s.victim.name} of {s.victim.user}{tenant} {does} for {s.winner.name} of {s.winner.user} "
            f"in {s.winner.tenant}",
        )


def _of_moved(o: Outcome) -> Iterator[tenant_api.PreviewNote]:
    for later in (False, True):
        moved = [m for m in o.moved if m.is_later is later]
        if not moved:
            continue
        told = "; ".join(m.words(o.since) for m in moved[:MOST_MOVED])
        more = len(moved) - MOST_MOVED
        rest = f"; and {count(more, 'more job')}" if more > 0 else ""
        jobs = f"{count(len(moved), 'waiting job')} would start {'later' if later else 'sooner'}"
        yield _note("wait" if later else "good", f"{jobs}: {told}{rest}")


def _of_waits(o: Outcome) -> Iterator[tenant_api.PreviewNote]:
    groups: dict[Reason, list[tuple[WaitingJob, Verdict]]] = {}
    for job, verdict in o.waits:
        if job.uid not in o.never:
            groups.setdefault(verdict.reason, []).append((job, verdict))
    for reason, group in groups.items():
        jobs = [job for job, _ in group]
        what = WAITS_FOR.get(reason, reason.value)
        other = [job for job in jobs if o.now.get(job.uid, reason) in FOR_QUOTA and reason not in FOR_QUOTA]
        if other:
            text = (
                f"{count(len(other), 'job')} would have the quota, and wait for {what} then: {_names(other)}"
            )
            yield _note("wait", text)
            jobs = [job for job in jobs if job not in other]
        if not jobs:
            continue
        text = f"{count(len(jobs), 'job')} would still wait for {what}: {_names(jobs)}{_since(o, jobs)}"
        # with the quota in question it is worth its numbers
        if reason is Reason.WAITING_FOR_QUOTA:
            text = f"{text}. Of {jobs[0].name}: {group[0][1].message}"
        yield _note("idle", text)
    never = [job for job, _ in o.waits if job.uid in o.never]
    if never:
        lost = _lost(o)
        for jobs, how in (
            (lost, "never start any more"),
            ([j for j in never if j not in lost], "still never start"),
        ):
            if jobs:
                asks = "it asks" if len(jobs) == 1 else "they ask"
                yield _note("bad", f"{_names(jobs)} could {how}: {asks} for more than the whole quota")


def _lost(o: Outcome) -> list[WaitingJob]:
    """Return the waiting jobs that may start some day as things are, and never then."""
    return [
        job for job, _ in o.waits if job.uid in o.never and o.now.get(job.uid) is not Reason.EXCEEDS_MAX_QUOTA
    ]


def _gets_quota(o: Outcome) -> bool:
    """Whether a job that waits for quota now would wait for something else."""
    return any(v.reason not in FOR_QUOTA and o.now.get(job.uid) in FOR_QUOTA for job, v in o.waits)


def _since(o: Outcome, jobs: Sequence[WaitingJob]) -> str:
    waited = o.since - min(j.waits_since for j in jobs)
    if waited < 60:
        return ""
    return f" (for {span(waited)} now)" if len(jobs) == 1 else f" (the longest for {span(waited)} now)"


def _no_change(o: Outcome) -> str:
    """Say why a change of the tenant changes nothing for any job."""
    if not o.waits:
        runs = (
            "none waits and none runs" if not o.running else "none waits, and what runs is inside the quota"
        )
        return f"No running or waiting job is touched: of {o.tenant} {runs}"
    for_quota = sum(1 for _, v in o.waits if v.reason in FOR_QUOTA)
    if for_quota:
        return f"Nothing changes now: for {count(for_quota, 'job')} that {_s(for_quota, 'wait')} the quota is still too small"
    return f"Nothing changes now: no job of {o.tenant} waits for quota"


def _s(n: int, verb: str) -> str:
    return f"{verb}s" if n == 1 else verb


def _names(jobs: Sequence[WaitingJob]) -> str:
    return ", ".join(j.name for j in jobs[:4]) + (", ..." if len(jobs) > 4 else "")


def _note(tone: tenant_api.Tone, text: str) -> tenant_api.PreviewNote:
    return tenant_api.PreviewNote(tone=tone, text=text)
