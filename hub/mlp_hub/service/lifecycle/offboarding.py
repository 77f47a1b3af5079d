"""Departures of users: account closed, jobs ended as chosen, files kept or removed; also the recovery.

Each step is stored before it is carried out, and can be repeated. If the process is killed in
between, the work is in the queue at the next start.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol
from weakref import WeakValueDictionary

from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.jobs.job import FINAL, HOLDING, Job, Phase, Target
from mlp_hub.domain.stored.storage import StoredKind, home_uid
from mlp_hub.domain.tenants.departure import (
    DEPARTURE_MACHINE,
    Departure,
    DeparturePhase,
    FilesChoice,
    JobsChoice,
)
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.executors.base import Executor, Superseded
from mlp_hub.executors.workspace import Home
from mlp_hub.service.lifecycle.effects import FencedEffects
from mlp_hub.service.lifecycle.targets import store_aimed
from mlp_hub.service.lifecycle.workqueue import WorkQueue
from mlp_hub.service.state.board import Board, Changes
from mlp_hub.service.state.leadership import Leadership, LeaseLost
from mlp_hub.service.tenants.removal import suspend_of_nobody
from mlp_hub.store.tx import Tx
from mlp_language.message import msg

KIND = "departure"
"""Kind of the keys in the work queue; a key is the user's name."""
PREFIX = "leaving-"
MOST_TOGETHER = 500
"""Tuning: jobs that are aimed at a time: size of a lot, for how long others wait behind it."""
AGAIN_S = 1.0
"""Tuning: seconds between two looks whether jobs are gone: how soon files go, for how often it is asked."""


@dataclass(frozen=True, slots=True)
class OwnedCounts:
    """Belongings of a user before they leave: jobs by their fate, and stored objects, with their bytes."""

    running: int
    waiting: int
    suspended: int
    ended: int
    datasets: int = 0
    models: int = 0
    stored: int = 0
    apps: int = 0


class OwnedData(Protocol):
    """Objects of another kind than jobs that users own. `remove` is called until it says that none is left."""

    async def remove(self, user: str) -> bool:
        """Have all of a user's removed; return whether they are gone. May be said again and again."""
        ...


