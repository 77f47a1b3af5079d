"""Worker of the queue that brings versions of models to their phase: copied, or gone.

It reads the stored state and does the next step, at any number of calls: operation and recovery are
the same. A copy that a crash cut short begins again from nothing. A change of the source by a job
or a user in the meantime ends it with an error that names it.
"""

from __future__ import annotations

import errno
from dataclasses import replace

from mlp_hub.domain.errors import Refused
from mlp_hub.domain.stored.model import (
    ANY_FILES,
    ModelFormat,
    ModelPhase,
    ModelSource,
    ModelVersion,
    check_model_move,
)
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.executors.base import Superseded
from mlp_hub.executors.workspace import Extent, Home, JobRun, Place, Unfinished
from mlp_hub.service.lifecycle.stored import StoredWorker, WorkerContext, place_of
from mlp_hub.service.models.lineage import text_of
from mlp_hub.service.state.leadership import LeaseLost
from mlp_hub.service.support.told import notifying
from mlp_hub.store.tx import Tx
from mlp_language.message import Message, msg

KIND = "model"
P = ModelPhase
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


class Unwanted(Exception):  # noqa: N818 - what became of it
    """Exception: the version is deleted while its files are copied."""


class ModelWorker(StoredWorker):
    """Copies the files of versions, and removes them."""

    kind = KIND

    def __init__(self, context: WorkerContext) -> None:
        super().__init__(context)
        self._unwanted: set[str] = set()  # those that are copied and shall not be any further

    async def start(self) -> None:
        """Look at all that are not at rest."""
        for uid in await self._db.read(lambda tx: tx.models.in_phases((P.CREATING, P.DELETING))):
            self.look_at(uid)

    def look_at(self, uid: str, *, unwanted: bool = False) -> None:
        """Have a version looked at soon; one that is `unwanted` is copied no further."""
        if unwanted:
            self._unwanted.add(uid)
        self._queue.add((KIND, uid))

    async def _work(self, uid: str) -> bool:
        found = await self._db.read(lambda tx: tx.models.get(SYSTEM, uid))
        try:
            if found is not None and found.phase is P.CREATING:
                await self._create(found)
            elif found is not None and found.phase is P.DELETING:
                await self._delete(found)
        except (LeaseLost, Superseded):
            pass
        except (Unwanted, Unfinished):
            return True
        return False

    async def _create(self, found: ModelVersion) -> None:
        uid = found.item.uid

        def wanted() -> None:
            if uid in self._unwanted:
                raise Unwanted

        try:
            extent, kind = await self._effects.keep(
                source_place(found.item.user, found.source, found.item.tenant),
                found.source.path,
                place_of(found.item),
                most=found.item.reserved,
                wanted=wanted,
            )
        except Refused as refused:
            await self._fail(found, refused.message)
        except OSError as error:
            if error.errno not in _FULL:
                raise
            await self._fail(found, msg("the disk is full; nothing of it was kept"))
        else:
            if kind.name or found.any_files:
                await self._settle(found, extent, kind if kind.name else replace(kind, name=ANY_FILES))
            else:
                await self._fail(found, no_model(kind, found.source))

    async def _settle(self, found: ModelVersion, extent: Extent, kind: ModelFormat) -> None:
        await self._move(found, replace(found, phase=P.READY, format=kind, files=extent.files), extent.size)

    async def _fail(self, found: ModelVersion, message: Message) -> None:
        """Remove what was copied, then say why; a death in between has it copied once more."""
        await self._effects.erase_stored(place_of(found.item))
        await self._move(found, replace(found, phase=P.ERROR, message=message), 0)

    async def _move(self, found: ModelVersion, new: ModelVersion, size: int) -> None:
        uid = found.item.uid

        def work(tx: Tx) -> None:
            now = tx.models.get(SYSTEM, uid)
            if now is None or now.phase is not found.phase:
                return  # it is to be deleted by now, and is looked at again
            check_model_move(found, new.phase)
            self._storage.settle(tx, uid, size)
            tx.models.put(replace(new, stage=now.stage))

        await notifying(self._db.write(work), self._changed)

    async def _delete(self, found: ModelVersion) -> None:
        await self._erase(found.item, lambda tx, uid: tx.models.remove(uid))
        self._unwanted.discard(found.item.uid)


def no_model(kind: ModelFormat, source: ModelSource) -> Message:
    """Say that files are of no format that is known; where a model lies further down, how that is named."""
    if kind.below:
        return msg(
            "{src} itself is not a model, but directories below it are: register {sources}; to keep all files anyway, give --any-files (any_files over REST)",
            src=text_of(source),
            sources=tuple(
                text_of(replace(source, path=f"{source.path.rstrip('/')}/{below}")) for below in kind.below
            ),
        )
    return msg(
        "it contains no model, but {names}; models are MLflow (MLmodel), TensorFlow SavedModel, .keras, .safetensors, .onnx, .skops, .pt, .h5, .pkl or .joblib; to keep the files anyway, give --any-files (any_files over REST)",
        names=", ".join(kind.seen) or msg("nothing"),
    )


def source_place(user: str, source: ModelSource, tenant: str) -> Place:
    """Return what a source's path lies below; a model is of the tenant of its job."""
    return JobRun(user, source.job, source.run, tenant) if source.job else Home(user)
