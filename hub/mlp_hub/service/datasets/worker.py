"""Worker of the queue that brings datasets to where their phase says: measured when ready, gone when deleted.

It reads what is stored and does the next thing, however often it is asked: this is operation, and recovery too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from mlp_hub.domain.dataset import Dataset, DatasetPhase
from mlp_hub.domain.storage import StoredItem
from mlp_hub.executors.base import Executor, Superseded
from mlp_hub.executors.workspace import StoredPlace
from mlp_hub.service.lifecycle.effects import Acts
from mlp_hub.service.lifecycle.workqueue import WorkQueue
from mlp_hub.service.state.leadership import Leadership, LeaseLost
from mlp_hub.service.storage.ledger import StorageLedger
from mlp_hub.service.support.told import told
from mlp_hub.store.database import Database
from mlp_hub.store.tx import Tx

KIND = "dataset"
P = DatasetPhase


class DatasetWorker:
    """Acts on datasets' files, only while this service decides."""

    def __init__(
        self,
        queue: WorkQueue,
        db: Database,
        executor: Executor,
        lease: Leadership,
        storage: StorageLedger,
        *,
        changed: Callable[[], None],
    ) -> None:
        self._queue, self._db, self._workspace = queue, db, executor.workspace
        self._acts = Acts(executor, lease)
        self._storage = storage
        self._changed = changed
        self._unmeasured: set[str] = set()
        queue.serve(KIND, self._work)

    async def start(self) -> None:
        """Look at all that are not at rest."""
        for each in await self._db.read(lambda tx: tx.datasets.in_phases(tuple(P))):
            if each.phase is P.DELETING or (each.phase is P.READY and each.item.reserved):
                self.look_at(each.item.uid)

    def look_at(self, uid: str) -> None:
        """Have a dataset looked at soon."""
        self._queue.add((KIND, uid))

    def measure(self, uid: str) -> None:
        """Have a dataset that is ready measured soon: its owner's notebook may have written to it, which nobody counts."""
        self._unmeasured.add(uid)
        self.look_at(uid)

    async def recount(self) -> None:
        """Measure all that something was being written to."""
        for item in await self._db.read(lambda tx: tx.stored.granted()):
            used = await self._workspace.stored_size(place_of(item))
            work = partial(self._storage.settle, uid=item.uid, used=used, reserved=item.reserved)
            await told(self._db.write(work), self._changed)
            self.look_at(item.uid)

    async def _work(self, uid: str) -> bool:
        found = await self._db.read(lambda tx: tx.datasets.get(uid))
        asked = uid in self._unmeasured
        self._unmeasured.discard(uid)
        if found is None:
            return False
        if found.phase is P.DELETING:
            return await self._erase(found)
        if found.phase is P.READY and (found.item.reserved or asked) and not found.item.granted:
            return await self._measure(found)
        return False

    async def _measure(self, found: Dataset) -> bool:
        """Charge a dataset that is ready with what its files take; again at once where something was written meanwhile."""
        used = await self._workspace.stored_size(place_of(found.item))

        def work(tx: Tx) -> bool:
            if tx.datasets.get(found.item.uid) != found:
                return True
            self._storage.settle(tx, found.item.uid, used)
            return False

        return await told(self._db.write(work), self._changed)

    async def _erase(self, found: Dataset) -> bool:
        uid = found.item.uid
        try:
            await self._acts.erase_stored(place_of(found.item))
        except (LeaseLost, Superseded):
            return False

        def work(tx: Tx) -> None:
            tx.datasets.remove(uid)
            self._storage.drop(tx, uid)

        await told(self._db.write(work), self._changed)
        return False


def place_of(item: StoredItem) -> StoredPlace:
    """Return where the files of something that is stored lie."""
    return StoredPlace(item.kind.value, item.user, item.name)