class Offboarding:
    """Brings users out. `shut_out` ends an account's logins, tokens and servers, and raises `Refused` where it must stay."""

    def __init__(
        self,
        queue: WorkQueue,
        board: Board,
        executor: Executor,
        lease: Leadership,
        clock: Callable[[], float],
        *,
        owned_data: Iterable[OwnedData] = (),
        running: Iterable[OwnedData] = (),
    ) -> None:
        self._queue, self._board, self._clock = queue, board, clock
        self._effects = FencedEffects(executor, lease)
        self.shut_out: Callable[[str], Awaitable[object]] | None = None
        self.owned_data = list(owned_data)
        self.running = list(running)  # what goes on by itself, and so ends first
        self._begins: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        queue.serve(KIND, self._work)

    async def start(self) -> None:
        """Go on with all that have begun."""
        for found in await self._board.db.read(_all):
            if found.phase is not DeparturePhase.LEFT:
                self._queue.add((KIND, found.user))

    async def departure_of(self, user: str) -> Departure | None:
        """Return somebody's departure, also one that is over; None where they never left, or are back."""
        return await self._board.db.read(lambda tx: _get(tx, user))

    async def owned_counts(self, user: str) -> OwnedCounts:
        """Count what somebody has here."""
        counts, items, apps = await self._board.db.read(
            lambda tx: (
                tx.jobs.count_by_phase(SYSTEM, user, replicas=False),
                tx.stored.count_of(user),
                tx.apps.count(user),
            )
        )

        def of(phases: frozenset[Phase]) -> int:
            return sum(count for phase, count in counts.items() if phase in phases)

        datasets, models = (items.get(kind, (0, 0)) for kind in (StoredKind.DATASET, StoredKind.MODEL))
        return OwnedCounts(
            of(HOLDING),
            of(frozenset({Phase.QUEUED})),
            of(frozenset({Phase.SUSPENDED})),
            of(FINAL),
            datasets[0],
            models[0],
            datasets[1] + models[1],
            apps,
        )

    async def begin(self, user: str, jobs: JobsChoice, files: FilesChoice, *, actor: str) -> Departure:
        """Start the departure of a user: their account is shut out on return, the rest follows.

        The same choice again changes nothing; another choice counts from now on. Raises the errors of
        `shut_out`, and then nothing has begun. Raises `WrongState` if files that should be kept are being
        removed.
        """

        def work(tx: Tx) -> tuple[Departure | None, Departure]:
            before = _get(tx, user)
            if before is not None and before.phase is DeparturePhase.REMOVING:
                if files is FilesChoice.KEEP:
                    raise being_removed(user)
                return before, before
            if before is None or before.phase is DeparturePhase.LEFT:
                found = Departure(user, jobs, files, actor, self._clock())
            elif (before.jobs, before.files) == (jobs, files):
                return before, before
            else:
                found = replace(before, jobs=jobs, files=files, actor=actor, phase=DeparturePhase.CLOSING)
            _put(tx, found)
            return before, found

        async with self._begins.setdefault(user, asyncio.Lock()):  # what one takes back, no other built on
            before, begun = await self._board.db.write(work)
            if begun.phase is DeparturePhase.REMOVING:
                return begun
            try:
                await self._close(user)
            except Refused:
                await self._board.db.write(lambda tx: _put_back(tx, begun, before))
                raise
        self._queue.add((KIND, user))
        return begun

    async def come_back(self, user: str) -> None:
        """Forget somebody's departure, who is let in again; raises `WrongState` while their files are being removed."""

        def work(tx: Tx) -> None:
            found = _get(tx, user)
            if found is not None and found.phase is DeparturePhase.REMOVING:
                raise being_removed(user)
            tx.settings.drop(_key(user))

        if await self.departure_of(user) is not None:
            await self._board.db.write(work)

    # ---------------------------------------------------------- internals

    async def _work(self, user: str) -> bool:
        found = await self.departure_of(user)
        try:
            match None if found is None else found.phase:
                case DeparturePhase.CLOSING if found is not None:
                    return await self._close_again(found)
                case DeparturePhase.ENDING:
                    return await self._end_jobs(user)
                case DeparturePhase.REMOVING:
                    return await self._remove(user)
        except (LeaseLost, Superseded):
            pass
        return False

    async def _close(self, user: str) -> None:
        """Shut the account out, and write down with the move that it was."""
        if self.shut_out is not None:
            await self.shut_out(user)

        def work(tx: Tx) -> None:
            found = _get(tx, user)
            if found is None or found.phase is not DeparturePhase.CLOSING:
                return
            chosen = {"jobs": found.jobs, "files": found.files}
            detail = {name: one.value for name, one in chosen.items() if one not in _DEFAULTS}
            _put(tx, _moved(found, DeparturePhase.ENDING))
            tx.audit.add(self._clock(), found.actor, "user.deactivate", user, detail=detail)

        await self._board.db.write(work)

    async def _close_again(self, found: Departure) -> bool:
        try:
            await self._close(found.user)
        except Refused:  # it was asked for, and never answered: as the only administrator left, say
            await self._board.db.write(lambda tx: _put_back(tx, found, None))
            return False
        return True

    async def _end_jobs(self, user: str) -> bool:
        """Put aside or stop what there is; where files are to go, wait until nothing of theirs runs."""
        if not all([await one.remove(user) for one in self.running]):
            self._queue.add_after((KIND, user), AGAIN_S)
            return False
        if await self._board.commit(lambda tx, changes: self._ended(tx, changes, user)):
            return True
        self._queue.add_after((KIND, user), AGAIN_S)
        return False

    def _ended(self, tx: Tx, changes: Changes, user: str) -> bool:
        found, now = _get(tx, user), self._clock()
        if found is None or found.phase is not DeparturePhase.ENDING:
            return True  # they are back
        removes = found.files is FilesChoice.REMOVE
        if found.jobs is JobsChoice.STOP or removes:
            # of jobs that are to finish, those alone end here that hold nothing: their files go
            phases = _ACTIVE if found.jobs is JobsChoice.STOP else _ACTIVE - HOLDING
            stopped = _aim(tx, changes, user, phases, target=Target.CANCEL, now=now)
            found = replace(found, stopped=found.stopped + stopped)
        else:
            found = replace(found, suspended=found.suspended + suspend_of_nobody(tx, changes, user, now))
        waits = removes and any(phase in _ACTIVE for phase in tx.jobs.count_by_phase(SYSTEM, user))
        if waits:
            _put(tx, found)
        elif removes:
            _put(tx, _moved(found, DeparturePhase.REMOVING))
        else:
            self._over(tx, found)
        return not waits

    async def _remove(self, user: str) -> bool:
        def records(tx: Tx, changes: Changes) -> int:
            found = _get(tx, user)
            if found is None:
                return 0
            aimed = _aim(tx, changes, user, FINAL, target=Target.DELETE, now=self._clock())
            _put(tx, replace(found, removed=found.removed + aimed))
            return sum(tx.jobs.count_by_phase(SYSTEM, user).values())

        left = await self._board.commit(records)
        gone = [await one.remove(user) for one in self.owned_data]
        if left or not all(gone):
            self._queue.add_after((KIND, user), AGAIN_S)
            return False
        await self._effects.erase(Home(user))

        def over(tx: Tx) -> None:
            found = _get(tx, user)
            if found is not None:
                tx.stored.remove(home_uid(user))
                self._over(tx, found)

        await self._board.db.write(over)
        return False

    def _over(self, tx: Tx, found: Departure) -> None:
        """Store that all is done, and write down what that was; where it was nothing there is nothing to say."""
        _put(tx, _moved(found, DeparturePhase.LEFT))
        if found.files is FilesChoice.REMOVE:
            tx.accounting.forget_user(found.user)
        counts = {
            "stopped_jobs": found.stopped,
            "suspended_jobs": found.suspended,
            "removed_jobs": found.removed,
        }
        detail: dict[str, object] = {name: count for name, count in counts.items() if count}
        if found.files is FilesChoice.REMOVE:
            detail["files"] = found.files.value
        if detail:
            tx.audit.add(self._clock(), found.actor, "user.left", found.user, detail=detail)


