"""Storage that is over its quota: the users who are stopped for it, and those who are warned.

Homes and jobs' directories are charged after the fact, so that a tenant can hold more than its
quota. A user who then holds more than an equal part of it cannot submit jobs until it has room
again; running jobs continue and get a warning. The tenant's other users continue to work. As
always, requests that need storage in advance are refused to all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.jobs.job import Job
from mlp_hub.domain.quantities import quantity
from mlp_hub.domain.tenants.tenant import Tenant
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.domain.workload.ledger import OF_STORAGE
from mlp_hub.executors.nodes import NodeInfo
from mlp_hub.service.quota.accounting import Quotas, limits
from mlp_hub.service.quota.refusals import holder_of, standing_in
from mlp_hub.service.state.board import Board, Changes
from mlp_hub.service.state.moves import Step
from mlp_hub.store.tx import Tx
from mlp_language.message import Message, TenantRef, msg

MOST_NAMED = 5
"""Safety: things that a refusal names, the largest of them: it stays a sentence."""
WARNED = "storage-full"
"""Kind of the step in the timeline of a job that runs while its owner's storage is full."""


@dataclass(frozen=True, slots=True)
class FullStorage:
    """Storage of a tenant that is over its quota: bytes in all, and what each user holds of it, by the names of the things."""

    tenant: str
    limit: int
    used: int
    held: Counter[str]
    things: Mapping[str, Sequence[Message]]

    def stops(self, user: str) -> bool:
        """Return whether a user holds more than an equal part of the limit."""
        return self.held[user] * len(self.held) > self.limit

    def says(self, user: str) -> Message:
        """Return the state of the storage, and the user's remedies, as a message."""
        return msg(
            "the storage of {tenant} is full: {used} of {limit} are used, {mine} of that by you ({things}). Delete files in your home, runs of jobs, datasets or models, or ask an admin of {tenant} for more. It is measured again when running work has ended, or in a minute",
            tenant=TenantRef(self.tenant),
            used=quantity("rom", self.used),
            limit=quantity("rom", self.limit),
            mine=quantity("rom", self.held[user]),
            things=tuple(self.things[user][:MOST_NAMED]),
        )


class FullStorages:
    """Tells whose storage is full; only where homes and jobs' directories are charged.

    It is asked at every submission. So it remembers which tenants have no limit, until told that tenants have changed.
    """

    def __init__(
        self,
        board: Board,
        nodes: Callable[[], Sequence[NodeInfo]],
        clock: Callable[[], float],
        *,
        is_on: bool,
    ) -> None:
        self._board, self._nodes, self._clock, self._is_on = board, nodes, clock, is_on
        self._unlimited: set[str] = set()

    def forget(self) -> None:
        """Read again from now on which tenants have no limit: some have changed."""
        self._unlimited = set()

    async def check(self, user: str, tenant: str) -> None:
        """Refuse a new job of somebody who holds more than an equal part of a storage that is full."""
        why = await self.warning(user, tenant)
        if why is not None:
            raise Refused(Reason.WAITING_FOR_QUOTA, why)

    async def warning(self, user: str, tenant: str) -> Message | None:
        """Say so as a sentence; None where there is nothing to say."""
        unlimited = self._unlimited
        if not self._is_on or tenant in unlimited:
            return None

        def look(tx: Tx) -> tuple[bool, FullStorage | None]:
            return _is_unlimited(tx.tenants.get(tenant)), self._of(tx, tenant)

        free, found = await self._board.db.read(look)
        if free:
            unlimited.add(tenant)  # into what was forgotten meanwhile, if it was
        return found.says(user) if found is not None and found.stops(user) else None

    async def warn(self) -> None:
        """Write it into the timelines of jobs that run, once into each."""
        jobs = list(self._board.holding.values()) if self._is_on else []
        if not jobs:
            return
        tenants = {job.spec.tenant for job in jobs}

        def look(tx: Tx) -> list[tuple[Job, Message]]:
            full = {tenant: found for tenant in tenants if (found := self._of(tx, tenant)) is not None}
            over = [
                (job, full[job.spec.tenant].says(job.spec.user))
                for job in jobs
                if job.spec.tenant in full and full[job.spec.tenant].stops(job.spec.user)
            ]
            warned = _warned(tx, [job.uid for job, _ in over])
            return [(job, why) for job, why in over if job.uid not in warned]

        found = await self._board.db.read(look)
        if not found:
            return
        now = self._clock()

        def work(tx: Tx, changes: Changes) -> None:
            warned = _warned(tx, [job.uid for job, _ in found])
            for job, why in found:
                if job.uid not in warned and tx.jobs.get(SYSTEM, job.uid) is not None:
                    changes.add_event(tx, job.uid, now, Step(WARNED, why, Reason.WAITING_FOR_QUOTA))

        await self._board.commit(work)

    def _of(self, tx: Tx, tenant: str) -> FullStorage | None:
        known = tx.tenants.get(tenant)
        if known is None or _is_unlimited(known):
            return None
        now, nodes = self._clock(), self._nodes()
        tree = Quotas(tx, now, nodes).tree(tenant)
        standing = standing_in(known, tree, limits(known, nodes), "rom")
        if standing is None or standing.used <= standing.limit:
            return None
        held: Counter[str] = Counter()
        things: dict[str, list[Message]] = {}
        rows = tx.ledger.held(now, tenant=tenant, applier=OF_STORAGE)
        for row in sorted(rows, key=lambda row: -row.amount.rom):
            held[row.user] += row.amount.rom
            amount = quantity("rom", row.amount.rom)
            things.setdefault(row.user, []).append(
                msg("{thing}: {amount}", thing=holder_of(row), amount=amount)
            )
        return FullStorage(tenant, standing.limit, standing.used, held, things)


def _is_unlimited(tenant: Tenant | None) -> bool:
    """Whether there is this tenant, and its storage can never be full: neither its own limit nor others' holds."""
    if tenant is None:
        return False
    return tenant.quota.rom is None and tenant.parent is None and tenant.cohort is None


def _warned(tx: Tx, jobs: Collection[str]) -> set[str]:
    return {uid for uid, _ in tx.events.of_kinds(jobs, [WARNED])}
