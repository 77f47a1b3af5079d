"""Nodes: what is there, what may be given out, and who holds it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlp_api import types as api
from mlp_hub.executors.base import Executor
from mlp_hub.service import wire
from mlp_hub.store import Database


class Nodes:
    """The executor's nodes beside the ledger's rows that take their capacity."""

    def __init__(self, db: Database, executor: Executor, clock: Callable[[], float]) -> None:
        self._db = db
        self._executor = executor
        self._clock = clock

    async def list(self) -> Sequence[api.Node]:
        """Return all nodes with their holders."""
        now = self._clock()
        holders = await self._db.read(lambda tx: tx.ledger.on_nodes(now))
        return [wire.node_to(node, holders) for node in self._executor.nodes()]
