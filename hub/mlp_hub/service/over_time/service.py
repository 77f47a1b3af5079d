"""Answers about use, waits, failures and apps over time, and the samples that they are made of."""

from __future__ import annotations

from collections.abc import Callable

from mlp_api.platform import over_time as api
from mlp_hub.domain.errors import not_found
from mlp_hub.domain.over_time.grains import GRAINS, SumsOfSpan, TimeSteps, in_steps, steps_of
from mlp_hub.service.monitoring.service import Monitoring
from mlp_hub.service.over_time.sampling import CLUSTER, OverTimeSampler, limits_of, room_of
from mlp_hub.service.over_time.wire import Limits, over_time_to
from mlp_hub.store.tx import Tx


class OverTimeService:
    """Use cases of the samples. Whether the caller may ask about a tenant is for the caller to check."""

    def __init__(self, monitoring: Monitoring, clock: Callable[[], float]) -> None:
        self._parts, self._clock = monitoring.parts, clock
        self.sampler = OverTimeSampler(monitoring, clock)

    def start(self) -> None:
        """Take samples from now on."""
        self.sampler.start()

    async def stop(self) -> None:
        """Take no more samples."""
        await self.sampler.stop()

    async def of_tenant(self, tenant: str, span: str, step: int | None) -> api.OverTime:
        """Return a tenant's. Raises `Invalid`, `NotFound`."""
        return await self._answer(tenant, span, step)

    async def of_cluster(self, span: str, step: int | None) -> api.OverTime:
        """Return those of all tenants together, with the capacity of the nodes. Raises `Invalid`."""
        return await self._answer(CLUSTER, span, step)

    async def _answer(self, tenant: str, span: str, step: int | None) -> api.OverTime:
        now = self._clock()
        steps, room = steps_of(span, step, now), room_of(self._parts.nodes())

        def work(tx: Tx) -> tuple[list[SumsOfSpan], Limits]:
            if tenant == CLUSTER:
                return stored_in(tx, steps, tenant, now), room
            there = tx.tenants.get(tenant)
            if there is None:
                raise not_found("tenant", tenant)
            return stored_in(tx, steps, tenant, now), limits_of(there)

        stored, limit = await self._parts.db.read(work)
        found = in_steps(steps, stored, tenant)
        if found and not found[-1].samples:
            found.pop()  # it has just begun
        return over_time_to(tenant or None, span, steps, found, limit)


def stored_in(tx: Tx, steps: TimeSteps, tenant: str, now: float) -> list[SumsOfSpan]:
    """Return the sums of the steps, of a tenant and the cluster.

    Spans that are not over are not rolled up yet: their parts are of finer grains. Nothing lies after now, whatever a wrong
    clock has told.
    """
    found: list[SumsOfSpan] = []
    finest = GRAINS[0].seconds
    since, until = steps.since, (int(now // finest) + 1) * finest
    for grain in range(steps.grain, -1, -1):
        seconds, kept = GRAINS[grain]
        last = until // seconds
        rows = tx.over_time.of(
            seconds, range(max(-(-since // seconds), last - kept), last), {tenant, CLUSTER}
        )
        found += rows
        since = max([since, *(row.since + seconds for row in rows)])
    return found
