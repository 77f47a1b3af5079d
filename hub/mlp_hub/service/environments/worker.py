"""Worker of the queue that brings environments to where their phase says: resolved, then installed; or gone.

It reads what is stored and does the next thing, however often it is asked: this is operation, and recovery too. The lock is stored
before anything is installed; files have their name only when they are whole. Environments of one lock have the same files: one of them
has them made, the others wait for that; the last that goes removes them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from weakref import WeakValueDictionary

from mlp_hub.domain.errors import OutOfReach, Reason, Refused
from mlp_hub.domain.runtime.environment import (
    KIND,
    Environment,
    EnvironmentPhase,
    check_environment_move,
    directory_of,
    files_uid,
)
from mlp_hub.domain.stored.storage import StoredItem, StoredKind
from mlp_hub.executors.base import Superseded
from mlp_hub.executors.environments import BuildFailed, EnvironmentMaker
from mlp_hub.executors.workspace import Space, StoredPlace, Unfinished
from mlp_hub.loops import ask_loop
from mlp_hub.service.disk.rules import shortage
from mlp_hub.service.lifecycle.stored import StoredWorker, WorkerContext, place_of
from mlp_hub.service.state.leadership import LeaseLost
from mlp_hub.service.storage.environments import not_here
from mlp_hub.service.support.told import notifying
from mlp_hub.store.tx import Tx
from mlp_language.message import NOTHING, Message, msg, verbatim

log = logging.getLogger(__name__)
P = EnvironmentPhase
TRIES = 4
"""Safety: how often in a row its making may meet an error of this machine, with a longer wait each time."""
FLOORS = 2
"""Safety: how many times what is to stay free of the disk stays free of environments that are made: at the floor others are stopped."""
ANSWER_S = 60.0
"""Safety: seconds for which who makes it waits until its room is kept."""
MOST_TOLD = 1500
"""Safety: characters of the last output that a reason repeats."""


class BuildUnwanted(Exception):  # noqa: N818 - what became of it
    """Exception: the environment was deleted while it was made."""


class EnvironmentWorker(StoredWorker):
    """Has environments made, and removes them. `first_uid` is as the policy has it; `floor` is what is to stay free of the disk."""

    kind = KIND

    def __init__(
        self, context: WorkerContext, *, clock: Callable[[], float], first_uid: int | None, floor: int
    ) -> None:
        super().__init__(context)
        self._maker: EnvironmentMaker | None = context.executor.environments
        self._lease = context.lease
        self._clock, self._first_uid, self._floor = clock, first_uid, floor
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # of `_turn`
        self._unwanted: set[str] = set()
        self._failed: dict[str, int] = {}  # how often in a row, of this process alone
        self.logs: dict[str, str] = {}  # what is written now, of those that are made

    async def start(self) -> None:
        """Look at all that are not at rest."""
        for each in await self._db.read(lambda tx: tx.environments.in_phases((P.CREATING, P.DELETING))):
            self.look_at(each.uid)

    def look_at(self, uid: str, *, unwanted: bool = False) -> None:
        """Have one looked at soon; one that is `unwanted` is made no further."""
        if unwanted:
            self._unwanted.add(uid)
        self._queue.add((KIND, uid))

    async def _work(self, uid: str) -> bool:
        found = await self._db.read(lambda tx: tx.environments.get(uid))
        if found is None:
            return False
        try:
            if found.phase is P.CREATING and self._maker is None:  # nothing here makes one any more
                await self._fail(found, None, not_here().message)
            elif found.phase is P.CREATING and self._maker is not None:
                return await self._make(found, self._maker)
            if found.phase is P.DELETING:
                await self._delete(found, self._maker)
        except (LeaseLost, Superseded):
            pass
        except (BuildUnwanted, Unfinished):
            return True
        return False

    # ------------------------------------------------------------- made

    async def _make(self, found: Environment, maker: EnvironmentMaker) -> bool:
        """Do the next thing to one that is being made; return whether there is more to do at once."""
        try:
            if not found.lock:
                await self._resolve(found, maker)
                return True
            async with self._turn(found):
                await self._install(found, maker)
        except (BuildFailed, Refused) as error:
            if isinstance(error, OutOfReach):
                raise
            await self._fail(found, maker, error.message)
        except OSError:
            self._failed[found.uid] = self._failed.get(found.uid, 0) + 1
            if self._failed[found.uid] < TRIES:
                raise
            log.exception("environment %s of %s cannot be made", found.name, found.tenant)
            why = msg(
                "making it failed {n} times; the hub's log has the reason; delete it and try again", n=TRIES
            )
            await self._fail(found, maker, why)
        return False

    async def _resolve(self, found: Environment, maker: EnvironmentMaker) -> None:
        owner = await self._owner_of(found)
        await self._lease.ensure_held()
        lock = await maker.lock(
            _resolving(found),
            found.requirements,
            owner,
            epoch=self._lease.epoch,
            steps=_MakingSteps(self, found.uid, ""),
        )
        if not lock.strip():
            raise BuildFailed(
                msg("none of the requirements is for this machine; their markers leave all of them out")
            )
        files = files_uid(found.tenant, maker.base, lock)

        def resolved(tx: Tx) -> None:
            now = tx.environments.get(found.uid)
            if now is not None and now.phase is P.CREATING:
                tx.environments.put(replace(now, lock=lock, files=files))

        await self._db.write(resolved)

    async def _install(self, found: Environment, maker: EnvironmentMaker) -> None:
        begun = await notifying(self._db.write(lambda tx: self._begin(tx, found)), self._changed)
        if begun is None:
            return
        item, there = begun
        epoch, size = self._lease.epoch, item.used
        await self._lease.ensure_held()
        if not there:
            steps = _MakingSteps(self, found.uid, item.uid)
            owner = await self._owner_of(found)
            extent = await maker.install(place_of(item), found.lock, owner, epoch=epoch, steps=steps)
            size = extent.size
        await maker.offer(place_of(item), found.name, epoch=epoch)

        def ready(tx: Tx) -> None:
            now = tx.environments.get(found.uid)
            if now is None or now.phase is not P.CREATING:
                return  # it is to be deleted by now, and is looked at again
            self._storage.settle(tx, item.uid, size)
            check_environment_move(now, P.READY)
            log = self.logs.get(now.uid, now.log)
            tx.environments.put(replace(now, phase=P.READY, log=log, message=NOTHING))

        await notifying(self._db.write(ready), self._changed)
        self._rested(found)

    def _begin(self, tx: Tx, found: Environment) -> tuple[StoredItem, bool] | None:
        """Return what is stored of its files, and whether these are there, made for another environment; None where it is not wanted."""
        now = tx.environments.get(found.uid)
        if now is None or now.phase is not P.CREATING:
            return None
        item = tx.stored.get(now.files)
        if item is not None:
            return item, any(each.phase is P.READY for each in tx.environments.of_files(now.files))
        name = directory_of(now.name, now.files)
        item = StoredItem(now.files, StoredKind.ENVIRONMENT, now.tenant, now.user, name, self._clock())
        self._storage.reserve(tx, item)
        return item, False

    async def _fail(self, found: Environment, maker: EnvironmentMaker | None, message: Message) -> None:
        """Remove what there is of it, unless others have it; then say why. A death in between has it made once more."""
        text = str(message)
        said = message if len(text) <= MOST_TOLD else verbatim(text[-MOST_TOLD:])

        def failed(tx: Tx) -> None:
            now = tx.environments.get(found.uid)
            if now is not None and now.phase is P.CREATING:
                check_environment_move(now, P.ERROR)
                kept = self.logs.get(now.uid, now.log)
                tx.environments.put(replace(now, phase=P.ERROR, files="", log=kept, message=said))

        async with self._turn(
            found
        ):  # another of the same lock begins once its files are gone, or stays with them
            await self._leave(found, maker, failed)

    # ------------------------------------------------------------- gone

    async def _delete(self, found: Environment, maker: EnvironmentMaker | None) -> None:
        async with self._turn(found):
            await self._leave(found, maker, lambda tx: tx.environments.remove(found.uid))

    def _turn(self, found: Environment) -> asyncio.Lock:
        """Return what one environment at a time acts under on the same files; before it has any, on itself."""
        return self._turns.setdefault(found.files or found.uid, asyncio.Lock())

    async def _leave(
        self, found: Environment, maker: EnvironmentMaker | None, settle: Callable[[Tx], object]
    ) -> None:
        """End what makes it, and `settle` what becomes of it: together with its files where no other environment has or wants them.

        Where nothing makes any (jobs are pods since), only its files are left: no kernel of it is seen.
        """
        await self._lease.ensure_held()
        epoch = self._lease.epoch
        if maker is not None:
            await maker.forget(_resolving(found), epoch=epoch)
            await maker.withdraw(_resolving(found), found.name, epoch=epoch)

        def unless_last(tx: Tx) -> StoredItem | None:
            item = tx.stored.get(found.files) if found.files else None
            others = any(each.uid != found.uid for each in tx.environments.of_files(found.files))
            if item is not None and not others:
                return item
            settle(tx)
            return None

        item = await notifying(self._db.write(unless_last), self._changed)
        if item is not None:
            if maker is not None:
                await maker.forget(place_of(item), epoch=epoch)
            await self._erase(item, lambda tx, _: settle(tx))
        self._rested(found)

    def _rested(self, found: Environment) -> None:
        self._unwanted.discard(found.uid)
        self._failed.pop(found.uid, None)
        self.logs.pop(found.uid, None)

    # ------------------------------------------------------------- asked while it is made

    async def _owner_of(self, found: Environment) -> int | None:
        if self._first_uid is None:
            return None
        user = await self._db.write(lambda tx: tx.users.ensure(found.user, self._clock()))
        return self._first_uid + user.number

    async def hold(self, uid: str, size: int) -> None:
        """Keep room for `size`. Raises `Refused`."""

        def work(tx: Tx) -> None:
            item = tx.stored.get(uid)
            if item is not None and size > item.charged:
                self._storage.hold(tx, uid, size - item.used)

        await notifying(self._db.write(work), self._changed)

    def check_room(self, space: Space) -> None:
        """Refuse to continue if the disk has too little left: a writer stopped below the floor could not help it."""
        if (short := shortage(space, FLOORS * self._floor)) is not None:
            raise Refused(
                Reason.DISK_FULL, msg("the disk is nearly full: it has {shortage}; make room", shortage=short)
            )

    def is_unwanted(self, uid: str) -> bool:
        """Return whether the environment must be abandoned."""
        return uid in self._unwanted


class _MakingSteps:
    """Questions and reports of a maker from its thread, on the loop; it ends with the lease."""

    def __init__(self, worker: EnvironmentWorker, uid: str, files: str) -> None:
        self._worker, self._uid, self._files = worker, uid, files
        self._loop = asyncio.get_running_loop()
        lease = worker._lease  # noqa: SLF001 - a part of it
        self._held = lease.going_on(lease.epoch)

    def admit(self, size: int) -> None:
        self.check_cancelled()
        if self._files:
            ask_loop(self._loop, lambda: self._worker.hold(self._files, size), ANSWER_S)

    def leaves(self, space: Space) -> None:
        self._worker.check_room(space)

    def report_output(self, lines: str) -> None:
        self._loop.call_soon_threadsafe(self._worker.logs.__setitem__, self._uid, lines)

    def check_cancelled(self) -> None:
        self._held()
        if self._worker.is_unwanted(self._uid):
            raise BuildUnwanted


def _resolving(found: Environment) -> StoredPlace:
    """Return the place that it has while it is resolved, when nobody knows yet whose files it will have."""
    return StoredPlace(KIND, found.tenant, found.uid, found.tenant)
