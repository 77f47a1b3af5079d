"""Brings what is stored and what runs together, one job at a time; after a crash this is the recovery.

A queue without duplicates holds the uids of jobs to look at. A turn looks at one: it reads what is stored and
what the executor sees, asks `decide`, and does what that says. No two turns of one job overlap. An error of the
executor makes the next turn wait, longer each time, and is shown on the job.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from mlp_hub.domain.errors import MLPError
from mlp_hub.domain.job import FINAL, HOLDING, Job, Phase, Target, with_progress
from mlp_hub.executors.base import AttemptPhase, CannotStart, Executor, Observation
from mlp_hub.executors.fence import Superseded
from mlp_hub.service import decide as d
from mlp_hub.service.acts import Acts
from mlp_hub.service.batch import Batch
from mlp_hub.service.board import APPLIER, Board, Changes, Moving, Step, release
from mlp_hub.service.clearing import Clearing
from mlp_hub.service.config import Paths, RunPolicy
from mlp_hub.service.launch import launch_spec
from mlp_hub.service.lease import Leadership, LeaseLost
from mlp_hub.service.metrics import Metrics
from mlp_hub.service.tokens import JobToken, make_token
from mlp_hub.store.errors import StatementFailed
from mlp_hub.store.repos.jobs import Stale
from mlp_hub.store.tx import Tx

log = logging.getLogger(__name__)
MOST_TURNS = 512  # at once
_LOOKED_AT = frozenset(
    {
        Phase.STARTING,
        Phase.RUNNING,
        Phase.SUSPENDING,
        Phase.PREEMPTING,
        Phase.RESIZING,
        Phase.CANCELLING,
    }
)
RANKS_EVERY_S = 2.0


@dataclass(slots=True)
class _Memory:
    """What this process remembers of an attempt; all of it may be lost."""

    attempt: str
    errors: int = 0  # of the executor, one after the other
    start_errors: int = 0
    stop_sent_at: float | None = None
    token: str | None = None
    ranks_at: float = 0.0


@dataclass(slots=True)
class _Queue:
    """Uids to look at: each at most once, and not while it is being looked at."""

    waiting: dict[str, None] = field(default_factory=dict)
    active: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    again: set[str] = field(default_factory=set)
    timers: dict[str, asyncio.TimerHandle] = field(default_factory=dict)


class Reconciler:
    """The loop that runs jobs."""

    def __init__(  # noqa: PLR0917 - the composition root gives it all
        self,
        board: Board,
        executor: Executor,
        metrics: Metrics,
        clock: Callable[[], float],
        paths: Paths,
        policy: RunPolicy,
        lease: Leadership,
    ) -> None:
        self._board = board
        self._acts = Acts(executor, lease)
        self._executor = executor
        self._metrics = metrics
        self._clock = clock
        self._paths = paths
        self._policy = policy
        self._queue = _Queue()
        self._memory: dict[str, _Memory] = {}
        self._fresh: dict[
            str, str
        ] = {}  # tokens of attempts that were stored as starting, and that nobody has started
        self._moves: Batch[Moving, Job] = Batch(self._store_all)
        self._clearing = Clearing()
        self._numbers: dict[str, int] = {}  # of users
        self._stopped = True
        self._listens = False
        self._scan: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Put in order what a crash left, then look at every job that is not final."""
        self._stopped = False
        await self._release_orphans()
        await self._forget_leftovers()
        if not self._listens:
            self._listens = True
            self._executor.on_change(self._executor_says)
        self._board.on_change(self._board_says)
        for uid in list(self._board.jobs):
            self.look_at(uid)
        self._scan = asyncio.ensure_future(self._scan_loop())

    async def stop(self) -> None:
        """End all turns; running attempts go on."""
        self._stopped = True
        queue, self._queue = self._queue, _Queue()
        for timer in queue.timers.values():
            timer.cancel()
        tasks: list[asyncio.Task[None]] = [*queue.active.values()]
        if self._scan is not None:
            tasks.append(self._scan)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._clearing.clear()
        await self._moves.stop()

    def will_start(self, attempt: str, token: JobToken | None) -> None:
        """Know the token of an attempt that is about to be stored as starting; None: it was not stored."""
        if token is None:
            self._fresh.pop(attempt, None)
        else:
            self._fresh[attempt] = token.secret

    def look_at(self, uid: str, delay: float = 0.0) -> None:
        """Look at a job soon, or after a delay in seconds; an earlier look that is planned stays."""
        if self._stopped:
            return
        q = self._queue
        if delay > 0:
            loop = asyncio.get_running_loop()
            known = q.timers.get(uid)
            if known is not None:
                if known.when() <= loop.time() + delay:
                    return
                known.cancel()
            q.timers[uid] = loop.call_later(delay, self._timer_rings, uid)
        elif uid in q.active:
            q.again.add(uid)
        else:
            q.waiting[uid] = None
            self._fill()

    def _timer_rings(self, uid: str) -> None:
        self._queue.timers.pop(uid, None)
        self.look_at(uid)

    def _executor_says(self, attempt: str) -> None:
        self.look_at(attempt.rpartition(".")[0])

    def _board_says(self, job: Job, before: Job | None) -> None:
        if job.target is Target.RUN and (job.phase is Phase.QUEUED or job.phase in FINAL):
            return  # there is nothing to be done for it
        if _runs_now(job, before) and job.uid in self._queue.active:
            return  # the look under way found that out
        if before is None or before.phase is not job.phase or before.target is not job.target:
            self.look_at(job.uid)

    def _fill(self) -> None:
        q = self._queue
        while q.waiting and len(q.active) < MOST_TURNS:
            uid = next(iter(q.waiting))
            del q.waiting[uid]
            task = asyncio.ensure_future(self._turns(uid))
            q.active[uid] = task
            task.add_done_callback(partial(self._turned, q, uid))

    def _turned(self, q: _Queue, uid: str, _: asyncio.Task[None]) -> None:
        q.active.pop(uid, None)
        if q is not self._queue:
            return
        if uid in q.again:
            q.again.discard(uid)
            q.waiting[uid] = None
        self._fill()

    async def _turns(self, uid: str) -> None:
        """Look at a job again and again until there is nothing to do for it now."""
        try:
            while await self._turn(uid):
                self._queue.again.discard(uid)
        except asyncio.CancelledError:
            raise
        except LeaseLost:
            return  # the platform stands by, and looks at all jobs again if it ever decides again
        except Superseded as error:
            if await self._acts.still_decides():
                await self._failed(uid, error)
        except Stale:
            await self._board.refresh(uid)
            self.look_at(uid, 0.001)
        except Exception as error:  # noqa: BLE001 - whatever it is, the job is looked at again
            await self._failed(uid, error)

    async def _turn(self, uid: str) -> bool:  # noqa: C901, PLR0912 - one branch for each kind of action
        """Do what is to be done for a job; True when it should be looked at again at once."""
        job = self._board.jobs.get(uid)
        if job is None:
            self._memory.pop(uid, None)
            return False
        memory = self._remembered(job)
        seen = await self._observe(job)
        actions = d.decide(job, seen, self._clock(), self._policy.grace_s, memory.stop_sent_at)
        again = False
        for action in actions:
            match action:
                case d.Move():
                    then = None if self._executor.spools else d.finish_of(action)
                    if then is not None:
                        await self._store(job, then, memory, action)
                        await self._acts.forget(job.attempt)
                        return False
                    before, job = job, await self._store(job, action, memory)
                    again = not _runs_now(job, before)
                case d.Update():
                    await self._store_ranks(action.job, memory)
                case d.Start():
                    await self._start(job, memory)
                    again = True
                case d.Stop():
                    if memory.stop_sent_at is None:
                        await self._acts.stop(job.attempt, action.grace_s)
                        memory.stop_sent_at = self._clock()
                        again = True
                case d.Forget():
                    await self._acts.forget(job.attempt)
                    again = again or seen.phase is not AttemptPhase.ABSENT
                case d.Sweep():
                    if self._executor.spools:
                        workspace = self._paths.workspace(job.spec.user, job.spec.name)
                        await self._metrics.sweep(job, workspace)
                case d.Erase():
                    await self._erase(job)
                case d.LookAgain():
                    self.look_at(uid, max(action.at - self._clock(), 0.01))
        memory.errors = 0
        return again

    async def _observe(self, job: Job) -> Observation:
        if job.phase not in _LOOKED_AT or (job.phase is Phase.STARTING and job.attempt in self._fresh):
            return Observation(job.attempt, AttemptPhase.ABSENT)
        seen = await self._executor.observe([job.attempt])
        return seen.get(job.attempt) or Observation(job.attempt, AttemptPhase.ABSENT)

    async def _store(self, old: Job, move: d.Move, memory: _Memory, before: d.Move | None = None) -> Job:
        """Store a move, and the one before it together with it."""
        new = move.job
        self._fresh.pop(old.attempt, None)
        through = () if before is None else ((before.job.phase, _step(before)),)
        progress = self._metrics.take_progress(new.uid)
        if progress is not None and new.phase is not Phase.FINISHED:
            # what is reported while an attempt ends is no beginning of the next one
            same = new.attempt == old.attempt
            new = with_progress(new, progress, self._clock()) if same else replace(new, progress=progress)
        token = make_token() if new.phase is Phase.STARTING else None
        sha256 = None if token is None else token.sha256
        stored = await self._moves.put(Moving(old, new, _step(move), sha256, through))
        if token is not None:
            memory.token = token.secret
        if stored.phase in FINAL:
            self._memory.pop(stored.uid, None)
        return stored

    async def _store_all(self, moves: Sequence[Moving]) -> Sequence[Job | Exception]:
        """Store what is to be stored by now in one transaction."""
        now = self._clock()

        def all_of_them(tx: Tx, changes: Changes) -> Sequence[Job | Exception]:
            return changes.move_many(tx, moves, now)

        def without_stale(tx: Tx, changes: Changes) -> Sequence[Job | Exception]:
            versions = tx.jobs.versions(m.old.uid for m in moves)
            good = [m for m in moves if versions.get(m.old.uid) == m.old.version]
            stored = {job.uid: job for job in changes.move_many(tx, good, now)}
            return [stored.get(m.old.uid) or Stale(m.old) for m in moves]

        try:
            return await self._board.commit(all_of_them)
        except Stale:  # seldom, so nobody looks for it before
            return await self._board.commit(without_stale)

    async def _store_ranks(self, job: Job, memory: _Memory) -> None:
        now = self._clock()
        states_before = [r.state for r in self._board.jobs[job.uid].ranks]
        if states_before == [r.state for r in job.ranks] and now < memory.ranks_at + RANKS_EVERY_S:
            self.look_at(job.uid, RANKS_EVERY_S)  # what they use changes all the time
            return
        memory.ranks_at = now
        await self._board.commit(lambda tx, changes: changes.update(tx, job))

    async def _start(self, job: Job, memory: _Memory) -> None:
        uid = await self._uid_of(job.spec.user)
        if memory.token is None:
            memory.token = self._fresh.get(job.attempt)
        self._fresh.pop(job.attempt, None)  # from here on the executor may know it
        if memory.token is None:
            # after a restart nobody knows the token any more; the attempt may hold the first one, so both are good
            token = make_token()
            now = self._clock()
            await self._board.commit(lambda tx, _: tx.tokens.add(token.sha256, job.uid, now))
            memory.token = token.secret
        spec = launch_spec(job, uid, memory.token, self._paths, self._policy)
        try:
            await self._acts.start(spec)
        except (LeaseLost, Superseded):
            raise
        except Exception as error:
            memory.start_errors += 1
            permanent = isinstance(error, CannotStart)
            if permanent or memory.start_errors >= self._policy.start_tries:
                tries = 1 if permanent else memory.start_errors
                move = d.give_up_starting(job, _text(error), tries, self._clock())
                await self._store(job, move, memory)
                return
            raise
        memory.start_errors = 0

    async def _uid_of(self, name: str) -> int | None:
        """Return the system uid that the user's ranks run as; a user's number never changes."""
        if self._policy.first_uid is None:
            return None
        if name not in self._numbers:
            user = await self._board.db.write(lambda tx: tx.users.ensure(name, self._clock()))
            self._numbers[name] = user.number
        return self._policy.first_uid + self._numbers[name]

    async def _erase(self, job: Job) -> None:
        if not self._clearing.begin(job.uid, job.spec.user):
            return
        try:
            await self._acts.erase(self._paths.workspace(job.spec.user, job.spec.name))
        finally:
            for uid in self._clearing.end(job.uid):
                self.look_at(uid)

        def work(tx: Tx, changes: Changes) -> None:
            if tx.jobs.remove(job.uid):
                changes.removed.append(job)

        await self._board.commit(work)
        self._memory.pop(job.uid, None)

    async def _failed(self, uid: str, error: Exception) -> None:
        """Wait before the next turn, longer each time, and show why."""
        job = self._board.jobs.get(uid)
        if job is None:
            return
        memory = self._remembered(job)
        memory.errors += 1
        wait = min(self._policy.backoff_s * 2 ** min(memory.errors - 1, 16), self._policy.backoff_max_s)
        if not isinstance(error, MLPError | OSError) or isinstance(error, StatementFailed):
            log.error("job %s of %s", job.spec.name, job.spec.user, exc_info=error)
        self.look_at(uid, wait)
        message = f"trying again: {_text(error)}"
        if message != job.message:
            try:
                await self._board.commit(lambda tx, c: c.update(tx, replace(job, message=message)))
            except Exception:  # noqa: BLE001 - what is wrong with the job may be that nothing of it can be stored
                await self._board.refresh(uid)

    def _remembered(self, job: Job) -> _Memory:
        memory = self._memory.get(job.uid)
        if memory is None or memory.attempt != job.attempt:
            memory = self._memory[job.uid] = _Memory(job.attempt)
        return memory

    async def _scan_loop(self) -> None:
        while True:
            await asyncio.sleep(self._policy.look_every_s)
            for uid in list(self._board.holding):
                self.look_at(uid)

    async def _release_orphans(self) -> None:
        """Give back what is held for no attempt that is under way: nothing may leak, whatever was killed when."""
        now = self._clock()
        attempts = {job.attempt for job in self._board.holding.values()}

        def work(tx: Tx, _: Changes) -> list[str]:
            orphans = [r.id for r in tx.ledger.held(now, applier=APPLIER) if r.id not in attempts]
            for attempt in orphans:
                release(tx, attempt)
            return orphans

        for attempt in await self._board.commit(work):
            log.warning("released what was held for %s, which is not under way", attempt)

    async def _forget_leftovers(self) -> None:
        """Remove attempts that belong to no job that is under way."""
        mine = {job.attempt for job in self._board.jobs.values() if job.phase in HOLDING}
        for attempt in await self._executor.known():
            if attempt not in mine:
                await self._acts.forget(attempt)


def _runs_now(job: Job, before: Job | None) -> bool:
    """Whether a job has begun to run and nothing is to be done before its executor, or somebody, says more."""
    return (
        job.phase is Phase.RUNNING
        and before is not None
        and before.phase is Phase.STARTING
        and job.target is Target.RUN
        and job.spec.time_limit is None
    )


def _step(move: d.Move) -> Step:
    return Step(move.kind, move.message, move.reason)


def _text(error: BaseException) -> str:
    if isinstance(error, MLPError):
        return str(getattr(error, "msg", error))
    return str(error) or type(error).__name__
