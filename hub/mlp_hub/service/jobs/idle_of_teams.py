"""Idle servers and jobs of teams, listed for their admins, who get a notice once a day at most.

The notice of a team is one sentence with sums, however much is idle. Its time is stored with it, so a restart repeats none. A
clock that is set back puts the next one off, and one that is set forward brings it sooner once.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mlp_api.jobs.idle_jobs import IdleHolding
from mlp_hub.domain.jobs.idle_gpus import LONG_S
from mlp_hub.domain.notices.notice import AskedFor, NoticeKind
from mlp_hub.domain.resources import Resources, units
from mlp_hub.domain.tenants.tenant import Role
from mlp_hub.domain.workload.idle_policy import IdleKind
from mlp_hub.service.config import DAY_S
from mlp_hub.service.jobs.idle_jobs import IdleJobs
from mlp_hub.service.jobs.wire import ends_of
from mlp_hub.service.quota.idle_servers import IdleServerStops
from mlp_hub.service.support.people_notices import SubscribedNotices
from mlp_hub.service.support.units import when
from mlp_hub.store import Database, Tx
from mlp_hub.store.records import IdleTold
from mlp_language.message import Message, Span, TenantRef, msg, msgs

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Told:
    """When a team's admins were told: `at` by the wall clock, and `steady` by one that never jumps, unless that was before this process."""

    at: float
    steady: float | None


class IdleOfTeams:
    """Lists what teams hold and do not use, and tells their admins. `monotonic` is a clock that never jumps."""

    def __init__(
        self,
        db: Database,
        servers: IdleServerStops,
        jobs: IdleJobs,
        clock: Callable[[], float],
        notices: SubscribedNotices,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._db, self._servers, self._jobs = db, servers, jobs
        self._clock, self._notices, self._monotonic = clock, notices, monotonic
        self._told: dict[str, _Told] = {}

    async def start(self) -> None:
        """Load when the admins of teams were told last."""
        stored = await self._db.read(lambda tx: tx.idle_told.all())
        self._told = {one.tenant: _Told(one.at, None) for one in stored}

    async def of_team(self, tenant: str) -> list[IdleHolding]:
        """List the servers and jobs of a tenant that were not used for an hour, or that count down; the longest idle first."""
        servers, jobs = await self._db.read(
            lambda tx: (
                tx.idle_policies(IdleKind.SERVER).get(tenant),
                tx.idle_policies(IdleKind.JOB).get(tenant),
            )
        )
        now = self._clock()
        found = []
        for server, row in self._servers.long_idle(tenant):
            held = _amounts(row.amount)
            found.append(
                IdleHolding(
                    kind="server",
                    user=server.user,
                    name=server.server,
                    run=0,
                    idle_s=server.idle_s,
                    idle_since=when(now - server.idle_s),
                    left_s=server.left_s,
                    kept_s=server.kept_s,
                    ends=None if servers is None else "stop",
                    **held,
                )
            )
        for job, idle in self._jobs.long_idle(tenant):
            held = _amounts(job.spec.per_worker * max(1, len(job.placement)))
            found.append(
                IdleHolding(
                    kind="job",
                    user=job.spec.user,
                    name=job.spec.name,
                    run=job.run,
                    idle_s=idle.idle_s,
                    idle_since=when(now - idle.idle_s),
                    left_s=idle.left_s,
                    kept_s=idle.kept_s,
                    ends=None if jobs is None else ends_of(job),
                    claims=idle.claims,
                    **held,
                )
            )
        return sorted(found, key=lambda one: (-one.idle_s, one.user, one.name, one.run))

    async def tell(self) -> None:
        """Tell the admins of teams with idle servers or GPUs who have a subscription and were not told today."""
        wanting = set(self._notices.wanting(NoticeKind.IDLE_TEAM))
        if not wanting:
            return
        servers: dict[str, int] = {}
        jobs: dict[str, tuple[int, float]] = {}
        for server, _ in self._servers.long_idle():
            if server.idle_s >= LONG_S:
                servers[server.tenant] = servers.get(server.tenant, 0) + 1
        for job, idle in self._jobs.long_idle():
            if idle.idle_s >= LONG_S:
                number, gpus = jobs.get(job.spec.tenant, (0, 0.0))
                more = units(job.spec.per_worker.gpu) * len(job.placement)
                jobs[job.spec.tenant] = number + 1, gpus + more
        due = [tenant for tenant in sorted({*servers, *jobs}) if self._is_due(tenant)]
        if not due:
            return
        at = self._clock()

        def work(tx: Tx) -> tuple[set[str], list[str]]:
            users: set[str] = set()
            told = []
            for tenant in due:
                admins = {one.user for one in tx.members.of_tenant(tenant) if one.role is Role.ADMIN}
                if not admins & wanting:
                    continue
                what = NoticeKind.IDLE_TEAM, AskedFor.IDLE
                text = _words(tenant, servers.get(tenant, 0), *jobs.get(tenant, (0, 0.0)))
                users |= self._notices.asked(tx, admins, what, tenant, text)
                tx.idle_told.put(IdleTold(tenant, at))
                told.append(tenant)
            return users, told

        users, told = await self._db.write(work)
        self._told |= {tenant: _Told(at, self._monotonic()) for tenant in told}
        self._notices.notify(users)

    def _is_due(self, tenant: str) -> bool:
        told = self._told.get(tenant)
        if told is None:
            return True
        if told.steady is not None:
            return self._monotonic() - told.steady >= DAY_S
        now = self._clock()
        if now < told.at:  # the clock was set back while nobody looked: a day from now on
            self._told[tenant] = _Told(told.at, self._monotonic())
            return False
        return now - told.at >= DAY_S


def _amounts(of: Resources) -> dict[str, Any]:
    return {"cpu": units(of.cpu), "gpu": units(of.gpu), "ram": of.ram}


def _words(tenant: str, servers: int, jobs: int, gpus: float) -> Message:
    parts = []
    if servers:
        parts.append(msgs("{n} notebook server", "{n} notebook servers", n=servers))
    if jobs:
        parts.append(msgs("{n} job with {gpus} GPUs", "{n} jobs with {gpus} GPUs", n=jobs, gpus=f"{gpus:g}"))
    what = parts[0] if len(parts) == 1 else msg("{one} and {other}", one=parts[0], other=parts[1])
    return msg(
        "Team {tenant} holds {what} that nobody used for {time} or longer. The page of the team lists them and has the policies that end them.",
        tenant=TenantRef(tenant),
        what=what,
        time=Span(LONG_S),
    )
