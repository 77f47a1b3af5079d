"""Worker of the queue that brings datasets to where their phase says: measured when ready or in error, gone when deleted.

It reads what is stored and does the next thing, however often it is asked: this is operation, and recovery too. Now and then
it ends uploads that nobody was heard of, and measures what programs may have written to past the platform.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace

from mlp_hub.domain.errors import OutOfReach
from mlp_hub.domain.stored.dataset import Dataset, DatasetPhase, check_dataset_move
from mlp_hub.domain.stored.storage import StoredItem
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.executors.base import Superseded
from mlp_hub.executors.workspace import OpenSource, SourceAsk, Unfinished
from mlp_hub.service.datasets.copies import SourceCopies
from mlp_hub.service.datasets.sources import DataSources
from mlp_hub.service.datasets.stages import DataStages
from mlp_hub.service.lifecycle.stored import StoredWorker, WorkerContext, place_of
from mlp_hub.service.state.leadership import LeaseLost
from mlp_hub.service.support.told import notifying
from mlp_hub.store.tx import Tx
from mlp_language.message import Span, msg

P = DatasetPhase
AT_REST = frozenset({P.READY, P.ERROR})
MEASURED_EVERY_S = 600.0
"""Tuning: seconds after which a dataset is measured again though nobody said that it changed: sooner exact, for more looking."""
MOST_MEASURED = 50
"""Tuning: datasets that are measured again in one sweep, those that waited longest: size of a lot, for how long others wait
behind it."""
LOOKS_APART = 10
"""Tuning: times that a look at files takes, until something that is removed has them looked at again: less work, for how long what
is gone is charged."""
ANNOUNCED_S = 900.0
"""Safety: seconds for which room is kept for announced bytes while none come.

