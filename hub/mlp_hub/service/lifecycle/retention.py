"""Jobs that ended long ago, or of which their user has very many, are deleted: record, timeline, metrics and directory.

They go the way of those that people delete: the target is stored, the reconciler removes the directory and then the record.
Only a job that has ended is ever touched; the transaction that marks it looks again.

What is stored of a job is measured once, soon after it ended. A turn measures and marks a few; the next one comes when these
are gone, when another job has ended, or when the oldest is due. So a hub where nothing ends does nothing here.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from mlp_hub.background import BackgroundTask
from mlp_hub.domain.jobs.job import FINAL, Job, Target
from mlp_hub.domain.tenants.account_names import THE_HUB
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.service.config import MIB, KeepPolicy
from mlp_hub.service.lifecycle.targets import store_aimed
from mlp_hub.service.state.board import Board, Changes
from mlp_hub.service.support.backoff import wait_after
from mlp_hub.store.records import EndedSize
from mlp_hub.store.tx import Tx
from mlp_language.message import NOTHING, Message, Quantity, Span, msg

log = logging.getLogger(__name__)
MOST_FOUND = 10_000
"""Tuning: jobs to be measured that are looked up at a time, after a start: size of a lot, for how long others wait behind
it."""
MOST_MEASURED = 250
"""Tuning: jobs that are measured in one turn: size of a lot, for how long others wait behind it."""
MOST_GOING = 20
"""Tuning: jobs that are being deleted at a time: size of a lot, for how long others wait behind it."""
MOST_OF_USER = 5
"""Safety: jobs of one user that are being deleted at a time: their directories are removed one after another, and others' are
not to wait for them."""
SETTLE_S = 5.0
"""Tuning: seconds after a job's end at which its turn comes, together with those that end meanwhile: fewer turns, for room
that comes free later."""
SOON_S = 0.25
"""Tuning: seconds until the next turn while there is more to do: work for freshness."""
LOOK_S = 1.0
"""Tuning: seconds until the next turn while deletions continue; doubled after each turn that began none.

It trades fewer turns for room that comes free later.
"""
LOOK_MOST_S = 60.0
"""Tuning: most seconds between two turns while deletions continue, and seconds to the next after an error.

