"""Workers of the queue for stored objects: the code that all kinds share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mlp_hub.domain.stored.storage import StoredItem, StoredKind
from mlp_hub.executors.base import Executor
from mlp_hub.executors.workspace import StoredPlace
from mlp_hub.service.lifecycle.effects import FencedEffects
from mlp_hub.service.lifecycle.workqueue import WorkQueue
from mlp_hub.service.state.leadership import Leadership
from mlp_hub.service.storage.ledger import StorageLedger
from mlp_hub.service.support.told import notifying
from mlp_hub.store.database import Database
from mlp_hub.store.tx import Tx


@dataclass(frozen=True, slots=True)
class WorkerContext:
    """Tools of workers of all kinds; `changed` is called after an action that can have made or taken room."""

    queue: WorkQueue
    db: Database
    executor: Executor
    lease: Leadership
    storage: StorageLedger
    changed: Callable[[], None]


class StoredWorker:
    """Acts on files of a kind of things, only while this service decides."""

    kind: str

    def __init__(self, context: WorkerContext) -> None:
        self._queue, self._db, self._workspace = context.queue, context.db, context.executor.workspace
        self._effects = FencedEffects(context.executor, context.lease)
        self._storage = context.storage
        self._changed = context.changed
        self._queue.serve(self.kind, self._work)

    async def _work(self, uid: str) -> bool:
        raise NotImplementedError

    async def _erase(self, item: StoredItem, forget: Callable[[Tx, str], object]) -> None:
        """Remove its files, then forget it and give back what it held."""
        await self._effects.erase_stored(place_of(item))

        def work(tx: Tx) -> None:
            forget(tx, item.uid)
            self._storage.drop(tx, item.uid)

        await notifying(self._db.write(work), self._changed)


def place_of(item: StoredItem) -> StoredPlace:
    """Return where the files of something that is stored lie."""
    owner = item.tenant if item.kind is StoredKind.ENVIRONMENT else item.user  # its members all see it
    return StoredPlace(item.kind.value, owner, item.name, item.tenant)
