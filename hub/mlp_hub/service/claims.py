"""Claims: notebook servers that wait for room inside their tenant's own quota, which others have borrowed.

A try that finds its tenant's nominal quota lent out, or the nodes full of work that gives way to it, leaves a claim: a
row of the ledger that holds nothing and expires. The scheduling core sees it as a job that wants to start, and treats it
by the rules of jobs. When the core decides to stop somebody for it, the same transaction that stores so sets room on a
node aside: from then on the claim counts wherever others ask for quota or nodes, so that what comes free is there for
nobody else. The next try of its owner takes the room. A claim that nobody asks about any more expires, and counts no more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.job import PRIORITIES
from mlp_hub.domain.ledger import RequestPhase, ResourceRequest
from mlp_hub.domain.resources import ZERO, Resources
from mlp_hub.scheduler.fitting import is_inside
from mlp_hub.scheduler.model import Verdict, WaitingJob, Why
from mlp_hub.scheduler.vectors import vector_of
from mlp_hub.service.discreet import gathered, replaced
from mlp_hub.service.quota import Quotas
from mlp_hub.service.refusals import holder_of
from mlp_hub.store.tx import Tx

NAME = "notebook"
"""What the core calls what is claimed for; its user tells whose it is."""
ENDED_S = 10.0
"""Who is asked to end does so within this time, mostly."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """What the core has decided about a claim: in how many seconds its room is free at the latest.

    `grace_s` of them are what those who are stopped may take to end; most take less.
    """

    seconds: float
    grace_s: float
    made: bool = False  # room was set aside for it; else nobody is stopped for it yet

    @property
    def soonest(self) -> float:
        """Return in how many seconds it is worth while to look."""
        return max(self.seconds - self.grace_s + min(self.grace_s, ENDED_S), 1.0)


class Reclaimer(Protocol):
    """Who decides whether room is made for claims."""

    async def outlook(self, uid: str) -> Outlook | None:
        """Return what comes of a claim that is stored; None when nobody can be stopped for it."""
        ...


def uid_of(claim: ResourceRequest) -> str:
    """Name a claim in the scheduling core; no job's uid has a slash."""
    return f"{claim.applier}/{claim.id}"


def is_claim(uid: str) -> bool:
    """Whether this is the uid of a claim, not of a job."""
    return "/" in uid


def waiting_of_claim(claim: ResourceRequest) -> WaitingJob:
    """Return a claim as the scheduling core sees it: one rank of normal priority that nobody stops.

    It stands before all jobs of its tenant, as a server that finds room is started before them too.
    """
    a = claim.amount
    return WaitingJob(
        uid=uid_of(claim),
        name=NAME,
        user=claim.user,
        tenant=claim.tenant,
        per_worker=Resources(a.cpu, a.gpu, a.ram),
        workers_min=1,
        workers_max=1,
        queued_at=0.0,
        priority=PRIORITIES["normal"],
        gpu_kind=a.kinds[0][0] if a.kinds else None,
        preemptible=False,
    )


def set_aside(claims: Iterable[ResourceRequest]) -> list[ResourceRequest]:
    """Return those of these claims for which room is set aside."""
    return [c for c in claims if c.shares]


def node_use(
    tx: Tx, now: float, claims: Iterable[ResourceRequest], *, but: Iterable[str] = ()
) -> dict[str, Resources]:
    """Sum up what is taken of each node, but by these appliers, with what is set aside there for these claims."""
    used = tx.ledger.node_use(now, but=but)
    for claim in claims:
        for node, amount in claim.shares:
            used[node] = used.get(node, ZERO) + amount
    return used


def may_claim(wanted: ResourceRequest, refused: Refused, quotas: Quotas) -> bool:
    """Whether a refused request may have others stopped: all of it lies inside its tenant's nominal quota.

    Storage is nothing that anybody gives back by being stopped.
    """
    if refused.reason not in (Reason.WAITING_FOR_QUOTA, Reason.WAITING_FOR_RESOURCES) or wanted.amount.rom:
        return False
    return is_inside(quotas.tree(wanted.tenant), wanted.tenant, vector_of(wanted.amount))


def claim_of(wanted: ResourceRequest, before: ResourceRequest | None, expires_at: float) -> ResourceRequest:
    """Return the claim for a request; one that is repeated keeps its age and what is set aside for it."""
    same = (
        before is not None
        and before.phase is RequestPhase.CLAIMED
        and (before.tenant, before.amount) == (wanted.tenant, wanted.amount)
    )
    if before is not None and same:
        return replace(before, expires_at=expires_at)
    return replace(wanted, phase=RequestPhase.CLAIMED, expires_at=expires_at, last="claim")


def named_for(verdict: Verdict, tenant: str, claims: Mapping[str, ResourceRequest]) -> Verdict:
    """Return a verdict for a tenant's eyes: of others' claims they learn that there is a server, not whose."""
    about = [claims[uid] for uid in verdict.blocked_by if uid in claims]
    jobs = tuple(uid for uid in verdict.blocked_by if not is_claim(uid))
    if not about:
        return verdict
    return replace(verdict, message=without_claims(verdict.message, tenant, about), blocked_by=jobs)


def without_claims(text: str, tenant: str, claims: Iterable[ResourceRequest]) -> str:
    """Return the text for a tenant's eyes: what the core calls these claims is put into words, others' without a user."""
    for claim in claims:
        named = f"{NAME} of {claim.user}"
        if named not in text:
            continue
        who = holder_of(claim) if claim.tenant == tenant else f"a notebook server of tenant {claim.tenant}"
        text = replaced(text, named, claim.tenant, who)
    return gathered(text)


def claims_for(why: Why, tenant: str, claims: Mapping[str, ResourceRequest]) -> Why:
    """Return a whole answer for a tenant's eyes, as far as it is about claims."""
    return replace(
        why,
        reasons=tuple(named_for(v, tenant, claims) for v in why.reasons),
        expected_because=without_claims(why.expected_because, tenant, claims.values()),
        sure_because=without_claims(why.sure_because, tenant, claims.values()),
        gives_way=tuple(without_claims(text, tenant, claims.values()) for text in why.gives_way),
    )


def sentence(tenant: str, outlook: Outlook, kept_s: float, refused: Refused) -> Refused:
    """Return the refusal of a try for which room is being made."""
    seconds = max(outlook.seconds, 1.0)
    if outlook.made:
        what = f"{tenant} takes back what it lent: room is being made, free in {seconds:.0f} s at the latest"
    else:
        what = (
            f"{tenant} may take back what it lent in about {seconds:.0f} s, when those who have it have run for their "
            "least time"
        )
    return Refused(
        Reason.WAITING_FOR_PREEMPTED,
        f"{what}. Ask again until then: the place is kept for {kept_s:g} s after each time. Now: {refused.msg}",
        retry_after=outlook.soonest,
    )


def of_core(claims: Sequence[ResourceRequest]) -> dict[str, ResourceRequest]:
    """Return the claims that the core has to decide about, by uid: those without room set aside."""
    return {uid_of(c): replace(c, expires_at=None) for c in claims if not c.shares}
