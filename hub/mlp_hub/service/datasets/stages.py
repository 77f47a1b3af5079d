"""Datasets that are read through: files that jobs need are fetched first and removed after the last use.

This is not stored. A job's start requests its needs, also after a restart, and a look at the files
shows which ones are there. The worker of the queue handles one dataset once at a time. So nothing
is removed during a fetch, nor between it and the start of a job that asked for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from mlp_hub.domain.errors import Refused
from mlp_hub.domain.jobs.job import Job
from mlp_hub.domain.stored.dataset import Dataset
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.executors.base import CannotStart
from mlp_hub.service.datasets.copies import TRIES, CopyMakesWay, CopySteps, CopyStopped, SourceCopies
from mlp_hub.service.datasets.fetch_turns import FetchTurn
from mlp_hub.service.lifecycle.effects import FencedEffects
from mlp_hub.service.lifecycle.stored import place_of
from mlp_hub.service.lifecycle.workqueue import WorkQueue
from mlp_hub.service.storage.data import OnItsWay
from mlp_hub.store.database import Database
from mlp_hub.store.tx import Tx
from mlp_language.message import NOTHING, Message, msg

log = logging.getLogger(__name__)
LOOKS_S = 5.0
"""Tuning: seconds between two looks whether a job still needs what is fetched: sooner to leave off, for a question each."""


@dataclass(slots=True)
class _Need:
    """Needs of one attempt from one dataset."""

    job: str
    paths: frozenset[str]
    done: bool = False
    failed: Message = NOTHING

    @property
    def waits(self) -> bool:
        """Whether it is still to be fetched."""
        return not (self.done or self.failed)


@dataclass(slots=True)
class _Stage:
    """Knowledge of this process about one dataset; all of it can be lost."""

    needs: dict[str, _Need] = field(default_factory=dict)  # by attempt
    percent: int = 0
    failures: int = 0
    stopped: bool = False


class DataStages:
    """Stages that fetch and remove files; a dataset is charged at the next look, which the caller requests."""

    def __init__(self, db: Database, acts: FencedEffects, copies: SourceCopies, queue: WorkQueue) -> None:
        self._db, self._effects, self._copies, self._queue = db, acts, copies, queue
        self._of: dict[str, _Stage] = {}

    async def ready(self, job: Job) -> None:
        """Return where all that the present attempt of a job reads is there.

        Raises `OnItsWay` while it is fetched, for which nobody has to ask again: the job is looked at then; `CannotStart` where it
        cannot be had.
        """
        for found in await self._db.read(lambda tx: _through(tx, job)):
            uid = found.item.uid
            stage = self._of.setdefault(uid, _Stage())
            need = stage.needs.get(job.attempt)
            if need is None:
                for old in [key for key, one in stage.needs.items() if one.job == job.uid]:
                    del stage.needs[old]
                paths = frozenset(use.part for use in job.spec.data if use.uid == uid)
                need = stage.needs[job.attempt] = _Need(job.uid, paths)
            if need.failed:
                raise CannotStart(
                    msg("dataset {name} cannot be read: {why}", name=found.item.name, why=need.failed)
                )
            if not need.done:
                self._queue.add(("dataset", uid))
                raise OnItsWay(
                    msg(
                        "files of dataset {name} that it reads are being fetched from {url}: {n} %",
                        name=found.item.name,
                        url="" if found.source is None else found.source.url,
                        n=stage.percent,
                    )
                )

    async def work(self, found: Dataset) -> bool:
        """Fetch what is needed of a dataset, or remove what is not; return whether its files are others now."""
        uid = found.item.uid
        stage = self._of.get(uid)
        waits = [] if stage is None else [need for need in stage.needs.values() if need.waits]
        if stage is not None and waits:
            # each by itself, and charged before the next: what one cannot have is no other's fault
            await self._fetch(found, stage, waits[0])
            if len(waits) > 1:
                self._queue.add(("dataset", uid))
            return True
        if not (found.item.used or found.item.reserved):
            return False
        if await self._is_needed(found):
            return False
        self._of.pop(uid, None)
        await self._effects.evict(
            place_of(found.item), await self._db.read(lambda tx: self._owner(tx, found))
        )
        return True

    async def _fetch(self, found: Dataset, stage: _Stage, need: _Need) -> None:
        stage.stopped, stage.percent = False, 0
        failed: Message = NOTHING
        async with self._copies.turns.turn(found.item.user, found.item.tenant) as turn:
            try:
                source, owner = await self._db.read(lambda tx: self._copies.opened(tx, found))
                with self._watched(found, stage):
                    await self._effects.fetch(
                        replace(source, wanted=tuple(sorted(need.paths))),
                        place_of(found.item),
                        owner,
                        _Steps(self._copies, found.item.uid, turn, stage),
                    )
            except CopyStopped:
                self._of.pop(found.item.uid, None)
                return
            except CopyMakesWay:
                self._queue.add(("dataset", found.item.uid))
                return
            except Refused as refused:
                failed = refused.message
            except OSError:
                stage.failures += 1
                if stage.failures < TRIES:
                    raise
                log.exception(
                    "what jobs need of dataset %s of %s cannot be fetched", found.item.name, found.item.user
                )
                failed = msg("fetching it failed {n} times; the hub's log has the reason", n=TRIES)
        stage.failures = 0
        need.done, need.failed = not failed, failed
        self._queue.add(("job", need.job))

    @contextlib.contextmanager
    def _watched(self, found: Dataset, stage: _Stage) -> Iterator[None]:
        """Leave off once no job needs it any more."""

        async def watch() -> None:
            while not stage.stopped:
                await asyncio.sleep(LOOKS_S)
                stage.stopped = not await self._is_needed(found)

        watching = asyncio.ensure_future(watch())
        try:
            yield
        finally:
            watching.cancel()

    async def _is_needed(self, found: Dataset) -> bool:
        item = found.item
        return await self._db.read(lambda tx: tx.jobs.reader_of(SYSTEM, item.uid, item.tenant)) is not None

    def _owner(self, tx: Tx, found: Dataset) -> int | None:
        return self._copies.owner_of(tx, found)


class _Steps(CopySteps):
    """A fetch for a job: room is kept as for a copy, and how far it is stays in memory."""

    def __init__(self, copies: SourceCopies, uid: str, turn: FetchTurn, stage: _Stage) -> None:
        super().__init__(copies, uid, turn)
        self._stage = stage

    def report_progress(self, percent: int) -> None:
        self._stage.percent = percent

    def check_cancelled(self) -> None:
        if self._stage.stopped:
            raise CopyStopped
        self.make_way()


def _through(tx: Tx, job: Job) -> list[Dataset]:
    uids = dict.fromkeys(use.uid for use in job.spec.data)
    found = (tx.datasets.get(SYSTEM, uid) for uid in uids)
    return [one for one in found if one is not None and one.is_read_through]
