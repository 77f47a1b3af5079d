"""Holds jobs and notebook servers back whose member holds as much as their cap in the tenant allows, with both: the core does not know of them until they may start.

Those that are let through could all be admitted at once and the member would still be inside the cap, so nothing that is decided
between two looks can go beyond it. An elastic job counts with its most workers: it may grow to them. Their order is that of
the queue, servers that are asked for before all jobs; one that does not fit lets nobody of the same member pass, but one that could never
fit does, also one for which no end of a job makes room beside the servers that run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from mlp_hub.domain.errors import Reason
from mlp_hub.domain.facts import Fact
from mlp_hub.domain.jobs.job import Job, JobSpec
from mlp_hub.domain.workload.caps import EVERYBODY, Cap, CapOfMember
from mlp_hub.domain.workload.ledger import ResourceRequest
from mlp_hub.scheduler.model.types import SchedulingPolicy, Verdict
from mlp_hub.scheduler.policy import DEFAULT_ORDER, JobKey, job_key
from mlp_hub.service.admission.snapshot import Holders, waiting_of
from mlp_hub.service.quota.caps import (
    Member,
    Portion,
    Taken,
    counts,
    facts_of,
    in_use,
    of_job,
    of_server,
    total,
)
from mlp_language.message import Message, TenantRef, msg

T = TypeVar("T", Job, ResourceRequest)


def is_capped(caps: Iterable[CapOfMember], spec: JobSpec) -> bool:
    """Whether whose job this is has a cap in its tenant."""
    return any(one.tenant == spec.tenant and one.user in (spec.user, EVERYBODY) for one in caps)


def of_member(tenant: str, user: str, jobs: Iterable[Job]) -> list[Job]:
    """Return the jobs of one member."""
    return [job for job in jobs if job.spec.user == user and job.spec.tenant == tenant]


class KeptKeys:
    """Keys of the jobs that were looked at last: thousands may wait, and few of them change between two looks."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Job, str, JobKey]] = {}

    def key_function(self, policy: SchedulingPolicy, orders: Mapping[str, str]) -> Callable[[Job], JobKey]:
        """Return the function that gives jobs their keys; keys unused until the next look are forgotten."""
        before, self._known = self._known, {}

        def key(job: Job) -> JobKey:
            order = orders.get(job.spec.tenant, DEFAULT_ORDER)
            known = before.get(job.uid)
            if known is None or known[0] is not job or known[1] != order:
                known = (job, order, job_key(waiting_of(job), policy, order))
            self._known[job.uid] = known
            return known[2]

        return key


def held_now(
    holders: Holders,
    waiting: Iterable[Job],
    holding: Iterable[Job],
    policy: SchedulingPolicy,
    before: Mapping[str, Verdict],
    *,
    keys: KeptKeys | None = None,
) -> dict[str, Verdict]:
    """Return who of the waiting jobs and of the pending requests is held back, as `held_back` does."""
    orders = {t.name: t.queue_order for t in holders.tenants}
    return held_back(holders, waiting, holding, (keys or KeptKeys()).key_function(policy, orders), before)


def held_back(
    holders: Holders,
    waiting: Iterable[Job],
    holding: Iterable[Job],
    key: Callable[[Job], JobKey],
    before: Mapping[str, Verdict],
) -> dict[str, Verdict]:
    """Return by uid who waits for their cap, and the words for it; those that were said `before` stay the same objects.

    `key` orders the jobs of one queue.
    """
    caps = {(one.tenant, one.user): one.cap for one in holders.caps}
    asked, jobs = _by_member(caps, holders.pending.values()), _by_member(caps, waiting)
    if not asked and not jobs:
        return {}
    servers, running = _by_member(caps, holders.servers), _by_member(caps, holding)
    found: dict[str, Verdict] = {}
    alike: dict[int, tuple[Verdict, Verdict]] = {}  # thousands may wait for one reason: it is compared once
    for member in {**asked, **jobs}:
        cap = caps.get(member) or caps[member[0], EVERYBODY]
        queued = sorted(jobs.get(member, ()), key=key)
        line = [*map(of_server, asked.get(member, ())), *map(of_job, queued)]
        holds = [*map(of_server, servers.get(member, ())), *map(of_job, running.get(member, ()))]
        for uid, verdict in _of_member(cap, line, holds, member):
            known = before.get(uid)
            if known is not None and known is not alike.get(id(verdict), (verdict, None))[1]:
                if known != verdict:
                    known = None
                else:
                    alike[id(verdict)] = (verdict, known)
            found[uid] = verdict if known is None else known
    return found