It trades fewer turns for room that comes free later.
"""
LONGEST_S = 3600.0
"""Tuning: seconds between two turns, at most, while nothing happens: sooner with less, cheaper with more."""


@dataclass(frozen=True, slots=True)
class _Due:
    """A job that is to go, and why."""

    kept: EndedSize
    why: Message


class _Lot:
    """The jobs that are chosen in one turn, beside those that are being deleted, given by their users."""

    def __init__(self, going: Iterable[str]) -> None:
        self._of_user = Counter(going)
        self._before = self._of_user.total()
        self._chosen: dict[str, _Due] = {}

    @property
    def room(self) -> int:
        """Number of further deletions that can be in progress."""
        return max(0, MOST_GOING - self._before - len(self._chosen))

    @property
    def full(self) -> list[str]:
        """Users of whom no more may be."""
        return [user for user, n in self._of_user.items() if n >= MOST_OF_USER]

    @property
    def due(self) -> list[_Due]:
        """Jobs that are chosen."""
        return list(self._chosen.values())

    def choose_job(self, kept: EndedSize, why: Message) -> bool:
        """Choose a job, unless there are too many; return whether it is chosen."""
        if kept.job not in self._chosen:
            if not self.room or self._of_user[kept.user] >= MOST_OF_USER:
                return False
            self._of_user[kept.user] += 1
            self._chosen[kept.job] = _Due(kept, why)
        return True


class Retention:
    """Deletes what is not to be kept any longer, a little at a time."""

    def __init__(self, board: Board, clock: Callable[[], float], policy: KeepPolicy) -> None:
        self._board = board
        self._clock = clock
        self._policy = policy
        self._ended: dict[str, None] = {}  # to be measured, oldest first
        self._more = True  # there may be more to be measured than is known here
        self._users: set[str] = set()  # of whom more is stored than when they were looked at last
        self._going: dict[str, str] = {}  # being deleted, with their users
        self._looks = 0
        self._something = asyncio.Event()
        self._task = BackgroundTask(self._run)

    async def start(self) -> None:
        """Start; jobs that ended while the service was away are found first."""
        self._more = True
        if self._policy.deletes_jobs and not self._task.is_started:
            self._users.update(await self._board.db.read(self._over))
            self._board.on_change(self._job_changed)
            self._task.start()

    async def stop(self) -> None:
        """Stop marking; marked jobs are deleted all the same."""
        await self._task.stop()
        self._ended.clear()
        self._going.clear()

    def _over(self, tx: Tx) -> Sequence[str]:
        return tx.ended.over(self._policy.jobs, self._policy.job_bytes)

    def _job_changed(self, job: Job, _: Job | None) -> None:
        if job.phase in FINAL and job.target is not Target.DELETE:
            if len(self._ended) < MOST_FOUND:
                self._ended[job.uid] = None
            else:
                self._more = True
            self._something.set()

    async def _run(self) -> None:
        wait: float = 0
        while True:
            try:
                async with asyncio.timeout(wait):
                    await self._something.wait()
                await asyncio.sleep(SETTLE_S)
            except TimeoutError:
                pass
            self._something.clear()
            try:
                wait = await self.turn()
            except asyncio.CancelledError:
                raise
            except Exception:  # what is wrong may pass; nothing depends on it
                log.exception("deleting jobs that ended long ago failed; it is tried again")
                wait = LOOK_MOST_S

    async def turn(self) -> float:
        """Measure and delete a little; return the seconds until there is more to do, unless something ends before."""
        measured = await self._measure()
        self._going = {uid: user for uid, user in self._going.items() if uid in self._board.jobs}
        marked = 0
        if len(self._going) < MOST_GOING:
            due, done = await self._board.db.read(self._choose)
            if due:
                jobs, done = await self._mark()
                marked = len(jobs)
            self._users -= done
        if measured:
            return SOON_S
        if self._going or self._users:
            # one that cannot be removed stays, and is looked for less and less
            self._looks = 0 if marked else self._looks + 1
            return wait_after(self._looks + 1, LOOK_S, LOOK_MOST_S)
        self._looks = 0
        return await self._until_due()

    async def _measure(self) -> bool:
        """Measure some that ended; return whether there were any."""
        if not self._ended and self._more:
            found = await self._board.db.read(lambda tx: tx.ended.unmeasured(MOST_FOUND))
            self._more = len(found) == MOST_FOUND
            self._ended.update(dict.fromkeys(found))
        uids = list(self._ended)[:MOST_MEASURED]
        if not uids:
            return False
        kept = await self._board.db.read(lambda tx: tx.ended.measure(uids))
        await self._board.db.write(lambda tx: tx.ended.put(kept))
        for uid in uids:
            self._ended.pop(uid, None)
        self._users.update(k.user for k in kept)
        return True

    def _choose(self, tx: Tx) -> tuple[list[_Due], set[str]]:
        """Return which jobs are to go now, and of which users no more than these."""
        lot = _Lot(self._going.values())
        if self._policy.job_s is not None:
            why = msg("ended more than {age} ago", age=Span(self._policy.job_s))
            before = self._clock() - self._policy.job_s
            for kept in tx.ended.before(before, lot.room, lot.full):
                lot.choose_job(kept, why)
        done = set()
        for user in sorted(self._users):
            if not lot.room:
                break
            surplus, why = self._surplus(tx, user)
            taken = [lot.choose_job(kept, why) for kept in surplus]
            if all(taken) and len(surplus) < MOST_OF_USER:
                done.add(user)
        return lot.due, done

    def _surplus(self, tx: Tx, user: str) -> tuple[list[EndedSize], Message]:
        """Return the oldest jobs of a user that are too many, a few of them, and why.

        The one that ended last is not among them, however large: its user has hardly seen it.
        """
        most, most_bytes = self._policy.jobs, self._policy.job_bytes
        count, size = tx.ended.total(user)
        why = NOTHING
        found: list[EndedSize] = []
        for kept in tx.ended.oldest(user, max(0, min(MOST_OF_USER, count - 1))):
            if most is not None and count > most:
                why = why or msg("one user has more than {n} ended jobs", n=most)
            elif most_bytes is not None and size > most_bytes:
                why = why or msg(
                    "one user's ended jobs store more than {size}",
                    size=Quantity(most_bytes / MIB, "MiB"),
                )
            else:
                break
            found.append(kept)
            count, size = count - 1, size - kept.bytes
        return found, why

    async def _mark(self) -> tuple[list[Job], set[str]]:
        """Let jobs go, with their entries in the audit log; return them, and of which users no more than these.

        They are chosen once more in the transaction: a person may have deleted some meanwhile, and others are kept for that.
        """
        now = self._clock()

        def work(tx: Tx, changes: Changes) -> tuple[list[Job], set[str]]:
            due, done = self._choose(tx)
            marked: list[Job] = []
            removed: dict[tuple[str, str], tuple[Message, list[str]]] = {}
            for one in due:
                job = tx.jobs.get(SYSTEM, one.kept.job)
                if job is None or job.phase not in FINAL:
                    tx.ended.forget(one.kept.job)
                    continue
                aimed = replace(job, target=Target.DELETE)
                marked.append(store_aimed(tx, changes, job, aimed, now=now, message=one.why))
                removed.setdefault((job.spec.user, str(one.why)), (one.why, []))[1].append(job.title)
            for (user, _), (why, names) in removed.items():
                tx.audit.add(now, THE_HUB, "jobs.expire", user, detail={"why": why}, jobs=names)
            return marked, done

        marked, done = await self._board.commit(work)
        self._going.update((job.uid, job.spec.user) for job in marked)
        return marked, done

    async def _until_due(self) -> float:
        """Return how long until the job that ended first is due."""
        if self._policy.job_s is None:
            return LONGEST_S
        first = await self._board.db.read(lambda tx: tx.ended.first())
        if first is None:
            return LONGEST_S
        return float(min(max(first + self._policy.job_s - self._clock(), LOOK_S), LONGEST_S))
