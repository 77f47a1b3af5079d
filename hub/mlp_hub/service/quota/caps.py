"""Use of a tenant by a member, jobs and servers alike, with their cap, and messages for excess servers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.facts import Fact
from mlp_hub.domain.jobs.job import Job, uid_of_attempt
from mlp_hub.domain.quantities import number, quantity
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.domain.workload.caps import EVERYBODY, Cap
from mlp_hub.domain.workload.ledger import OF_JOBS, ResourceRequest
from mlp_hub.domain.workload.workload import KINDS
from mlp_hub.service.quota.refusals import holder
from mlp_hub.store.tx import Tx
from mlp_language.message import Arg, JobRef, Message, TenantRef, msg, msgs, some

Member = tuple[str, str]
"""A tenant, and a user there."""


@dataclass(frozen=True, slots=True)
class Taken:
    """Amounts that a member holds or asks for: thousandths of cores and of devices, and jobs."""

    cpu: int = 0
    gpu: int = 0
    jobs: int = 0

    def __add__(self, other: Taken) -> Taken:
        return Taken(self.cpu + other.cpu, self.gpu + other.gpu, self.jobs + other.jobs)

    def beyond(self, cap: Cap, asked: Taken) -> str | None:
        """Return the first requested amount that exceeds the cap.

        A cap that was lowered below the use of one resource stops nothing that needs none of it.
        """
        over = (
            name for name, most in cap.limits.items() if getattr(asked, name) and getattr(self, name) > most
        )
        return next(over, None)


@dataclass(frozen=True, slots=True)
class Portion:
    """Job or notebook server of a member that holds these amounts, or asks for them."""

    uid: str
    who: JobRef | Message
    what: Taken
    is_server: bool = False


def of_job(job: Job) -> Portion:
    """Return what a job counts as; an elastic one with its most workers, since it may grow to them."""
    each, ranks = job.spec.per_worker, max(job.spec.ranks_max, len(job.placement))
    return Portion(job.uid, job.ref, Taken(each.cpu * ranks, each.gpu * ranks, 1))


def of_server(request: ResourceRequest) -> Portion:
    """Return the portion of a notebook server, which is not a job."""
    return Portion(
        request.uid, holder(request), Taken(request.amount.cpu, request.amount.gpu), is_server=True
    )


def counts(request: ResourceRequest) -> bool:
    """Whether a request is that of some member's notebook server."""
    return request.applier in KINDS and bool(request.user)


def total(holdings: Iterable[Portion]) -> Taken:
    """Return all of it together."""
    return sum((one.what for one in holdings), Taken())


def amount(name: str, value: int) -> Arg:
    """Return an amount of a capped resource, in the units of `Cap`, as people read it."""
    return msgs("1 job", "{n} jobs", n=value) if name == "jobs" else quantity(name, value)


def in_use(name: str, holdings: Sequence[Portion], key: str = "inuse") -> Fact:
    """Return the fact of the use of one resource, with its holders: servers first."""
    holders = [(h, held) for h in holdings if (held := getattr(h.what, name))]
    holders.sort(key=lambda one: not one[0].is_server)
    who: list[Arg] = [
        h.who if name == "jobs" else msg("{who} ({amount})", who=h.who, amount=number(name, held))
        for h, held in holders
    ]
    value = amount(name, sum(held for _, held in holders))
    return Fact(key, value, "" if name == "jobs" else name, some(who))


def facts_of(name: str, cap: Cap, asked: Taken, held: Fact | None) -> tuple[Fact, ...]:
    """Return the facts if a cap has no room: the request, the cap, and the `held` amount that is in its way."""
    dimension = "" if name == "jobs" else name
    facts = [Fact("limit", amount(name, getattr(cap, name)), dimension)]
    if held is not None:
        facts.append(held)
    if dimension or held is None:
        facts.insert(0, Fact("asked", amount(name, getattr(asked, name)), dimension))
    return tuple(facts)


def check(tx: Tx, wanted: ResourceRequest, now: float, *, later: bool) -> None:
    """Raise `Refused` if a notebook server exceeds its owner's cap; `later`: pass if it fits without others."""
    if not counts(wanted):
        return
    member = (wanted.tenant, wanted.user)
    caps = {one.user: one.cap for one in tx.caps.of_tenant(wanted.tenant)}
    cap, asked = caps.get(wanted.user) or caps.get(EVERYBODY), of_server(wanted).what
    if cap is None:
        return
    if (name := asked.beyond(cap, asked)) is not None:
        raise refusal(Reason.EXCEEDS_MAX_QUOTA, facts_of(name, cap, asked, None), member)
    if later:
        return
    holdings = _held(tx, member, now)
    if (name := (total(holdings) + asked).beyond(cap, asked)) is not None:
        facts = facts_of(name, cap, asked, in_use(name, holdings))
        raise refusal(Reason.WAITING_FOR_QUOTA, facts, member)


def _held(tx: Tx, member: Member, now: float) -> list[Portion]:
    found = []
    for row in tx.ledger.held(now, tenant=member[0]):
        if row.user != member[1]:
            continue
        if counts(row):
            found.append(of_server(row))
        elif row.applier == OF_JOBS and (job := tx.jobs.get(SYSTEM, uid_of_attempt(row.id))) is not None:
            found.append(of_job(job))
    return found


def refusal(
    reason: Reason, facts: Sequence[Fact], member: Member, *, retry_after: float | None = None
) -> Refused:
    """Return the refusal of a notebook server for which its owner's cap has no room, with its `facts_of`."""
    by = {fact.key: fact for fact in facts}
    limit, asked, used = by["limit"].value, by["asked"].value, by.get("inuse")
    user, tenant = member[1], TenantRef(member[0])
    if used is None:
        text = msg(
            "{user} may hold {limit} in {tenant}, which is the cap there. This request asks for {asked} and can never start. Choose a smaller server, or ask an admin of {tenant} to raise the cap",
            user=user,
            limit=limit,
            tenant=tenant,
            asked=asked,
        )
    else:
        text = msg(
            "{user} may hold {limit} in {tenant}, which is the cap there; {used} in use by {holders}. This request asks for {asked}. End a job, choose a smaller server, or ask an admin of {tenant} to raise the cap",
            user=user,
            limit=limit,
            tenant=tenant,
            used=used.value,
            holders=used.who,
            asked=asked,
        )
    return Refused(reason, text, facts=tuple(facts), retry_after=retry_after)
