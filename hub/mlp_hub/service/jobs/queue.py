"""Queue of the cluster: waiting and running work, both jobs and requests through the ledger."""

from __future__ import annotations

from mlp_api.jobs import jobs as jobs_api
from mlp_hub.domain.jobs.job import HOLDING, Job, Phase
from mlp_hub.domain.workload.ledger import ResourceRequest
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
        """Return all that waits or holds quota: running ones first, then by tenant and place."""
        return (await self.first(tenant))[0]

    async def first(self, tenant: str | None = None, most: int | None = None) -> tuple[Entries, int]:
        """Return running work, then waiting work by tenant and place, and the number of waiting ones.

        With `most`, at most that number of waiting ones is returned: those with the first places of all
        lines. Nobody reads sentences for thousands.
        """
        jobs = [
            j
            for j in self._board.jobs.values()
            if tenant in (None, j.spec.tenant) and j.phase is not Phase.DELETING
        ]
        asked = [r for r in self._admission.pending.values() if tenant in (None, r.tenant)]
        every: list[Job | ResourceRequest] = [*jobs, *asked]
        waits = self._admission.waits([one.uid for one in every if _waits(one)])
        total = len(every)
        if most is not None:
            held = [one for one in every if _holds(one)]
            others = [one for one in every if not _holds(one)]
            others.sort(key=lambda one: _first(one, waits.get(one.uid)))
            every = [*held, *others[:most]]
        expected = await self._forecasts.expected([one.uid for one in every if _waits(one)])
        every.sort(key=lambda one: _place(one, waits.get(one.uid)))
        found = [
            wire.queue_to(one, waits.get(one.uid), expected.get(one.uid), self._forecasts.outlook_of(one))
            if isinstance(one, Job)
            else wire.pending_to(
                one, waits.get(one.uid), expected.get(one.uid), self._forecasts.outlook_of_waiting(one.uid)
            )
            for one in every
        ]
        return found, total


def _waits(one: Job | ResourceRequest) -> bool:
    return not isinstance(one, Job) or one.phase is Phase.QUEUED


def _holds(one: Job | ResourceRequest) -> bool:
    return isinstance(one, Job) and one.phase in HOLDING


def _first(one: Job | ResourceRequest, wait: Wait | None) -> tuple[bool, int, str]:
    """Order by place in line: the first of each line come first, and those that do not wait last."""
    return not _waits(one), 0 if wait is None else wait.position, one.uid


def _place(one: Job | ResourceRequest, wait: Wait | None) -> tuple[bool, bool, str, int, str]:
    position = 0 if wait is None else wait.position
    if isinstance(one, Job):
        return one.phase not in HOLDING, one.phase is Phase.SUSPENDED, one.spec.tenant, position, one.uid
    return True, False, one.tenant, position, one.uid