_DEFAULTS = (JobsChoice.FINISH, FilesChoice.KEEP)
_ACTIVE = frozenset(Phase) - FINAL - {Phase.DELETING}


def being_removed(user: str) -> Refused:
    """Refuse what needs files that are going."""
    return Refused(
        Reason.WRONG_STATE,
        msg("the files of {user} are being removed; try again when that is done", user=user),
    )


def _aim(tx: Tx, changes: Changes, user: str, phases: frozenset[Phase], *, target: Target, now: float) -> int:
    """Have the user's jobs in these phases cancelled or deleted; return how many were not aimed so already."""
    aimed = 0
    for job in list(_jobs(tx, user, phases)):
        if job.target in (target, Target.DELETE):
            continue
        asked = msg("asked to cancel: the account of {user} was closed", user=user)
        store_aimed(tx, changes, job, replace(job, target=target), now=now, message=asked)
        aimed += 1
    return aimed


def _jobs(tx: Tx, user: str, phases: frozenset[Phase]) -> Iterator[Job]:
    cursor = None
    while True:
        jobs, cursor = tx.jobs.page(SYSTEM, user=user, phases=phases, limit=MOST_TOGETHER, cursor=cursor)
        yield from jobs
        if cursor is None:
            return


def _moved(found: Departure, new: DeparturePhase) -> Departure:
    DEPARTURE_MACHINE.check(found.phase, new, name=found.user)
    return replace(found, phase=new)


def _key(user: str) -> str:
    # keys are short, user names need not be
    return PREFIX + hashlib.blake2b(user.encode(), digest_size=24).hexdigest()


def _put(tx: Tx, departure: Departure) -> None:
    tx.settings.put(_key(departure.user), asdict(departure))


def _put_back(tx: Tx, refused: Departure, before: Departure | None) -> None:
    """Take back a departure that was refused; one that somebody else chose or carried on meanwhile stays."""
    if _get(tx, refused.user) != refused:
        return
    if before is None:
        tx.settings.drop(_key(refused.user))
    else:
        _put(tx, before)


def _get(tx: Tx, user: str) -> Departure | None:
    return _of(tx.settings.get(_key(user)))


def _all(tx: Tx) -> list[Departure]:
    return [found for value in tx.settings.beginning(PREFIX).values() if (found := _of(value)) is not None]


def _of(stored: Any) -> Departure | None:
    if not stored:
        return None
    return Departure(
        **{
            **stored,
            "jobs": JobsChoice(stored["jobs"]),
            "files": FilesChoice(stored["files"]),
            "phase": DeparturePhase(stored["phase"]),
        }
    )
