"""Holds jobs back whose member holds as much as their cap in the tenant allows: the core does not know of them until they may start.

Those that are let through could all be admitted at once and the member would still be inside the cap, so nothing that is decided
between two looks can go beyond it. An elastic job counts with its most workers: it may grow to them. Their order is that of
the queue; one that does not fit lets nobody of the same member pass, but one that could never fit does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from mlp_hub.domain.caps import EVERYBODY, Cap, CapOfMember
from mlp_hub.domain.errors import Reason
from mlp_hub.domain.facts import Fact
from mlp_hub.domain.job import Job
from mlp_hub.domain.quantities import quantity
from mlp_hub.scheduler.model.types import SchedulingPolicy, Verdict
from mlp_hub.scheduler.policy import DEFAULT_ORDER, JobKey, job_key
from mlp_hub.service.admission.snapshot import Holders, waiting_of
from mlp_hub.service.state.board import Board
from mlp_language.message import Arg, TenantRef, msg, msgs

Member = tuple[str, str]
"""A tenant, and a user there."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What a member holds, or would."""

    cpu: int = 0
    gpu: int = 0
    jobs: int = 0

    def plus(self, job: Job) -> Taken:
        """Return the same with one more job."""
        each, ranks = job.spec.per_worker, max(job.spec.ranks_max, len(job.placement))
        return Taken(self.cpu + each.cpu * ranks, self.gpu + each.gpu * ranks, self.jobs + 1)

    def beyond(self, cap: Cap) -> str | None:
        """Return the first of what the cap names that is more than it allows."""
        limits = (("cpu", self.cpu, cap.cpu), ("gpu", self.gpu, cap.gpu), ("jobs", self.jobs, cap.jobs))
        return next((name for name, has, most in limits if most is not None and has > most), None)


def held_now(
    holders: Holders, board: Board, policy: SchedulingPolicy, before: Mapping[str, Verdict]
) -> dict[str, Verdict]:
    """Return who of the board's jobs is held back, as `held_back` does."""
    orders = {t.name: t.queue_order for t in holders.tenants}

    def key(job: Job) -> JobKey:
        return job_key(waiting_of(job), policy, orders.get(job.spec.tenant, DEFAULT_ORDER))

    return held_back(holders.caps, board.waiting.values(), board.holding.values(), key, before)


def held_back(
    caps: Sequence[CapOfMember],
    waiting: Iterable[Job],
    holding: Iterable[Job],
    key: Callable[[Job], JobKey],
    before: Mapping[str, Verdict],
) -> dict[str, Verdict]:
    """Return by uid who waits for their cap, and the words for it; those that were said `before` stay the same objects.

    `key` orders the jobs of one queue.
    """
    of = {(one.tenant, one.user): one.cap for one in caps}
    lines: dict[Member, list[Job]] = {}
    for job in waiting:
        member = (job.spec.tenant, job.spec.user)
        if member in of or (job.spec.tenant, EVERYBODY) in of:
            lines.setdefault(member, []).append(job)
    taken = dict.fromkeys(lines, Taken())
    for job in holding if lines else ():
        member = (job.spec.tenant, job.spec.user)
        if member in taken:
            taken[member] = taken[member].plus(job)
    found: dict[str, Verdict] = {}
    for member, jobs in lines.items():
        cap = of.get(member) or of[member[0], EVERYBODY]
        for uid, verdict in _of_member(cap, sorted(jobs, key=key), taken[member], member):
            known = before.get(uid)
            found[uid] = known if known == verdict else verdict
    return found


def _of_member(cap: Cap, jobs: Sequence[Job], holds: Taken, member: Member) -> Iterable[tuple[str, Verdict]]:
    would, full = holds, False
    for job in jobs:
        alone = Taken().plus(job).beyond(cap)
        if alone is not None:
            yield job.uid, _verdict(alone, cap, Taken().plus(job), member, never=True)
            continue
        then = would.plus(job)
        beyond = then.beyond(cap)
        if full or beyond is not None:
            full = True
            yield job.uid, _verdict(beyond or _tightest(cap), cap, holds, member, never=False)
        else:
            would = then


def _tightest(cap: Cap) -> str:
    return next(name for name in ("cpu", "gpu", "jobs") if getattr(cap, name) is not None)


def _verdict(name: str, cap: Cap, has: Taken, member: Member, *, never: bool) -> Verdict:
    tenant, user = member
    most, now = getattr(cap, name), getattr(has, name)
    limit, used, dimension = _words(name, most), _words(name, now), "" if name == "jobs" else name
    facts = (Fact("limit", limit, dimension), Fact("asked" if never else "inuse", used, dimension))
    if never:
        headline = msg(
            "Asks for {now}; the cap of {user} in {tenant} is {limit}.",
            now=used,
            user=user,
            tenant=TenantRef(tenant),
            limit=limit,
        )
    else:
        headline = msg(
            "The cap of {user} in {tenant}: {limit}; {now} in use.",
            now=used,
            user=user,
            tenant=TenantRef(tenant),
            limit=limit,
        )
    return Verdict(Reason.WAITING_FOR_QUOTA, headline, facts)


def _words(name: str, value: int) -> Arg:
    return msgs("1 job", "{n} jobs", n=value) if name == "jobs" else quantity(name, value)
