"""Datasets that the platform copies from their sources: a step of the worker that can be cut and repeated.

The stored state requests the copy, and the present files show which ones are missing. Room is kept
for all bytes before the first arrives. In the end the dataset is charged with its actual size.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace

from mlp_hub.domain.errors import OutOfReach, Refused
from mlp_hub.domain.stored.dataset import Dataset, DatasetPhase, check_dataset_move
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.executors.workspace import OpenSource
from mlp_hub.loops import ask_loop
from mlp_hub.service.datasets.fetch_turns import FetchTurn, FetchTurns
from mlp_hub.service.datasets.sources import DataSources
from mlp_hub.service.lifecycle.effects import FencedEffects
from mlp_hub.service.lifecycle.stored import place_of
from mlp_hub.service.storage.ledger import StorageLedger
from mlp_hub.service.support.told import notifying
from mlp_hub.store.database import Database
from mlp_hub.store.tx import Tx
from mlp_language.message import NOTHING, Message, msg

log = logging.getLogger(__name__)
P = DatasetPhase
TRIES = 6
"""Safety: how often in a row a copy may die or meet an error of the disk, with a longer wait each time."""
ANSWER_S = 60.0
"""Safety: seconds for which who copies waits until its room is kept."""


class CopyStopped(Exception):  # noqa: N818 - what became of it
    """The dataset is not to be copied any further."""


class CopyMakesWay(Exception):  # noqa: N818 - what became of it
    """Exception: the copy gives its turn to others, and continues from there in its next one."""


class SourceCopies:
    """Copies sources. `first_uid` is as the policy has it."""

    def __init__(  # noqa: PLR0917 - parts of the worker
        self,
        db: Database,
        storage: StorageLedger,
        acts: FencedEffects,
        sources: DataSources,
        first_uid: int | None,
        changed: Callable[[], None],
    ) -> None:
        self._db, self._storage, self._effects, self._sources = db, storage, acts, sources
        self._first_uid, self._changed = first_uid, changed
        self._stopped: set[str] = set()
        self._failed: dict[str, int] = {}  # how often in a row, of this process alone
        self.turns = FetchTurns()

    def stop(self, uid: str) -> None:
        """Copy it no further."""
        self._stopped.add(uid)

    async def run(self, found: Dataset) -> None:
        """Copy all that is missing of it; it is ready then, or in error with the reason."""
        uid = found.item.uid
        async with self.turns.turn(found.item.user, found.item.tenant) as turn:
            self._stopped.discard(uid)
            now = await self._db.read(lambda tx: tx.datasets.get(SYSTEM, uid))
            if now is None or not now.is_copied:
                return
            try:
                source, owner = await self._db.read(lambda tx: self.opened(tx, now))
                await self._effects.fetch(source, place_of(now.item), owner, CopySteps(self, uid, turn))
            except (CopyStopped, CopyMakesWay):
                return
            except OutOfReach as away:  # nobody's fault: it waits for that however long it takes
                await self._waits(uid, away.message)
                raise
            except Refused as refused:
                self._failed.pop(uid, None)
                await self._end(uid, P.ERROR, refused.message)
            except OSError:
                self._failed[uid] = self._failed.get(uid, 0) + 1
                if self._failed[uid] < TRIES:
                    raise
                del self._failed[uid]
                log.exception("dataset %s of %s cannot be copied", now.item.name, now.item.user)
                again = msg(
                    "copying it failed {n} times; the hub's log has the reason; sync continues from there",
                    n=TRIES,
                )
                await self._end(uid, P.ERROR, again)
            else:
                self._failed.pop(uid, None)
                await self._end(uid, P.READY, NOTHING)

    def opened(self, tx: Tx, found: Dataset) -> tuple[OpenSource, int | None]:
        """Return what is needed to read its source, and whose its files are. Raises `Refused`, `OutOfReach`."""
        if tx.relocations.under_way(found.item.tenant) is not None:
            raise OutOfReach(msg("its team's files are being moved; it is copied automatically after that"))
        return self._sources.opened(tx, found), self.owner_of(tx, found)

    def owner_of(self, tx: Tx, found: Dataset) -> int | None:
        """Return the system uid whose its files are; None: the platform's own."""
        user = tx.users.get(found.item.user)
        number = 0 if user is None else user.number
        return None if self._first_uid is None else self._first_uid + number

    async def _waits(self, uid: str, why: Message) -> None:
        def work(tx: Tx) -> None:
            now = tx.datasets.get(SYSTEM, uid)
            if now is not None and now.is_copied and now.message != why:
                tx.datasets.put(replace(now, message=why))

        await self._db.write(work)

    async def _end(self, uid: str, phase: DatasetPhase, message: Message) -> None:
        def work(tx: Tx) -> None:
            now = tx.datasets.get(SYSTEM, uid)
            if now is None or not now.is_copied or self.is_stopped(uid):
                return  # its owner stopped it at the last moment; it may be asked for once more by now
            check_dataset_move(now, phase)
            progress = 100 if phase is P.READY else now.progress
            tx.datasets.put(replace(now, phase=phase, progress=progress, message=message))

        await notifying(self._db.write(work), self._changed)

    async def hold(self, uid: str, size: int) -> None:
        """Keep room for `size` more bytes than are there. Raises `Refused`."""

        def work(tx: Tx) -> None:
            self._storage.hold(tx, uid, size)

        await notifying(self._db.write(work), self._changed)

    async def note(self, uid: str, percent: int) -> None:
        """Store how far it is."""

        def work(tx: Tx) -> None:
            now = tx.datasets.get(SYSTEM, uid)
            if now is not None and now.is_copied:
                tx.datasets.put(replace(now, progress=percent, message=NOTHING))

        await self._db.write(work)

    def is_stopped(self, uid: str) -> bool:
        """Return whether the copy must stop."""
        return uid in self._stopped


class CopySteps:
    """Questions and reports of a copy from its thread, on the loop."""

    def __init__(self, copies: SourceCopies, uid: str, turn: FetchTurn) -> None:
        self._copies, self._uid, self._turn = copies, uid, turn
        self._loop = asyncio.get_running_loop()
        self._percent = -1

    def admit(self, size: int) -> None:
        ask_loop(self._loop, lambda: self._copies.hold(self._uid, size), ANSWER_S)

    def report_progress(self, percent: int) -> None:
        if percent != self._percent:
            self._percent = percent
            ask_loop(self._loop, lambda: self._copies.note(self._uid, percent), ANSWER_S)

    def check_cancelled(self) -> None:
        if self._copies.is_stopped(self._uid):
            raise CopyStopped
        self.make_way()

    def make_way(self) -> None:
        """Raise `CopyMakesWay` if others should have the turn."""
        if self._copies.turns.is_over(self._turn):
            raise CopyMakesWay
