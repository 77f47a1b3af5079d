"""Queue of the cluster: what waits and what runs, jobs and what asks through the ledger alike."""

from __future__ import annotations

from mlp_api import jobs as jobs_api
from mlp_hub.domain.job import HOLDING, Job, Phase
from mlp_hub.domain.ledger import ResourceRequest
from mlp_hub.scheduler.model.types import Wait
from mlp_hub.service.admission.loop import Admission
from mlp_hub.service.forecast.service import Forecasts
from mlp_hub.service.jobs import wire
from mlp_hub.service.state.board import Board

Entries = list[jobs_api.QueueEntry]


class ClusterQueue:
    """The queue as people look at it. A notebook server is in it while it waits; one that runs holds what `nodes` and tenants show."""

    def __init__(self, board: Board, admission: Admission, forecasts: Forecasts) -> None:
        self._board = board
        self._admission = admission
        self._forecasts = forecasts

    async def entries(self, tenant: str | None = None) -> Entries:
        """Return all that waits or holds quota: what runs first, then by tenant and place."""
        jobs = [
            j
            for j in self._board.jobs.values()
            if tenant in (None, j.spec.tenant) and j.phase is not Phase.DELETING
        ]
        asked = [r for r in self._admission.pending.values() if tenant in (None, r.tenant)]
        waiting = [*(r.uid for r in asked), *(j.uid for j in jobs if j.phase is Phase.QUEUED)]
        waits = self._admission.waits(waiting)
        expected = await self._forecasts.expected(waiting)
        either: list[Job | ResourceRequest] = [*jobs, *asked]
        every = sorted(either, key=lambda one: _place(one, waits.get(one.uid)))
        return [
            wire.queue_to(one, waits.get(one.uid), expected.get(one.uid))
            if isinstance(one, Job)
            else wire.pending_to(one, waits.get(one.uid), expected.get(one.uid))
            for one in every
        ]


def _place(one: Job | ResourceRequest, wait: Wait | None) -> tuple[bool, bool, str, int, str]:
    position = 0 if wait is None else wait.position
    if isinstance(one, Job):
        return one.phase not in HOLDING, one.phase is Phase.SUSPENDED, one.spec.tenant, position, one.uid
    return True, False, one.tenant, position, one.uid
