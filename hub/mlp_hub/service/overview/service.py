"""Overview of the state of the whole platform, from memory and one shared look at the quotas.

An answer costs a pass over the jobs that have not ended, whatever the number of administrators and
of waiting jobs.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from heapq import nsmallest

import msgspec

from mlp_api import types
from mlp_api.jobs.jobs import QueueEntry
from mlp_api.localized import Text
from mlp_api.platform import overview as api
from mlp_hub.domain.apps.app import App, AppPhase
from mlp_hub.domain.dimensions import COUNTED, FLAT
from mlp_hub.domain.jobs.job import Job, Phase
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.domain.workload.ledger import ResourceRequest
from mlp_hub.domain.workload.workload import SERVER
from mlp_hub.executors.nodes import NodeInfo
from mlp_hub.scheduler.model.types import Wait
from mlp_hub.service.admission.loop import Admission
from mlp_hub.service.forecast.calibration import Calibration, StartsCounted
from mlp_hub.service.health.problems import Problems
from mlp_hub.service.jobs import wire
from mlp_hub.service.state.board import Board
from mlp_hub.service.support.units import maybe_when, when
from mlp_hub.service.tenants.service import TenantService
from mlp_hub.store.database import Database
from mlp_language.message import NOTHING

FRESH_S = 3.0
"""Tuning: seconds for which a look at the quotas counts: fewer of them, for how late a change is seen."""
TEAMS = 30
"""Tuning: number of tenants shown; a trade of a reader's attention against a link to all of them."""
LONGEST = 5
"""Tuning: number of waiting workloads named; a reader's attention against a link to the queue."""
TROUBLES = 20
"""Tuning: number of closed nodes named, and of apps in error: the amount for one glance."""


