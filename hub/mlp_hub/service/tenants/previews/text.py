"""Sentences of a preview: the changes, and the reason if there are none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mlp_api.localized import Text
from mlp_api.teams import previews as preview_api
from mlp_hub.domain.errors import Reason
from mlp_hub.domain.quantities import quantity
from mlp_hub.domain.workload.booking import BookedWindow
from mlp_hub.scheduler.model.types import PendingWorkload, Verdict
from mlp_hub.service.bookings.feasibility import sentence
from mlp_hub.service.support import units
from mlp_hub.service.tenants.previews.starts import Moved
from mlp_language.message import (
    MOST_LISTED,
    NOTHING,
    Arg,
    Message,
    Span,
    TenantRef,
    msg,
    msgs,
    some,
    verbatim,
)

MOST_JOBS = 20
"""Tuning: jobs in one list of the answer; the sentences count all."""
FOR_QUOTA = frozenset({Reason.WAITING_FOR_QUOTA, Reason.EXCEEDS_MAX_QUOTA})
"""Reasons of jobs that wait for quota, in vain too."""


@dataclass(frozen=True, slots=True)
class Over:
    """A tenant that holds more than it may hold then, with all others as they are."""

    tenant: str
    dimension: str
    used: int
    may_hold: int

    def to_wire(self) -> preview_api.PreviewOver:
        """Return it in the units of the wire."""
        d = self.dimension
        return preview_api.PreviewOver(
            tenant=self.tenant,
            dimension=d,
            inuse=units.amount_to(d, self.used),
            may_hold=units.amount_to(d, self.may_hold),
            above=units.amount_to(d, self.used - self.may_hold),
        )


@dataclass(frozen=True, slots=True)
class PreviewStop:
    """A running job that would be stopped, or shrunk, for another one."""

    victim: PendingWorkload
    winner: PendingWorkload
    message: Message
    shrunk: bool

    def to_wire(self) -> preview_api.PreviewStop:
        """Return it for the wire."""
        v, w = self.victim, self.winner
        return preview_api.PreviewStop(
            user=v.user,
            name=v.name,
            tenant=v.tenant,
            for_user=w.user,
            for_name=w.name,
            for_tenant=w.tenant,
            shrunk=self.shrunk,
            message=Text(self.message),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewOutcome:
    """Decisions of the core on the tenants as they would be, beside those that it takes now."""

    tenant: str
    starts: Sequence[PendingWorkload]  # of all tenants, that do not start as things are
    grows: Sequence[tuple[PendingWorkload, int]]  # elastic jobs, and with how many workers they go on
    stops: Sequence[PreviewStop]
    over: Sequence[Over]
    own: Mapping[tuple[str, str], int | None]  # quota then, by tenant and dimension, of those in `over`
    borrows: Sequence[tuple[str, int]]
    running: int  # jobs of the tenant
    waits: Sequence[tuple[PendingWorkload, Verdict]]  # of the tenant
    never: frozenset[str] | set[str]  # uids of those that ask for more than there ever is
    now: Mapping[str, Reason]  # by uid, why they wait as things are
    windows: Sequence[BookedWindow]  # that no longer fit then, or fit again
    since: float  # the present time
    moved: Sequence[Moved]  # waiting jobs of any tenant that are expected at another time
    same: bool  # every job is told the same now and then


def notes(o: PreviewOutcome) -> list[preview_api.PreviewNote]:
    """Say it, the good first; never nothing."""
    found = [*_of_windows(o), *_of_starts(o), *_of_over(o), *_of_stops(o), *_of_moved(o)]
    if not found and o.same and not _gets_quota(o) and not _lost(o):
        found = [_note("idle", _no_change(o))]
    return [*found, *_of_waits(o)]


def _of_windows(o: PreviewOutcome) -> Iterator[preview_api.PreviewNote]:
    for window in o.windows[:MOST_JOBS]:
        yield _note("good" if window.short is None else "bad", sentence(window))


def _of_starts(o: PreviewOutcome) -> Iterator[preview_api.PreviewNote]:
    mine = [j for j in o.starts if j.tenant == o.tenant]
    if mine:
        yield _note(
            "good",
            msgs(
                "{n} waiting job could start: {jobs}",
                "{n} waiting jobs could start: {jobs}",
                n=len(mine),
                jobs=_names(mine),
            ),
        )
    others = [j for j in o.starts if j.tenant != o.tenant]
    if others:
        yield _note(
            "good",
            msgs(
                "{n} waiting job of {tenants} could start: {jobs}",
                "{n} waiting jobs of {tenants} could start: {jobs}",
                n=len(others),
                tenants=some([TenantRef(t) for t in dict.fromkeys(j.tenant for j in others)]),
                jobs=_names(others),
            ),
        )
    if o.grows:
        jobs = some(
            [msgs("{job} to {n} worker", "{job} to {n} workers", n=n, job=job.ref) for job, n in o.grows]
        )
        yield _note("good", msg("Could grow: {jobs}", jobs=jobs))


def _of_over(o: PreviewOutcome) -> Iterator[preview_api.PreviewNote]:
    for over in o.over:
        what: dict[str, Arg] = {
            "tenant": TenantRef(over.tenant),
            "used": quantity(over.dimension, over.used),
            "beyond": quantity(over.dimension, over.used - over.may_hold),
        }
        own = o.own.get((over.tenant, over.dimension))
        if over.tenant == o.tenant and own == over.may_hold:
            yield _note("bad", msg("{used} in use, {beyond} above the new quota", **what))
        elif over.tenant == o.tenant:
            yield _note("bad", msg("{used} in use, {beyond} more than it could hold then", **what))
        elif own is not None and over.used <= own:
            yield _note(
                "wait",
                msg(
                    "Team {tenant} is inside its quota; of the {used} in use there, {beyond} would be kept for others. Running work continues",
                    **what,
                ),
            )
        else:
            yield _note(
                "bad", msg("Team {tenant}: {used} in use, {beyond} more than it could hold then", **what)
            )
    if any(over.tenant == o.tenant for over in o.over):
        kept = msg("Running work continues")
        if o.running:
            kept = msgs("{n} running job continues", "{n} running jobs continue", n=o.running)
        yield _note(
            "idle",
            msg(
                "{kept}; the change stops nothing, and nothing new starts until enough is given back",
                kept=kept,
            ),
        )
    elif o.borrows:
        amounts = tuple([quantity(d, v) for d, v in o.borrows])
        yield _note(
            "wait", msg("{amounts} of its use would be borrowed, and could be taken back", amounts=amounts)
        )


def _of_stops(o: PreviewOutcome) -> Iterator[preview_api.PreviewNote]:
    for s in o.stops[:MOST_JOBS]:
        jobs: dict[str, Arg] = {
            "job": s.victim.ref,
            "other": s.winner.ref,
            "tenant": TenantRef(s.winner.tenant),
        }
        if s.shrunk:
            yield _note("bad", msg("{job} would give up workers for {other} in {tenant}", **jobs))
        else:
            yield _note("bad", msg("{job} would be stopped and queued again for {other} in {tenant}", **jobs))


def _of_moved(o: PreviewOutcome) -> Iterator[preview_api.PreviewNote]:
    for later in (False, True):
        moved = [m for m in o.moved if m.is_later is later]
        if not moved:
            continue
        changes = some([m.words(o.since) for m in moved[:MOST_LISTED]], len(moved))
        if later:
            text = msgs(
                "{n} waiting job would start later: {jobs}",
                "{n} waiting jobs would start later: {jobs}",
                n=len(moved),
                jobs=changes,
            )
        else:
            text = msgs(
                "{n} waiting job would start sooner: {jobs}",
                "{n} waiting jobs would start sooner: {jobs}",
                n=len(moved),
                jobs=changes,
            )
        yield _note("wait" if later else "good", text)


def _of_waits(o: PreviewOutcome) -> Iterator[preview_api.PreviewNote]:
    groups: dict[Reason, list[tuple[PendingWorkload, Verdict]]] = {}
    for job, verdict in o.waits:
        if job.uid not in o.never:
            groups.setdefault(verdict.reason, []).append((job, verdict))
    for reason, group in groups.items():
        jobs = [job for job, _ in group]
        what = reason.waits_for or verbatim(reason.value)
        other = [job for job in jobs if o.now.get(job.uid, reason) in FOR_QUOTA and reason not in FOR_QUOTA]
        if other:
            yield _note(
                "wait",
                msgs(
                    "{n} job would have the quota, but would then wait for {what}: {jobs}",
                    "{n} jobs would have the quota, but would then wait for {what}: {jobs}",
                    n=len(other),
                    what=what,
                    jobs=_names(other),
                ),
            )
            jobs = [job for job in jobs if job not in other]
        if not jobs:
            continue
        text = msgs(
            "{n} job would still wait for {what}: {jobs}{since}",
            "{n} jobs would still wait for {what}: {jobs}{since}",
            n=len(jobs),
            what=what,
            jobs=_names(jobs),
            since=_since(o, jobs),
        )
        # with the quota in question it is worth its numbers
        if reason is Reason.WAITING_FOR_QUOTA:
            text = msg("{text}. Of {name}: {why}", text=text, name=jobs[0].name, why=group[0][1].headline)
        yield _note("idle", text)
    never = [job for job, _ in o.waits if job.uid in o.never]
    lost = _lost(o)
    if lost:
        yield _note(
            "bad",
            msg(
                "{jobs} could never start any more: each asks for more than the whole quota",
                jobs=_names(lost),
            ),
        )
    if still := [j for j in never if j not in lost]:
        yield _note(
            "bad",
            msg(
                "{jobs} could still never start: each asks for more than the whole quota", jobs=_names(still)
            ),
        )


def _lost(o: PreviewOutcome) -> list[PendingWorkload]:
    """Return the waiting jobs that may start some day as things are, and never then."""
    return [
        job for job, _ in o.waits if job.uid in o.never and o.now.get(job.uid) is not Reason.EXCEEDS_MAX_QUOTA
    ]


def _gets_quota(o: PreviewOutcome) -> bool:
    """Whether a job that waits for quota now would wait for something else."""
    return any(v.reason not in FOR_QUOTA and o.now.get(job.uid) in FOR_QUOTA for job, v in o.waits)


def _since(o: PreviewOutcome, jobs: Sequence[PendingWorkload]) -> Message:
    waited = o.since - min(j.waits_since for j in jobs)
    if waited < 60:
        return NOTHING
    if len(jobs) == 1:
        return msg(" (for {span} now)", span=Span(waited))
    return msg(" (the longest for {span} now)", span=Span(waited))


def _no_change(o: PreviewOutcome) -> Message:
    """Say why a change of the tenant changes nothing for any job."""
    tenant = TenantRef(o.tenant)
    if not o.waits:
        if o.running:
            return msg(
                "No running or waiting job is affected: {tenant} has no waiting jobs, and its running jobs are inside the quota",
                tenant=tenant,
            )
        return msg(
            "No running or waiting job is affected: {tenant} has no waiting jobs and no running jobs",
            tenant=tenant,
        )
    for_quota = sum(1 for _, v in o.waits if v.reason in FOR_QUOTA)
    if for_quota:
        return msgs(
            "Nothing changes now: the quota is still too small for {n} waiting job",
            "Nothing changes now: the quota is still too small for {n} waiting jobs",
            n=for_quota,
        )
    return msg("Nothing changes now: no job of {tenant} waits for quota", tenant=tenant)


def _names(jobs: Sequence[PendingWorkload]) -> tuple[Arg, ...]:
    return some([j.name for j in jobs])


def _note(tone: preview_api.Tone, text: Message) -> preview_api.PreviewNote:
    return preview_api.PreviewNote(tone=tone, text=Text(text))