def _by_member(caps: Mapping[Member, Cap], stored: Iterable[T]) -> dict[Member, list[T]]:
    """Return what is of members who have a cap, by whose it is."""
    found: dict[Member, list[T]] = {}
    for one in stored:
        if isinstance(one, Job):
            member = (one.spec.tenant, one.spec.user)
        elif counts(one):
            member = (one.tenant, one.user)
        else:
            continue
        if member in caps or (member[0], EVERYBODY) in caps:
            found.setdefault(member, []).append(one)
    return found


class _Held:
    """Holdings of a member, and a fact for each of them, made once for all jobs that wait for it."""

    def __init__(self, holdings: Iterable[Portion], key: str) -> None:
        self._holdings = list(holdings)
        self._key = key
        self._facts: dict[str, Fact] = {}
        self.total = total(self._holdings)

    def add(self, one: Portion) -> None:
        self._holdings.append(one)
        self._facts.clear()
        self.total += one.what

    def fact(self, name: str) -> Fact:
        if name not in self._facts:
            self._facts[name] = in_use(name, self._holdings, self._key)
        return self._facts[name]


def _of_member(
    cap: Cap, line: Sequence[Portion], holds: Sequence[Portion], member: Member
) -> Iterator[tuple[str, Verdict]]:
    held = _Held(holds, "inuse")
    servers = _Held([one for one in holds if one.is_server], "held")
    would, full = held.total, False
    said: dict[Taken, Verdict] = {}  # what jobs that wait are told: the same where they ask for the same
    for one in line:
        asked = one.what
        verdict = None if one.is_server else said.get(asked)
        if verdict is not None:
            yield one.uid, verdict
            continue
        if (name := asked.beyond(cap, asked)) is not None:
            # a job stays, for the cap may be raised; nobody keeps on asking for a server
            reason = Reason.EXCEEDS_MAX_QUOTA if one.is_server else Reason.WAITING_FOR_QUOTA
            verdict = Verdict(reason, *_never(name, cap, asked, member))
        elif not one.is_server and (name := (servers.total + asked).beyond(cap, asked)) is not None:
            facts = facts_of(name, cap, asked, servers.fact(name))
            verdict = Verdict(Reason.WAITING_FOR_QUOTA, _beside(facts, member), facts)
        elif (name := (would + asked).beyond(cap, asked)) is not None or full:
            full, name = True, name or next(iter(cap.limits))
            facts = facts_of(name, cap, asked, held.fact(name))
            verdict = Verdict(Reason.WAITING_FOR_QUOTA, _full(facts, member), facts)
        else:
            would += asked
            if one.is_server:  # it will hold before any of the jobs
                held.add(one)
                servers.add(one)
            continue
        if not one.is_server:  # all servers come before: nothing that it depends on changes any more
            said[asked] = verdict
        yield one.uid, verdict


def _never(name: str, cap: Cap, asked: Taken, member: Member) -> tuple[Message, tuple[Fact, ...]]:
    facts = facts_of(name, cap, asked, None)
    headline = msg(
        "Asks for {now}; the cap of {user} in {tenant} is {limit}.",
        now=facts[0].value,
        user=member[1],
        tenant=TenantRef(member[0]),
        limit=facts[1].value,
    )
    return headline, facts


def _beside(facts: Sequence[Fact], member: Member) -> Message:
    return msg(
        "Servers hold {held} of {user}'s cap in {tenant}; one must stop.",
        held=facts[-1].value,
        user=member[1],
        tenant=TenantRef(member[0]),
    )


def _full(facts: Sequence[Fact], member: Member) -> Message:
    return msg(
        "The cap of {user} in {tenant}: {limit}; {now} in use.",
        now=facts[-1].value,
        user=member[1],
        tenant=TenantRef(member[0]),
        limit=facts[-2].value,
    )
