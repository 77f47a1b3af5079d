"""Worker of the queue that moves a tenant's files to a new location.

1. No work of the tenant starts any more; running work continues to its end. Replicas of apps, which
   have no end, are ended last, and start again afterwards.
2. From then on no part of the platform changes its files. They are copied, and both copies
   compared.
3. One transaction makes the copy the valid one; the original is removed.

Each step can begin again after any crash: the stored state names the step, and no step assumes
unfinished work to be done. Until the third one all is as it was, and the move can be called off.
"""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from mlp_hub.domain.errors import MessageError, Reason, Refused, Unavailable
from mlp_hub.domain.jobs.job import GOES_ON, HOLDING, Phase, Target
from mlp_hub.domain.tenants.relocation import Relocation, RelocationPhase, check_relocation_move
from mlp_hub.domain.tenants.tenant import ENCRYPTED, Isolation, Tenant
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.domain.workload.workload import SERVER
from mlp_hub.executors.base import Executor, Superseded
from mlp_hub.executors.environments import kernels_of
from mlp_hub.executors.places import Belonging, JobRun
from mlp_hub.executors.tenant_files import Crossing, MovedWrongError, TenantFiles
from mlp_hub.scheduler.model.types import Verdict
from mlp_hub.service.lifecycle.stored import place_of
from mlp_hub.service.lifecycle.workqueue import WorkQueue
from mlp_hub.service.quota.refusals import holder_of
from mlp_hub.service.state.board import Board, Changes
from mlp_hub.service.state.leadership import Leadership, LeaseLost
from mlp_hub.service.state.moves import Step
from mlp_hub.service.support.told import notifying
from mlp_hub.store.tx import Tx
from mlp_language.message import NOTHING, JobRef, Message, msg, msgs

log = logging.getLogger(__name__)
KIND = "relocation"
"""Kind of its keys in the work queue: the names of tenants."""
LOOK_S = 1.0
"""Tuning: seconds between two looks whether what runs has ended: sooner with less, cheaper with more."""
MOST_NAMED = 5
"""Safety: workloads that a message names: it stays a sentence."""
TRIES = 3
"""Safety: times that files are copied which were found to differ, before it is given up."""
SPARE = 20
"""Safety: divisor of the copied size for extra free space: directories and names take room too."""
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
R = RelocationPhase


class CalledOff(Exception):  # noqa: N818 - what happened
    """Exception: the stored state no longer asks for this step."""