Bytes that come later need new room.
"""
QUICK_S = 1.0
"""Tuning: seconds for which who removes something waits until that is charged exactly."""


@dataclass(slots=True)
class DatasetTimes:
    """Times of a dataset in seconds since the epoch: when it was heard of, and when it was measured last; of this process alone."""

    heard: float
    came: float  # when bytes of it came last
    measured: float = 0.0
    due: bool = False  # it is to be measured again
    looked: float = 0.0  # when its files were looked at last, and for how long
    took_s: float = 0.0


class DatasetWorker(StoredWorker):
    """Measures datasets' files, and removes them."""

    kind = "dataset"

    def __init__(
        self,
        context: WorkerContext,
        *,
        clock: Callable[[], float],
        sources: DataSources,
        first_uid: int | None,
    ) -> None:
        super().__init__(context)
        self._clock = clock
        self._times: dict[str, DatasetTimes] = {}
        self._new: dict[str, asyncio.Future[None]] = {}  # whose directory is to be made
        self._copies = SourceCopies(self._db, self._storage, self._effects, sources, first_uid, self._changed)
        self.stages = DataStages(self._db, self._effects, self._copies, self._queue)

    async def start(self) -> None:
        """Look at all that are not at rest."""
        self._times = {}
        for each in await self._db.read(lambda tx: tx.datasets.in_phases(SYSTEM, tuple(P))):
            if each.phase is P.DELETING or each.is_copied or (each.phase in AT_REST and each.item.reserved):
                self.look_at(each.item.uid)

    async def address(self, source: OpenSource, ask: SourceAsk) -> str:
        """Return the address of one request to a source."""
        return await self._workspace.address(source, ask)

    def look_at(self, uid: str) -> None:
        """Have a dataset looked at soon."""
        self._queue.add((self.kind, uid))

    async def place(self, uid: str) -> None:
        """Have the directory of a new dataset made. Return when it is there; soon, where that takes long: WebDAV makes it too."""
        done = self._new[uid] = asyncio.get_running_loop().create_future()
        self.look_at(uid)
        await asyncio.wait([done], timeout=QUICK_S)

    def stop_copying(self, uid: str) -> None:
        """Request a look at a dataset whose copy must stop: the copied part stays."""
        self._copies.stop(uid)
        self.look_at(uid)

    def heard(self, uid: str, now: float) -> None:
        """Note that who uploads it was heard of."""
        self._of(uid, now).heard = now

    def came(self, uid: str, now: float) -> None:
        """Note that bytes of it came."""
        self._of(uid, now).came = now

    def put_off(self, by: float) -> None:
        """Move the times of the last report and the last bytes by `by` seconds: the clock was set."""
        for times in self._times.values():
            times.heard, times.came = times.heard + by, times.came + by

    def measure(self, uid: str, now: float) -> None:
        """Have a dataset measured soon: its owner's notebook may have written to it, which nobody counts."""
        self._of(uid, now).due = True
        self.look_at(uid)

    def rested(self, item: StoredItem) -> None:
        """Have what nothing is written to any more looked at, if there is a reason."""
        times = self._times.get(item.uid)
        if item.reserved or (times is not None and times.due):
            self.look_at(item.uid)

    async def shrunk(self, uid: str, now: float) -> None:
        """Measure what something was removed from: at once where that is quick, as it was the last time, and soon otherwise."""
        times = self._of(uid, now)
        times.due = True
        pause = times.took_s * LOOKS_APART - (self._clock() - times.looked)
        if pause > 0:
            self._queue.add_after((self.kind, uid), pause)
            return
        self.look_at(uid)
        looked = asyncio.ensure_future(self._quick_look(uid))
        await asyncio.wait([looked], timeout=QUICK_S)

    async def _quick_look(self, uid: str) -> None:
        with contextlib.suppress(Exception):  # whatever it is, the queue's own look meets it too
            found = await self._db.read(lambda tx: tx.datasets.get(SYSTEM, uid))
            if found is not None and found.phase is not P.DELETING and not found.item.granted:
                await self._measure(found)

    async def recount(self) -> None:
        """Have all looked at that something was being written to; it is charged as if that was written until then."""

        def work(tx: Tx) -> list[str]:
            found = tx.stored.granted()
            for item in found:
                self._storage.lapse(tx, item)
            return [item.uid for item in found]

        now = self._clock()
        for uid in await notifying(self._db.write(work), self._changed):
            self.measure(uid, now)

    async def end_silent_uploads(self, now: float, silent_s: float) -> None:
        """End uploads that nobody was heard of for `silent_s` (0: none), and have some of all others measured again."""
        before = set(self._times)
        found = await self._db.read(lambda tx: tx.datasets.in_phases(SYSTEM, (P.CREATING, *AT_REST)))
        known = {each.item.uid: self._of(each.item.uid, now) for each in found}
        for gone in before - known.keys():  # those that were made since are not in what was read
            self._times.pop(gone, None)
        for each in found:
            times = known[each.item.uid]
            if each.item.granted:
                times.heard = now
            if each.phase is P.CREATING and not each.is_copied and silent_s and now - times.heard >= silent_s:
                await self._end_silent(each, silent_s)
            waits = each.phase is P.CREATING and not each.is_copied and each.item.reserved > each.item.used
            if waits and now - max(times.came, each.item.made_at) >= ANNOUNCED_S:
                await self._end_announced(each)
            if each.is_read_through and each.item.used:
                self.look_at(each.item.uid)  # whether a job still needs what is here of it
        due = [uid for uid, times in known.items() if now - times.measured >= MEASURED_EVERY_S]
        for uid in sorted(due, key=lambda uid: known[uid].measured)[:MOST_MEASURED]:
            known[uid].measured, known[uid].due = now, True
            self.look_at(uid)

    async def _end_silent(self, found: Dataset, silent_s: float) -> None:
        uid = found.item.uid
        why = msg(
            "its upload sent nothing for {time}; received files are kept: continue it, or delete it",
            time=Span(silent_s),
        )

        def work(tx: Tx) -> None:
            now = tx.datasets.get(SYSTEM, uid)
            if now == found and not now.item.granted:  # else it was heard of meanwhile
                check_dataset_move(now, P.ERROR)
                tx.datasets.put(replace(now, phase=P.ERROR, message=why))

        await self._db.write(work)
        self.look_at(uid)

    async def _end_announced(self, found: Dataset) -> None:
        """Release the room of announced bytes that do not come: others of the tenant can have it."""

        def work(tx: Tx) -> None:
            now = tx.datasets.get(SYSTEM, found.item.uid)
            if now == found:  # else bytes of it came meanwhile
                tx.stored.put(replace(now.item, reserved=0))

        await notifying(self._db.write(work), self._changed)

    def _of(self, uid: str, now: float) -> DatasetTimes:
        return self._times.setdefault(uid, DatasetTimes(now, now))

    async def _work(self, uid: str) -> bool:
        found = await self._db.read(lambda tx: tx.datasets.get(SYSTEM, uid))
        if found is None:
            self._new.pop(uid, None)
            return False
        try:
            if found.phase is P.DELETING:
                await self._erase(found.item, lambda tx, uid: tx.datasets.remove(uid))
                return False
            await self._place(found)
            if found.is_copied:
                await self._copies.run(found)
                return True
            if found.is_read_through and found.phase is P.READY and await self.stages.work(found):
                self._of(uid, self._clock()).due = True
        except (LeaseLost, Superseded):
            return False
        except Unfinished:
            return True
        return await self._look(found)

    async def _place(self, found: Dataset) -> None:
        """Make the directory of a dataset that is new."""
        done = self._new.pop(found.item.uid, None)
        if done is None:
            return
        try:
            owner = await self._db.read(lambda tx: self._copies.owner_of(tx, found))
            with contextlib.suppress(OSError, OutOfReach):  # who uploads to it meets that too, and is told
                await self._effects.place(place_of(found.item), owner)
        finally:
            if not done.done():
                done.set_result(None)

    async def _look(self, found: Dataset) -> bool:
        """Measure a dataset, if there is a reason; return whether to do so again at once."""
        uid = found.item.uid
        times = self._times.get(uid)
        wanted = found.phase in AT_REST and found.item.reserved
        due = times is not None and times.due
        if found.item.granted and due:
            await self._measure_written(
                found
            )  # the exact look, which stays due, comes when nobody writes any more
        if found.item.granted or not (wanted or due):
            return False
        if times is not None:
            times.due = False  # whoever asks from here on may mean what comes after the look
        again = await self._measure(found)
        if times is not None and again:
            times.due = True
        return again

    async def _measure_written(self, found: Dataset) -> None:
        """Charge a dataset that is being written to with the size of its files, if that is more: an upload may never end."""
        used = await self._size(found)
        if used > found.item.used + found.item.granted:
            uid = found.item.uid
            await notifying(
                self._db.write(lambda tx: self._storage.raise_bytes(tx, uid, used)), self._changed
            )

    async def _size(self, found: Dataset) -> int:
        """Return the size of a dataset's files, and note how long that took."""
        times, began = self._of(found.item.uid, self._clock()), self._clock()
        used = await self._workspace.stored_size(place_of(found.item))
        times.looked = self._clock()
        times.took_s = times.looked - began
        return used

    async def _measure(self, found: Dataset) -> bool:
        """Charge a dataset with the size of its files; again at once if it was written to in the meantime."""
        used = await self._size(found)
        reserved = 0 if found.phase in AT_REST else found.item.reserved
        if (used, reserved) == (found.item.used, found.item.reserved):
            return False

        def work(tx: Tx) -> bool:
            if tx.datasets.get(SYSTEM, found.item.uid) != found:
                return True
            self._storage.settle(tx, found.item.uid, used, reserved)
            return False

        return await notifying(self._db.write(work), self._changed)
