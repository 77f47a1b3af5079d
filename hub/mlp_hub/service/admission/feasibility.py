"""Whether a job can ever run, with the nodes and tenants of now."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from mlp_hub.domain.errors import Refused
from mlp_hub.domain.jobs.job import JobSpec
from mlp_hub.executors.nodes import NodeInfo
from mlp_hub.scheduler.assign.feasible import Possible
from mlp_hub.scheduler.model.types import Snapshot, Verdict
from mlp_hub.service.admission.snapshot import waiting_job

MOST_SHAPES = 10_000
"""Safety: kinds of jobs whose answer is remembered: bounds memory."""


class CanRun:
    """Whether jobs can ever run on these nodes with these quotas; made once for many."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._possible = Possible.from_nodes(snapshot.nodes, snapshot.tenants)
        self._known: dict[tuple[object, ...], Verdict | None] = {}

    def check(self, spec: JobSpec) -> Verdict | None:
        """Return why such a job can never run; None when it can."""
        shape = (
            *(spec.tenant, spec.per_worker, spec.workers_min, spec.workers_max),
            *(spec.ps, spec.gpu_kind, spec.topology),
        )
        if shape not in self._known:
            if len(self._known) >= MOST_SHAPES:
                self._known.clear()
            self._known[shape] = self._possible.check(waiting_job(spec, "new", 0.0))
        return self._known[shape]


class Feasibility:
    """Keeps what tells whether jobs can ever run, until nodes or tenants change.

    `capacity` returns a snapshot of nodes and tenants without jobs.
    """

    def __init__(
        self, capacity: Callable[[], Awaitable[Snapshot]], nodes: Callable[[], Sequence[NodeInfo]]
    ) -> None:
        self._capacity = capacity
        self._nodes = nodes
        self._seen: Sequence[NodeInfo] = ()
        self._could: Sequence[tuple[object, ...]] = ()  # what the seen nodes could give out
        self._made: asyncio.Future[CanRun] | None = None

    def forget(self) -> None:
        """Note that tenants, or what others than jobs hold, have changed."""
        self._made = None

    async def now(self) -> CanRun:
        """Return what tells it with the tenants and nodes of now."""
        nodes = self._nodes()
        if nodes is not self._seen:
            could = [(n.name, n.at_most, n.gpu_kind, n.labels) for n in nodes]
            if could != self._could:  # what others hold on them comes and goes, and what is wrong with them
                self._made = None
            self._seen, self._could = nodes, could
        if self._made is None:
            # made once for all who ask at the same time
            self._made = asyncio.ensure_future(self._make())
        made = self._made
        return made.result() if made.done() else await asyncio.shield(made)

    async def check(self, spec: JobSpec) -> None:
        """Refuse a job that can never run, with the numbers."""
        verdict = (await self.now()).check(spec)
        if verdict is not None:
            raise Refused(verdict.reason, verdict.headline)

    async def _make(self) -> CanRun:
        try:
            return CanRun(await self._capacity())
        except BaseException:
            self._made = None  # the next one tries again
            raise