class StorageMigrationWorker:
    """Moves tenants' files. `hold` is told why nothing of which tenants may start; `changed` what may have made room."""

    def __init__(
        self,
        queue: WorkQueue,
        board: Board,
        executor: Executor,
        lease: Leadership,
        clock: Callable[[], float],
        *,
        hold: Callable[[Mapping[str, Verdict]], None],
        changed: Callable[[], None],
        idle_s: float,
    ) -> None:
        self._queue, self._board, self._db, self._lease, self._clock = queue, board, board.db, lease, clock
        self._files: TenantFiles | None = executor.workspace.tenants
        self._hold, self._changed, self._idle_s = hold, changed, idle_s
        self._held: dict[str, Verdict] = {}
        self._holding = asyncio.Lock()
        self._done: dict[str, int] = {}
        self._tries: dict[str, int] = {}
        self._asked: set[str] = set()  # of whom something is stored that who is at it may not know
        queue.serve(KIND, self._work)

    async def start(self) -> None:
        """Point all parts to the stored locations of files, and continue with moves that are not over."""
        self._held.clear()
        if self._files is None:
            return
        found = {one.tenant: one for one in await self._db.read(lambda tx: tx.relocations.all())}
        entered = await self._files.entered()
        for tenant in sorted(found.keys() | entered.keys()):
            one = found.get(tenant)
            kept, under_way = (Isolation(), False) if one is None else (one.kept, one.under_way)
            was, held = entered.get(tenant, (Isolation(), False))
            if was != kept or (held and not under_way):
                await self._enter(tenant, kept, held=under_way)
            if under_way:
                self.look_at(tenant)
        await self._hold_moving()

    def look_at(self, tenant: str) -> None:
        """Request a look at a tenant whose files might have to move; a worker in progress finds the changes."""
        if self._files is not None:
            self._asked.add(tenant)
            self._queue.add((KIND, tenant))

    def done(self, tenant: str) -> int:
        """Return the bytes that are copied, or compared."""
        return self._done.get(tenant, 0)

    async def refuses(self, tenant: str) -> None:
        """Raise `TenantMoves` where nothing of a tenant may start."""
        held = self._held.get(tenant)
        if held is not None:
            raise Refused(Reason.TENANT_MOVES, held.headline, retry_after=30)

    async def preview(self, before: Tenant, after: Tenant) -> Message | None:
        """Say what a change of how a tenant's files are kept would do; None where it changes nothing of that."""
        if before.kept == after.kept:
            return None

        def look(tx: Tx) -> tuple[int, Message | None]:
            return len(tx.stored.of_tenant(after.name)) + len(
                tx.jobs.runs_of(SYSTEM, after.name)
            ), self._who_runs(tx, after.name)

        number, who = await self._db.read(look)
        return msg(
            "{n} datasets, models and jobs' directories of {tenant} move from {old} to {new}. Nothing of it starts until that is done; running work continues until it ends. {who}",
            n=number,
            tenant=after.name,
            old=before.isolation,
            new=after.isolation,
            who=who or msg("Nothing runs now"),
        )

    async def rotate(self, tenant: str, actor: str) -> None:
        """Give an encrypted tenant another key. Raises `WrongState` for one that is not, or is being moved."""

        def look(tx: Tx) -> None:
            last = tx.relocations.get(tenant)
            if last is None or last.under_way or last.kept.grade != ENCRYPTED:
                text = msg(
                    "the files of {tenant} are not kept encrypted, or are being moved; it has no key to change",
                    tenant=tenant,
                )
                raise Refused(Reason.WRONG_STATE, text)

        await self._db.read(look)
        assert self._files is not None  # noqa: S101 - they are encrypted
        await self._lease.ensure_held()
        try:
            await self._files.rotate(tenant, self._lease.epoch)
        except (OSError, ValueError) as error:
            raise Unavailable(
                msg("the key of {tenant} could not be changed: {why}", tenant=tenant, why=str(error))
            ) from error
        await self._db.write(
            lambda tx: tx.audit.add(self._clock(), actor, "tenant.key", tenant, tenant=tenant, detail={})
        )

    async def remove_unused_mounts(self) -> None:
        """Take away mounts of encrypted files that nobody used for a while."""
        if self._files is None:
            return
        for tenant in await self._files.mounted():

            def is_busy(tx: Tx, tenant: str = tenant) -> bool:
                return self._who_runs(tx, tenant) is not None or tx.relocations.under_way(tenant) is not None

            if not await self._db.read(is_busy):
                await self._files.rest(tenant, self._idle_s)

    # ------------------------------------------------------------- the steps

    async def _work(self, tenant: str) -> bool:
        self._asked.discard(tenant)
        found = await self._db.read(lambda tx: tx.relocations.under_way(tenant))
        await self._hold_moving()
        if found is None or self._files is None:
            return False
        try:
            return await self._step(found, self._files)
        except (LeaseLost, Superseded):
            return False
        except CalledOff:
            return True
        except MovedWrongError as wrong:
            return await self._differs(found, wrong.message)
        except OSError as error:
            if error.errno in _FULL and found.phase is R.COPYING:
                return await self._undo(
                    found, msg("the disk filled up while it was copied; make room there, and ask again")
                )
            await self._say(found, msg("it is tried again: {why}", why=str(error.strerror or error)))
            raise
        except MessageError as error:
            await self._say(found, error.message)
            raise

    async def _step(self, found: Relocation, files: TenantFiles) -> bool:
        match found.phase:
            case R.WAITING:
                return await self._wait(found, files)
            case R.COPYING:
                return await self._copy(found, files)
            case R.COMPARING:
                return await self._compare(found, files)
            case R.REMOVING:
                return await self._remove(found, files)
            case _:
                return await self._put_back(found, files)

    async def _wait(self, found: Relocation, files: TenantFiles) -> bool:
        tenant = found.tenant
        if (who := await self._db.read(lambda tx: self._who_runs(tx, tenant))) is None:
            await self._enter(tenant, found.old, held=True)
            # what was about to start has found the files held, and begins again; whatever did start is waited for
            who = await self._db.read(lambda tx: self._who_runs(tx, tenant))
            if who is None and not await files.is_quiet(tenant):
                who = msg("waits for requests for its files that are in progress")
            if who is not None:
                await self._enter(tenant, found.old, held=False)
        if who is not None:
            await self._say(found, who)
            await self._end_replicas(tenant)
            self._queue.add_after((KIND, tenant), LOOK_S)
            return False
        try:
            room = await files.room(_way(found), await self._belongings(tenant), self._lease.epoch)
        except FileExistsError as error:
            return await self._undo(
                found,
                msg("{path} cannot be used: {why}", path=error.filename or "", why=error.strerror or ""),
            )
        if room.needed + room.needed // SPARE > room.free:
            text = msg(
                "{needed} MiB must be copied, but only {free} MiB are free there; make room, and ask again",
                needed=room.needed >> 20,
                free=room.free >> 20,
            )
            return await self._undo(found, text)
        self._done[tenant] = 0
        return await self._move(found, R.COPYING, total=room.needed)

    async def _end_replicas(self, tenant: str) -> None:
        """End replicas of apps once nothing else of a tenant runs: they would be waited for for ever. They are queued again."""
        held = [job for job in self._board.holding.values() if job.spec.tenant == tenant]
        ended = [job.uid for job in held if job.target in GOES_ON and job.phase is not Phase.FINISHING]
        if not ended or any(job.spec.replica is None for job in held):
            return

        def work(tx: Tx, changes: Changes) -> None:
            if self._runs(tx, tenant).others or tx.relocations.under_way(tenant) is None:
                return
            for uid in ended:
                job = tx.jobs.get(SYSTEM, uid)
                if job is None or job.phase not in HOLDING or job.target not in GOES_ON:
                    continue
                changes.update(tx, replace(job, target=Target.PREEMPT))
                why = msg("Ended while its team's files are moved; it starts again when that is done.")
                changes.add_event(tx, uid, self._clock(), Step("preempted", why, Reason.TENANT_MOVES.value))

        await self._board.commit(work)

    async def _copy(self, found: Relocation, files: TenantFiles) -> bool:
        going = self._going_on(found)
        await files.copy(
            _way(found), await self._belongings(found.tenant), self._lease.epoch, going, self._counter(found)
        )
        return await self._move(found, R.COMPARING)

    async def _compare(self, found: Relocation, files: TenantFiles) -> bool:
        going = self._going_on(found)
        await files.compare(
            _way(found), await self._belongings(found.tenant), self._lease.epoch, going, self._counter(found)
        )
        return await self._move(found, R.REMOVING)

    async def _remove(self, found: Relocation, files: TenantFiles) -> bool:
        await self._enter(found.tenant, found.new, held=True)
        if not await files.is_quiet(found.tenant):  # somebody still reads what was copied
            self._queue.add_after((KIND, found.tenant), LOOK_S)
            return False
        await self._dissolve(found, found.old, files)
        await self._enter(found.tenant, found.new, held=False)
        return await self._end(found, R.DONE)

    async def _put_back(self, found: Relocation, files: TenantFiles) -> bool:
        await self._dissolve(found, found.new, files)
        await self._enter(found.tenant, found.old, held=False)
        return await self._end(found, R.FAILED)

    async def _dissolve(self, found: Relocation, kept: Isolation, files: TenantFiles) -> None:
        what = await self._belongings(found.tenant)
        epoch = self._lease.epoch
        await files.dissolve(found.tenant, kept, what, epoch, self._lease.going_on(epoch))

    async def _enter(self, tenant: str, kept: Isolation, *, held: bool) -> None:
        assert self._files is not None  # noqa: S101 - the callers looked
        await self._lease.ensure_held()
        await self._files.enter(tenant, kept, held=held, epoch=self._lease.epoch)

    # ------------------------------------------------------------- what is stored

    async def _move(self, found: Relocation, phase: RelocationPhase, *, total: int | None = None) -> bool:
        """Store the next phase; the one transaction that does so makes the new place valid."""

        def work(tx: Tx) -> None:
            now = tx.relocations.get(found.tenant)
            if now is None or now.phase is not found.phase:
                raise CalledOff
            check_relocation_move(now, phase)
            tx.relocations.put(
                replace(now, phase=phase, total=now.total if total is None else total, message=NOTHING)
            )

        await self._db.write(work)
        self._done[found.tenant] = 0
        return True

    async def _undo(self, found: Relocation, why: Message) -> bool:
        """Give the move up: the tenant's files stay where they are."""

        def work(tx: Tx) -> None:
            now = tx.relocations.get(found.tenant)
            tenant = tx.tenants.get(found.tenant)
            if now is None or tenant is None or now.phase is not found.phase:
                raise CalledOff
            check_relocation_move(now, R.UNDOING)
            tx.relocations.put(replace(now, phase=R.UNDOING, message=why))
            tx.tenants.update(_kept(tenant, now.old))

        await self._db.write(work)
        return True

    async def _differs(self, found: Relocation, why: Message) -> bool:
        """Copy differing files once more, or give up; files that cannot be copied at all end the move."""
        if found.phase is R.COMPARING:
            tries = self._tries[found.tenant] = self._tries.get(found.tenant, 0) + 1
            if tries < TRIES:
                return await self._move(found, R.COPYING)
        if found.phase not in (R.WAITING, R.COPYING, R.COMPARING):
            await self._say(found, why)
            raise MovedWrongError(why)
        return await self._undo(found, why)

    async def _end(self, found: Relocation, phase: RelocationPhase) -> bool:
        now = self._clock()

        def work(tx: Tx) -> None:
            last = tx.relocations.get(found.tenant)
            if last is None or last.phase is not found.phase:
                raise CalledOff
            check_relocation_move(last, phase)
            tx.relocations.put(replace(last, phase=phase, ended_at=now))
            detail = {
                "from": last.old.grade,
                "to": last.new.grade,
                "outcome": phase.value,
                "bytes": str(last.total),
            }
            tx.audit.add(now, last.asked_by, "tenant.moved", found.tenant, tenant=found.tenant, detail=detail)

        await notifying(self._db.write(work), self._changed)
        self._tries.pop(found.tenant, None)
        self._done.pop(found.tenant, None)
        await self._hold_moving()
        return False

    async def _say(self, found: Relocation, message: Message) -> None:
        def work(tx: Tx) -> None:
            now = tx.relocations.get(found.tenant)
            if now is not None and now.phase is found.phase and now.message != message:
                tx.relocations.put(replace(now, message=message))

        if message != found.message:
            await self._db.write(work)

    async def _hold_moving(self) -> None:
        """Tell who starts things which tenants' may not."""
        async with (
            self._holding
        ):  # reads side by side answer in any order: the last one told must be the newest
            found = await self._db.read(lambda tx: tx.relocations.all(under_way=True))
            held = {one.tenant: MOVES for one in found}
            if held.keys() != self._held.keys():
                self._held = held
                self._hold(held)

    async def _belongings(self, tenant: str) -> list[Belonging]:
        def look(tx: Tx) -> list[Belonging]:
            places = [*map(place_of, tx.stored.of_tenant(tenant)), kernels_of(tenant)]
            items: list[Belonging] = [replace(place, tenant="") for place in places]
            return [*items, *(JobRun(*run) for run in tx.jobs.runs_of(SYSTEM, tenant))]

        return await self._db.read(look)

    def _who_runs(self, tx: Tx, tenant: str) -> Message | None:
        return self._runs(tx, tenant).words

    def _runs(self, tx: Tx, tenant: str) -> StillRunning:
        return still_running(tx, self._board, tenant, self._clock())

    def _counter(self, found: Relocation) -> Callable[[int], None]:
        self._done[found.tenant] = 0

        def did(size: int) -> None:
            self._done[found.tenant] = self._done.get(found.tenant, 0) + size

        return did

    def _going_on(self, found: Relocation) -> Callable[[], None]:
        held = self._lease.going_on(self._lease.epoch)

        def check_cancelled() -> None:
            held()
            if found.tenant in self._asked:
                raise CalledOff

        return check_cancelled


