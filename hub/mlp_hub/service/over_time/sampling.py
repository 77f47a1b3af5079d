"""Samples of the leader: one statement every half a minute, for tenants that have anything to tell."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence

from mlp_hub.background import BackgroundTask
from mlp_hub.domain.apps.app_usage import AppUse
from mlp_hub.domain.errors import Unavailable
from mlp_hub.domain.over_time.grains import GRAINS
from mlp_hub.domain.over_time.sums import SpanSums, together
from mlp_hub.domain.resources import ZERO
from mlp_hub.domain.tenants.tenant import Tenant
from mlp_hub.executors.node_use import NodeUse
from mlp_hub.executors.nodes import NodeInfo
from mlp_hub.service.monitoring.look import DatabaseLook
from mlp_hub.service.monitoring.service import Monitoring
from mlp_hub.service.over_time.happened import AnswersOfApps, JobEvents, answers_since
from mlp_hub.service.over_time.thinning import store_sample
from mlp_hub.service.state.moves import Move
from mlp_hub.service.state.tallies import Tallies

log = logging.getLogger(__name__)
CLUSTER = ""
"""Contract: the name of the cluster's own sums; no tenant has it."""
FINEST_S = GRAINS[0].seconds
MARGIN_S = 0.05
"""Tuning: seconds after the begin of a span at which its sample is taken: clocks differ a little."""
NEW = "New"
"""Contract: reason of jobs that no cycle has looked at."""
Limits = tuple[int | None, int | None, int | None]


class OverTimeSampler:
    """Takes the samples of the parts that `/metrics` shows; `clock` gives seconds since the epoch."""

    def __init__(self, monitoring: Monitoring, clock: Callable[[], float]) -> None:
        self._monitoring, self._parts, self._clock = monitoring, monitoring.parts, clock
        self._events = JobEvents()
        self._apps: Mapping[str, AppUse] | None = None
        self._limits: dict[str, Limits] = {}
        self._last: int | None = None
        self._task = BackgroundTask(self._run)
        self._parts.board.on_moves.append(self._moved)

    def start(self) -> None:
        """Take samples from now on; the first one covers a whole span, because counts of events begin now."""
        self._forget()
        self._task.start()

    async def stop(self) -> None:
        """Take no more samples: another replica may."""
        await self._task.stop()
        self._forget()

    def _moved(self, moves: Sequence[Move]) -> None:
        self._events.moved(moves)

    def _forget(self) -> None:
        self._events, self._apps, self._limits, self._last = JobEvents(), None, {}, None

    async def _run(self) -> None:
        await asyncio.sleep(FINEST_S)
        while True:
            await asyncio.sleep(FINEST_S - self._clock() % FINEST_S + MARGIN_S)
            try:
                await self.sample()
            except Unavailable:  # a gap tells that nothing was known
                continue
            except Exception:
                log.exception("a sample could not be taken")

    async def sample(self) -> bool:
        """Store a sample of now; False where this span has one. Raises `Unavailable`.

        What happened since the last stored sample is a part of the next one that is stored, so that each event counts once.
        """
        look = await self._monitoring.look_around()
        if not self._events.tenants <= {tenant.name for tenant in look.tenants}:
            look = await self._monitoring.look_around(newly=True)  # a tenant is newer than the last look
        uses = await self._monitoring.node_uses(known=True) or ()
        events, self._events = self._events, JobEvents()
        stored = False
        try:
            sums = self._sums(look, uses, events)
            now = int(self._clock() // FINEST_S)
            last = self._last
            # a sample is a measurement that the next one follows: no reason to wait for the disk
            stored = await self._parts.db.write(
                lambda tx: store_sample(tx.over_time, now, last, sums), durable=False
            )
        finally:
            if not stored:
                self._events.add(events)
        if stored:
            self._last, self._apps = now, look.apps
            self._limits = {tenant.name: limits_of(tenant) for tenant in look.tenants}
        return stored

    def _sums(self, look: DatabaseLook, uses: Sequence[NodeUse], events: JobEvents) -> dict[str, SpanSums]:
        tallies, counts = self._parts.board.tallies, self._parts.admission.reason_counts
        found: dict[str, SpanSums] = {}
        of_all: list[SpanSums] = []
        for tenant in look.tenants:
            name, one = tenant.name, sample_of(look, tenant, tallies)
            answers = self._answers(name, look.apps)
            one = one._replace(
                reasons=_with_new(counts.of_tenant(name), one.waiting),
                waits=events.waits.get(name, {}),
                ends=events.ends_of(name),
                requests=answers.requests,
                errors=answers.errors,
                latency=answers.latency,
            )
            if not one.is_idle:
                found[name] = one
                of_all.append(one)
            elif self._limits.get(name, one.limit) != one.limit:  # else nobody would know since when
                found[name] = one
        found[CLUSTER] = _of_cluster(together(of_all), self._parts.nodes(), uses)
        return found

    def _answers(self, name: str, apps: Mapping[str, AppUse]) -> AnswersOfApps:
        if self._apps is None or name not in apps:
            return AnswersOfApps()
        return answers_since(self._apps.get(name), apps[name])


def sample_of(look: DatabaseLook, tenant: Tenant, tallies: Tallies) -> SpanSums:
    """Return one sample of a tenant's use, its requests and its waits, without reasons and events."""
    name = tenant.name
    held = look.held.get(name, ZERO)
    amounts, used = (held.cpu, held.ram, held.gpu), (tallies.cpu[name], tallies.ram[name], 0)
    return SpanSums(
        samples=1,
        held=amounts,
        held_most=amounts,
        used=used,
        used_most=used,
        limit=limits_of(tenant),
        waiting=tallies.waiting[name],
        waiting_most=tallies.waiting[name],
        running=tallies.running[name],
        running_most=tallies.running[name],
    )


def limits_of(tenant: Tenant) -> Limits:
    """Return the quota of a tenant in the order of samples."""
    return tenant.quota.cpu, tenant.quota.ram, tenant.quota.gpu


def room_of(nodes: Sequence[NodeInfo]) -> Limits:
    """Return what jobs can have of the ready nodes, in the order of samples."""
    room = ZERO
    for node in nodes:
        if node.ready:
            room += node.allocatable
    return room.cpu, room.ram, room.gpu


def _with_new(reasons: Mapping[str, int], waiting: int) -> Mapping[str, int]:
    """Add those that no cycle has looked at, of all that wait."""
    fresh = waiting - sum(reasons.values())
    return {**reasons, NEW: fresh} if fresh > 0 else dict(reasons)


def _of_cluster(tenants: SpanSums, nodes: Sequence[NodeInfo], uses: Sequence[NodeUse]) -> SpanSums:
    """Return one sample of the cluster from the sums of its tenants: its limit is what ready nodes have."""
    gpus = [gpu.utilization for use in uses for gpu in use.gpus if gpu.utilization is not None]
    used = (*tenants.used[:2], round(sum(gpus) * 1000))
    return tenants._replace(
        samples=1,
        held_most=tenants.held,
        used=used,
        used_most=used,
        gpu_samples=1 if gpus else 0,
        limit=room_of(nodes),
        waiting_most=tenants.waiting,
        running_most=tenants.running,
    )
