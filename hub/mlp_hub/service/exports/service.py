"""Component of the exporters of metric points; without a target nothing is loaded, listened to or stored."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mlp_hub.domain.jobs.job import Job
from mlp_hub.service.config import ExportPolicy
from mlp_hub.service.health.problems import Problem
from mlp_hub.service.metrics.storing import PointStore
from mlp_hub.service.monitoring.gauges import Family, of_exports
from mlp_hub.service.monitoring.service import Monitoring
from mlp_hub.service.notices.sender import Sender
from mlp_hub.service.state.board import Board
from mlp_hub.store.records import Appended
from mlp_hub.store.tx import Tx

if TYPE_CHECKING:
    from mlp_hub.service.exports.exporter import PointExporter


class ExportService:
    """All exporters of this hub; they run while it leads.

    `monitoring` counts, and `sender` makes the process that sends to one kind of target.
    """

    def __init__(
        self,
        board: Board,
        points: PointStore,
        policies: Sequence[ExportPolicy],
        monitoring: Callable[[], Monitoring],
        sender: Callable[[str], Sender],
    ) -> None:
        self._board = board
        self._points = points
        self._policies = policies
        self._monitoring = monitoring
        self._sender = sender
        self.running: tuple[PointExporter, ...] = ()

    def start(self) -> None:
        """Export from now on, and what a former leader did not."""
        if not self._policies or self.running:
            return
        from mlp_hub.service.exports.exporter import PointExporter  # noqa: PLC0415 - few hubs have one

        monitoring = self._monitoring()
        monitoring.sources.append(self._families)
        self.running = tuple(
            PointExporter(self._board.db, self._sender(policy.kind), policy, monitoring.events)
            for policy in self._policies
        )
        self._points.beginners.append(self._begin)
        self._points.exporters.append(self._stored)
        self._board.on_change(self._changed)  # which forgets all who listen when it stops
        for exporter in self.running:
            exporter.start()

    async def stop(self) -> None:
        """Export no more; the next leader continues from the stored cursors."""
        running, self.running = self.running, ()
        if running:
            self._monitoring().sources.remove(self._families)
            self._points.beginners.remove(self._begin)
            self._points.exporters.remove(self._stored)
            await asyncio.gather(*(exporter.stop() for exporter in running))

    async def problems(self) -> Sequence[Problem]:
        """List the targets that do not take points now."""
        return [
            Problem("metrics", "PointExport", exporter.trouble, fails=False)
            for exporter in self.running
            if exporter.trouble is not None
        ]

    def _families(self) -> list[Family]:
        """Return how far the exporters are behind."""
        return list(of_exports({exporter.kind: exporter.behind for exporter in self.running}))

    def _begin(self, tx: Tx, uid: str) -> None:
        for exporter in self.running:
            exporter.begin(tx, uid)

    def _stored(self, uid: str, done: Appended) -> None:
        for exporter in self.running:
            exporter.stored(uid, done)

    def _changed(self, job: Job, before: Job | None) -> None:
        for exporter in self.running:
            exporter.changed(job, before)