MOVES = Verdict(Reason.TENANT_MOVES, msg("Its team's files are being moved. Starts when that is done."))
"""Why nothing of such a tenant starts."""


@dataclass(frozen=True, slots=True)
class StillRunning:
    """Running work or writers of a tenant: replicas of apps, and all `others` by name, which end alone."""

    replicas: int
    others: tuple[Message | JobRef | str, ...]

    @property
    def words(self) -> Message | None:
        """Work that the move waits for; None if there is none."""
        if self.others:
            return msgs(
                "waits for 1 to end: {names}",
                "waits for {n} to end: {names}",
                n=len(self.others),
                names=self.others[:MOST_NAMED],
            )
        if not self.replicas:
            return None
        return msgs(
            "ends 1 replica of its apps, which starts again when it is done",
            "ends {n} replicas of its apps, which start again when it is done",
            n=self.replicas,
        )


def still_running(tx: Tx, board: Board, tenant: str, now: float) -> StillRunning:
    """Return what of a tenant runs, or is being written to."""
    # a copy: this runs in a thread, beside the loop that changes it
    jobs = [job for job in board.holding.copy().values() if job.spec.tenant == tenant]
    names: list[Message | JobRef | str] = [job.ref for job in jobs if job.spec.replica is None]
    replicas = len(jobs) - len(names)
    names += [holder_of(row) for row in tx.ledger.held(now, tenant=tenant, applier=SERVER.applier)]
    names += [item.name for item in tx.stored.of_tenant(tenant) if item.granted]
    return StillRunning(replicas, tuple(names))


def _way(found: Relocation) -> Crossing:
    return Crossing(found.tenant, found.old, found.new)


def _kept(tenant: Tenant, kept: Isolation) -> Tenant:
    return replace(tenant, isolation=kept.grade, data_root=kept.root)