class PlatformOverview:
    """Overview of the platform; `nodes` lists the nodes as the scheduler sees them."""

    def __init__(  # noqa: PLR0917 - the composition root gives it all
        self,
        db: Database,
        board: Board,
        admission: Admission,
        tenants: TenantService,
        problems: Problems,
        nodes: Callable[[], Sequence[NodeInfo]],
        clock: Callable[[], float],
        starts: StartsCounted,
    ) -> None:
        self._db = db
        self._starts = starts
        self._board = board
        self._admission = admission
        self._tenants = tenants
        self._problems = problems
        self._nodes = nodes
        self._clock = clock
        self._one = asyncio.Lock()
        self._looked = float("-inf")
        self._at = 0.0
        self._teams: Sequence[types.Tenant] = ()
        self._servers = 0
        self._failing: Sequence[App] = ()

    async def now(self) -> api.Overview:
        """Return it."""
        await self._look()
        problems = await self._problems.now()
        jobs = self._board.jobs.values()
        pending = list(self._admission.pending.values())
        waiting = list(self._board.waiting.values())
        replicas = [j for j in self._board.holding.values() if j.spec.replica is not None]
        nodes = self._nodes()
        shut = [n for n in nodes if not n.schedulable]
        return api.Overview(
            at=when(self._at),
            teams=[_team(t) for t in _foremost(self._teams)],
            teams_all=len(self._teams),
            running=sum(j.spec.replica is None for j in self._board.holding.values()),
            waiting=sum(j.spec.replica is None for j in waiting),
            suspended=sum(j.phase is Phase.SUSPENDED and j.spec.replica is None for j in jobs),
            reasons=self._reasons(waiting, pending),
            longest=self._longest(waiting, pending),
            problems=[
                api.OverviewProblem(component=p.component, reason=p.reason, message=Text(p.message))
                for p in problems
            ],
            nodes=len(nodes),
            nodes_up=sum(n.ready for n in nodes),
            nodes_open=len(nodes) - len(shut),
            troubles=[_trouble(n) for n in shut[:TROUBLES]],
            servers=self._servers,
            servers_waiting=sum(r.applier == SERVER.applier for r in pending),
            apps=len({(j.spec.user, j.spec.replica.app) for j in replicas if j.spec.replica is not None}),
            replicas=len(replicas),
            replicas_waiting=sum(j.spec.replica is not None for j in waiting),
            apps_failing=len(self._failing),
            app_troubles=[
                api.AppTrouble(user=a.user, name=a.name, tenant=a.tenant, message=Text(a.message))
                for a in self._failing[:TROUBLES]
            ],
            forecasts=_calibration(self._starts.counts),
        )

    async def _look(self) -> None:
        """Look at the quotas and at apps in error, unless somebody did so just now."""
        async with self._one:
            if time.monotonic() - self._looked < FRESH_S:
                return
            now = self._clock()
            self._teams = await self._tenants.list()
            self._servers, self._failing = await self._db.read(
                lambda tx: (
                    len(tx.ledger.held(now, applier=SERVER.applier)),
                    tx.apps.all(SYSTEM, phase=AppPhase.ERROR),
                )
            )
            self._looked, self._at = time.monotonic(), now

    def _reasons(self, jobs: Sequence[Job], asked: Sequence[ResourceRequest]) -> list[api.WaitingFor]:
        """Count by the last reason of each; the reasons of the few servers are queried."""
        said = self._admission.last_said
        found: dict[str | None, list[tuple[float, Wait | None]]] = {}
        now = self._admission.waits([r.uid for r in asked]) if asked else {}
        for since, wait in (
            *((_since(j), said.get(j.uid)) for j in jobs),
            *((_since(r), now.get(r.uid)) for r in asked),
        ):
            reason = None if wait is None else wait.verdict.reason.value
            found.setdefault(reason, []).append((since, wait))
        rows = []
        for reason, those in sorted(found.items(), key=lambda one: (-len(one[1]), one[0] or "")):
            first = min(those, key=lambda one: one[0])[1]
            message = NOTHING if first is None else first.verdict.headline
            rows.append(api.WaitingFor(reason=reason, count=len(those), message=Text(message)))
        return rows

    def _longest(self, jobs: Sequence[Job], asked: Sequence[ResourceRequest]) -> list[QueueEntry]:
        """Describe those that wait longest; when they start is on the queue's page, where it is worked out."""
        first: list[Job | ResourceRequest] = nsmallest(LONGEST, [*jobs, *asked], key=_since)
        waits = self._admission.waits([one.uid for one in first])
        return [
            wire.queue_to(one, waits.get(one.uid), None)
            if isinstance(one, Job)
            else wire.pending_to(one, waits.get(one.uid), None)
            for one in first
        ]


def _since(one: Job | ResourceRequest) -> float:
    if isinstance(one, Job):
        return one.submitted_at if one.waiting_since is None else one.waiting_since
    return one.created_at


def _foremost(teams: Sequence[types.Tenant]) -> list[types.Tenant]:
    """Return tenants above their limits first, then by the largest part of quota used, then by waiting work."""
    return nsmallest(TEAMS, teams, key=lambda t: (not t.over, -_part(t), -t.waiting, t.name))


def _part(team: types.Tenant) -> float:
    """Return the largest used part of a tenant's limits; without a quota, any use is a small part."""
    parts = [0.0]
    pairs = [(getattr(team, d), getattr(team, f"{d}_inuse")) for d in FLAT]
    pairs += [(team.amounts.get(d), team.amounts_inuse.get(d, 0)) for d in COUNTED]
    for limit, used in pairs:
        parts.append(used / limit if limit else (1e-3 if used else 0.0))
    return round(max(parts), 3)


def _team(team: types.Tenant) -> api.TeamHolds:
    return api.TeamHolds(**{name: getattr(team, name) for name in api.TeamHolds.__struct_fields__})


def _calibration(counts: Calibration) -> api.ForecastCalibration:
    return api.ForecastCalibration(
        since=maybe_when(counts.since), before=counts.before, inside=counts.inside, after=counts.after
    )


def _trouble(node: NodeInfo) -> api.NodeTrouble:
    conditions = [{"kind": c.kind.value, "message": c.message} for c in node.conditions]
    return api.NodeTrouble(
        name=node.name, up=node.ready, conditions=msgspec.convert(conditions, list[types.NodeCondition])
    )
