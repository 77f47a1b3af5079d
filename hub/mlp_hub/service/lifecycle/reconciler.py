"""Brings what is stored and what runs together, one job at a time; after a crash this is the recovery.

A turn looks at one job of the work queue: it reads what is stored and what the executor sees, asks `decide`, and does what
that says. An error of the executor makes the next turn wait, longer each time, and is shown on the job.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from mlp_hub.background import BackgroundTask
from mlp_hub.domain.errors import MessageError, MLPError, OutOfReach
from mlp_hub.domain.jobs.job import (
    ALIVE,
    FINAL,
    HOLDING,
    Failure,
    Job,
    Phase,
    Target,
    uid_of_attempt,
    with_progress,
)
from mlp_hub.domain.jobs.run import UsedDataset
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.executors.base import AttemptPhase, CannotStart, Executor, Observation, Superseded
from mlp_hub.logs.concern import concerns
from mlp_hub.service.config import RunPolicy
from mlp_hub.service.lifecycle import actions
from mlp_hub.service.lifecycle import next_action as d
from mlp_hub.service.lifecycle.actions import Action
from mlp_hub.service.lifecycle.effects import FencedEffects
from mlp_hub.service.lifecycle.job_tokens import JobToken, make_token
from mlp_hub.service.lifecycle.launch import launch_spec
from mlp_hub.service.lifecycle.noted import note_program
from mlp_hub.service.lifecycle.removal import Clearing
from mlp_hub.service.lifecycle.workqueue import WorkQueue
from mlp_hub.service.metrics.service import MetricsService
from mlp_hub.service.state.board import APPLIER, Board, Changes, release
from mlp_hub.service.state.leadership import Leadership, LeaseLost
from mlp_hub.service.state.moves import Move, Step
from mlp_hub.service.storage import data
from mlp_hub.service.storage.manifests import with_digests
from mlp_hub.service.support.batching import Batch
from mlp_hub.service.support.runs import attempt_of, run_of
from mlp_hub.service.tenants.networks import Networks
from mlp_hub.store.errors import StatementFailed
from mlp_hub.store.repos.jobs.jobs import Stale
from mlp_hub.store.tx import Tx
from mlp_language.message import Message, msg

log = logging.getLogger(__name__)
KIND = "job"
"""Kind of the keys of jobs in the work queue."""
RANKS_EVERY_S = 2.0
"""Tuning: seconds between two times that what a job's ranks use is stored, while their states stay the same: sooner with
less, cheaper with more."""
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


@dataclass(slots=True)
class _Memory:
    """Memory of this process about an attempt; all of it may be lost."""

    attempt: str
    start_errors: int = 0
    stop_sent: float | None = None  # of the steady clock, as `ran_since`
    ran_since: float | None = None
    token: str | None = None
    ranks_at: float = 0.0
    limited: actions.Relimit | None = None
    killed: bool = False


class Reconciler:
    """Worker of the queue that runs jobs."""

    def __init__(  # noqa: PLR0917 - the composition root gives it all
        self,
        queue: WorkQueue,
        board: Board,
        executor: Executor,
        metrics: MetricsService,
        clock: Callable[[], float],
        policy: RunPolicy,
        lease: Leadership,
        networks: Networks,
        data_ready: Callable[[Job], Awaitable[None]],
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._queue = queue
        self._board = board
        self._effects = FencedEffects(executor, lease)
        self._executor = executor
        self._metrics = metrics
        self._clock = clock
        self._steady = steady  # how long anything lasts is measured by it: nobody sets it
        self._policy = policy
        self._networks = networks
        self._data_ready = data_ready
        self._memory: dict[str, _Memory] = {}
        self._fresh: dict[str, str] = {}  # tokens of attempts that are stored as starting and nobody started
        self._moves: Batch[Move, Job] = Batch(self._store_all)
        self._clearing = Clearing()
        self._numbers: dict[str, int] = {}  # of users
        self._scan = BackgroundTask(self._scan_loop)
        queue.serve(KIND, self._look)
        executor.on_change(self._executor_says)

    async def start(self) -> None:
        """Put in order what a crash left, then look at every job that is not final."""
        await self._release_orphans()
        await self._forget_leftovers()
        self._board.on_change(self._board_says)
        for uid in list(self._board.jobs):
            self.look_at(uid)
        self._scan.start()

    async def stop(self) -> None:
        """Stop looking, once the queue has stopped; running attempts continue."""
        await self._scan.stop()
        self._clearing.clear()
        await self._moves.stop()

    def will_start(self, attempt: str, token: JobToken | None) -> None:
        """Know the token of an attempt that is about to be stored as starting; None: it was not stored."""
        if token is None:
            self._fresh.pop(attempt, None)
        else:
            self._fresh[attempt] = token.secret

    async def end(self, attempt: str, failure: Failure) -> None:
        """Kill an attempt that runs, for a reason that will be its failure's."""
        await self._effects.stop(attempt, 0.0, failure)

    def look_at(self, uid: str, delay: float = 0.0) -> None:
        """Look at a job soon, or after a delay in seconds; an earlier look that is planned stays."""
        if delay > 0:
            self._queue.add_after((KIND, uid), delay)
        else:
            self._queue.add((KIND, uid))

    def _executor_says(self, attempt: str) -> None:
        self.look_at(uid_of_attempt(attempt))

    def _board_says(self, job: Job, before: Job | None) -> None:
        if job.target is Target.RUN and (job.phase is Phase.QUEUED or job.phase in FINAL):
            return  # there is nothing to be done for it
        if _runs_now(job, before) and self._queue.is_at((KIND, job.uid)):
            return  # the look under way found that out
        if (
            before is None
            or before.phase is not job.phase
            or before.target is not job.target
            or before.steered is not job.steered
        ):
            self.look_at(job.uid)

    async def _look(self, uid: str) -> bool:
        """Take a turn, and show on the job what goes wrong in it; True when it should be looked at again at once."""
        job = self._board.jobs.get(uid)
        if job is not None:  # for the log lines of this turn, which is a task of its own
            concerns(job.spec.request_id, job.spec.user, job.title)
        try:
            again = await self._turn(uid)
            await self._calm(uid)
        except LeaseLost:
            return False  # the platform stands by, and looks at all jobs again if it ever decides again
        except Stale:
            await self._board.refresh(uid)
            self.look_at(uid, 0.001)
            return False
        except Exception as error:
            if isinstance(error, Superseded) and not await self._effects.still_decides():
                return False
            await self._show(uid, error)
            raise
        return again

    async def _turn(self, uid: str) -> bool:  # noqa: C901, PLR0912 - one branch for each kind of action
        """Carry out the next actions of a job; True if it should be looked at again at once."""
        job = self._board.jobs.get(uid)
        if job is None:
            self._memory.pop(uid, None)
            return False
        memory = self._remembered(job)
        seen = await self._observe(job)
        again = False
        for action in self._decide(job, seen, memory):
            match action:
                case Move():
                    ended = None if seen.leaves else d.finish_of(action)
                    if ended is not None:
                        await self._store(ended, memory)
                        await self._effects.forget(job.attempt)
                        return False
                    before, job = job, await self._store(action, memory)
                    again = not _runs_now(job, before)
                case actions.Update():
                    await self._store_ranks(action, memory)
                case actions.Start():
                    await self._start(job, memory)
                    again = True
                case actions.Stop():
                    if memory.stop_sent is None:
                        await self._effects.stop(job.attempt, action.grace_s)
                        memory.stop_sent = self._steady()
                        again = True
                case actions.Relimit():
                    if memory.limited != action and self._executor.limits:
                        await self._effects.limit(job.attempt, action.time_limit)
                        memory.limited = action
                case actions.Kill():
                    if not memory.killed:
                        await self._effects.kill(job.attempt, action.failure)
                        memory.killed = again = True
                case actions.AddSteps():
                    await self._add_steps(job, action.steps)
                case actions.Collect():
                    await self._effects.collect(attempt_of(job))
                case actions.Forget():
                    await self._effects.forget(job.attempt)
                    again = again or seen.phase is not AttemptPhase.ABSENT
                case actions.SweepPoints():
                    await self._metrics.store_spooled(job, self._executor.workspace)
                case actions.Erase():
                    await self._erase(job)
                case actions.CheckAgain():
                    self.look_at(uid, max(action.at - self._clock(), 0.01))
        return again

    def _decide(self, job: Job, seen: Observation, memory: _Memory) -> list[Action]:
        now, steady = self._clock(), self._steady()
        if memory.ran_since is None and job.phase is Phase.RUNNING:
            memory.ran_since = steady
        watched = 0.0 if memory.ran_since is None else steady - memory.ran_since
        stopped = None if memory.stop_sent is None else now - (steady - memory.stop_sent)
        return d.decide(job, seen, now, self._policy.grace_s, stopped, watched)

    async def _observe(self, job: Job) -> Observation:
        if job.phase not in ALIVE or (job.phase is Phase.STARTING and job.attempt in self._fresh):
            return Observation(job.attempt, AttemptPhase.ABSENT)
        every = await self._executor.observe([job.attempt])
        seen = every.get(job.attempt) or Observation(job.attempt, AttemptPhase.ABSENT)
        if seen.ending is None or job.spec.replica is not None:
            return seen
        try:
            saved = await self._executor.workspace.newest_checkpoint(run_of(job))
        except (OSError, MLPError):
            return seen  # it is for the timeline only
        return replace(seen, ending=replace(seen.ending, checkpoint_at=saved))

    async def _store(self, move: Move, memory: _Memory) -> Job:
        """Store a move."""
        old, new = move.old, move.new
        self._fresh.pop(old.attempt, None)
        progress = self._metrics.take_progress(new.uid)
        # what is reported while an attempt ends is nothing of the next one
        if progress is not None and new.phase is not Phase.FINISHED and new.attempt == old.attempt:
            new = with_progress(new, progress, self._clock())
        token = make_token() if new.phase is Phase.STARTING else None
        if new is not move.new or token is not None or move.token is not None:
            move = replace(move, new=new, token=None if token is None else token.sha256)
        stored = await self._moves.submit_item(move)
        if token is not None:
            memory.token = token.secret
        if stored.phase in FINAL:
            self._memory.pop(stored.uid, None)
        return stored

    async def _store_all(self, moves: Sequence[Move]) -> Sequence[Job | Exception]:
        """Store all due moves in one transaction."""
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

    async def _store_ranks(self, update: actions.Update, memory: _Memory) -> None:
        job, now = update.job, self._clock()
        states_before = [r.state for r in self._board.jobs[job.uid].ranks]
        if states_before == [r.state for r in job.ranks] and now < memory.ranks_at + RANKS_EVERY_S:
            self.look_at(job.uid, RANKS_EVERY_S)  # what they use changes all the time
            return
        memory.ranks_at = now

        def work(tx: Tx, changes: Changes) -> None:
            changes.update(tx, job)
            changes.add_events(tx, [(job.uid, step) for step in update.steps], now)

        await self._board.commit(work)

    async def _add_steps(self, job: Job, steps: Sequence[Step]) -> None:
        """Store steps of a job's timeline; the job stays as it is."""
        now = self._clock()

        def work(tx: Tx, changes: Changes) -> None:
            changes.add_events(tx, [(job.uid, step) for step in steps], now)

        await self._board.commit(work)

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
        if job.spec.data:
            # nobody deletes what a job reads but with all else of its owner; and a tenant may share no more
            lost = await self._board.db.read(lambda tx: data.refusal(tx, job.spec))
            if lost is not None:
                await self._store(d.give_up_starting(job, lost.message, 1, self._clock()), memory)
                return
            try:
                await self._data_ready(job)
            except CannotStart as error:
                await self._store(d.give_up_starting(job, _text(error), 1, self._clock()), memory)
                return
            await self._note_data(job)
        await note_program(self._board, self._executor.workspace, job, self._clock())
        network = await self._networks.network_of(job.spec.tenant)
        spec = launch_spec(job, uid, memory.token, self._policy, network)
        try:
            await self._effects.start(spec)
        except (LeaseLost, Superseded):
            raise
        except Exception as error:
            # neither is anything of the job's: it waits, however long it takes
            passes = isinstance(error, OutOfReach) or (isinstance(error, OSError) and error.errno in _FULL)
            memory.start_errors += not passes
            permanent = isinstance(error, CannotStart)
            if permanent or memory.start_errors >= self._policy.start_tries:
                tries = 1 if permanent else memory.start_errors
                await self._store(d.give_up_starting(job, _text(error), tries, self._clock()), memory)
                return
            raise
        memory.start_errors = 0

    async def _note_data(self, job: Job) -> None:
        """Note what the datasets of a run are before its first start, once; where that cannot be told it starts all the same."""

        def read(tx: Tx) -> tuple[tuple[UsedDataset, ...], set[str]]:
            used = tx.runs.origin(job.uid).data
            # of what is read through only parts are here, now these and now those
            found = {each.uid: tx.datasets.get(SYSTEM, each.uid) for each in used}
            return used, {uid for uid, dataset in found.items() if dataset and dataset.is_read_through}

        known, through = await self._board.db.read(read)
        if job.restarts or all(used.digest or used.uid in through for used in known):
            return
        found = await with_digests(self._executor.workspace, job.spec.tenant, known, but=through)
        if found != known:
            await self._board.commit(lambda tx, _: tx.runs.put_data(job.uid, found))

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
            await self._effects.erase(run_of(job))
        finally:
            for uid in self._clearing.end(job.uid):
                self.look_at(uid)

        def work(tx: Tx, changes: Changes) -> None:
            tx.stored.remove(job.uid)
            if tx.jobs.remove(job.uid):
                changes.removed.append(job)

        await self._board.commit(work)
        self._memory.pop(job.uid, None)

    async def _show(self, uid: str, error: Exception) -> None:
        """Show why a job is looked at again later."""
        job = self._board.jobs.get(uid)
        if job is None:
            return
        if not isinstance(error, MLPError | OSError) or isinstance(error, StatementFailed):
            log.error("job %s of %s", job.title, job.spec.user, exc_info=error)
        said = _text(error)
        message = said if isinstance(error, data.OnItsWay) and isinstance(said, Message) else again(said)
        if message != job.message:
            try:
                await self._board.commit(lambda tx, c: c.update(tx, replace(job, message=message)))
            except Exception:  # noqa: BLE001 - what is wrong with the job may be that nothing of it can be stored
                await self._board.refresh(uid)

    async def _calm(self, uid: str) -> None:
        """Remove a job's message about a trouble that is over."""
        job = self._board.jobs.get(uid)
        if job is None or job.message.template != AGAIN:
            return
        note = d.grace_note(job)
        if note is not None:
            await self._board.commit(lambda tx, c: c.update(tx, replace(job, message=note)))

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
        """Release the holdings of attempts that are not in progress: nothing may leak after any crash.

        The transaction decides: an executor may report meanwhile, and a look then stores another attempt.
        """
        now = self._clock()

        def work(tx: Tx, _: Changes) -> list[str]:
            unknown = [r.id for r in tx.ledger.held(now, applier=APPLIER) if not self._is_in_progress(r.id)]
            orphans = [attempt for attempt in unknown if not _is_stored(tx, attempt)]
            for attempt in orphans:
                release(tx, attempt)
            return orphans

        for attempt in await self._board.commit(work):
            log.warning("released the holdings of attempt %s, which is not in progress", attempt)

    async def _forget_leftovers(self) -> None:
        """Remove attempts of jobs that are not in progress."""
        known = await self._executor.known()  # asked first: what starts meanwhile is not in it
        for attempt in known:
            if not self._is_in_progress(attempt):
                await self._effects.forget(attempt)

    def _is_in_progress(self, attempt: str) -> bool:
        job = self._board.holding.get(uid_of_attempt(attempt))
        return job is not None and job.attempt == attempt


def _is_stored(tx: Tx, attempt: str) -> bool:
    """Return whether an attempt is stored as one that is in progress."""
    job = tx.jobs.get(SYSTEM, uid_of_attempt(attempt))
    return job is not None and job.phase in HOLDING and job.attempt == attempt


def _runs_now(job: Job, before: Job | None) -> bool:
    """Return whether a job has begun to run and needs nothing until its executor or a user reports more."""
    return (
        job.phase is Phase.RUNNING
        and before is not None
        and before.phase is Phase.STARTING
        and job.target is Target.RUN
        and job.spec.time_limit is None
    )


def again(said: Message | str) -> Message:
    """Return that it is tried again, and why."""
    return msg("trying again: {error}", error=said)


AGAIN = again("").template


def _text(error: BaseException) -> Message | str:
    if isinstance(error, MessageError):
        return error.message
    return str(error) or type(error).__name__
