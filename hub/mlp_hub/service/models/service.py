"""Use of models by people: register, list, show, set the stage, fetch, delete."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from mlp_api.stored import models as api
from mlp_hub.domain.errors import Reason, Refused, not_found
from mlp_hub.domain.jobs import names
from mlp_hub.domain.stored.model import ModelPhase, ModelSource, ModelStage, ModelVersion, check_model_move
from mlp_hub.domain.stored.storage import StoredItem, StoredKind
from mlp_hub.domain.tenants.tenant import no_such_tenant
from mlp_hub.domain.tenants.tenant_context import SYSTEM, TenantContext
from mlp_hub.executors.base import Executor
from mlp_hub.executors.places import Home
from mlp_hub.executors.workspace import DirectoryPage, Extent, JobRun, OpenFile
from mlp_hub.service.lifecycle.stored import place_of
from mlp_hub.service.models import lineage as source
from mlp_hub.service.models.wire import mlmodel, to_wire
from mlp_hub.service.models.worker import ModelWorker, source_place
from mlp_hub.service.storage.ledger import TOGETHER, StorageLedger
from mlp_hub.service.support.told import notifying
from mlp_hub.service.support.uids import UidMaker
from mlp_hub.service.tenants.places import default_tenant, tenants_of
from mlp_hub.store.database import Database
from mlp_hub.store.tx import Tx
from mlp_language.message import msg

P = ModelPhase
MLMODEL = "MLmodel"
MOST_MLMODEL = 64 << 10
"""Safety: bytes of an `MLmodel` file that are given as text."""


class ModelService:
    """Use cases of models. Whether who asks may is for the caller to say; `changed` is told what may have made or taken room."""

    def __init__(
        self,
        db: Database,
        executor: Executor,
        storage: StorageLedger,
        worker: ModelWorker,
        clock: Callable[[], float],
        *,
        changed: Callable[[], None],
    ) -> None:
        self._db, self._executor, self._storage, self._worker, self._clock = (
            db,
            executor,
            storage,
            worker,
            clock,
        )
        self.start = worker.start
        self._changed = changed
        self._uids = UidMaker()

    async def register(
        self, context: TenantContext, user: str, asked: api.ModelCreate, *, actor: str | None = None
    ) -> api.Model:
        """Take in the next version of a model, with its room kept; durable when this returns, and copied after that."""
        job, run, path = source.parse(user, asked.src)
        of_job = ""
        if job:
            found = await self._db.read(lambda tx: source.find_job(tx, context, user, job, run))
            run, of_job = found.run, found.spec.tenant
        origin = ModelSource(path, job, run or 0)
        extent = await self._extent(user, origin, of_job)
        now = self._clock()
        uid = self._uids.make(now)

        def work(tx: Tx) -> ModelVersion:
            made_by = source.find_job(tx, context, user, job, run) if job else None
            tenant = self._tenant(tx, user, asked.tenant, None if made_by is None else made_by.spec.tenant)
            tx.users.ensure(user, now)
            version = tx.models.next_version(user, asked.name)
            title = names.reference(asked.name, version)
            item = StoredItem(uid, StoredKind.MODEL, tenant, user, title, now, reserved=extent.size)
            self._storage.reserve(tx, item)
            lineage = source.lineage_text(source.lineage_of(tx, made_by, now))
            made = ModelVersion(
                item,
                asked.name,
                version,
                P.CREATING,
                origin,
                lineage,
                files=extent.files,
                any_files=asked.any_files,
            )
            tx.models.put(made)
            tx.audit.add(
                now,
                actor or user,
                "model.register",
                title,
                tenant=tenant,
                detail={"src": source.text_of(origin)},
            )
            return made

        made = await notifying(self._db.write(work), self._changed)
        self._worker.look_at(uid)
        return to_wire(made)

    async def _extent(self, user: str, origin: ModelSource, of_job: str) -> Extent:
        """Add up the files of a source; a path without a root is in the owner's home, where programs begin."""
        workspace, path = self._executor.workspace, origin.path
        try:
            return await workspace.extent(source_place(user, origin, of_job), path)
        except Refused as refused:
            if not origin.job or refused.reason is not Reason.NOT_FOUND:
                raise
        at_home = f"home/{path}"
        try:
            await workspace.extent(Home(user), path)
        except Refused:
            raise Refused(
                Reason.NOT_FOUND,
                msg(
                    "{job} has no {path}: that is /workspace/{path} in its program. Files that a program writes elsewhere are in your home: home/PATH",
                    job=names.reference(origin.job, origin.run),
                    path=source.clip(path) or "/",
                ),
            ) from None
        raise Refused(
            Reason.NOT_FOUND,
            msg(
                "{job} has no {path}, but your home has it: its program wrote there, not to /workspace/{path}. Write {right}",
                job=names.reference(origin.job, origin.run),
                path=source.clip(path),
                right=source.clip(at_home),
            ),
        )

    async def found_in(self, context: TenantContext, user: str, reference: str) -> Sequence[api.FoundModel]:
        """Return the models among the files of a run, as they would be registered. Raises NotFound."""
        job = await self._db.read(lambda tx: source.find_job(tx, context, user, reference, None))
        of = JobRun(job.spec.user, job.spec.name, job.run, job.spec.tenant)
        found = await self._executor.workspace.models(of)
        return [
            api.FoundModel(
                source.text_of(ModelSource(path, job.spec.name, job.run)), path, kind.name, kind.pickled
            )
            for path, kind in found
        ]

    @staticmethod
    def _tenant(tx: Tx, user: str, asked: str | None, of_job: str | None) -> str:
        """Return the model's tenant; a job's model belongs to the job's tenant, whose resources made it."""
        tenant = of_job or asked or default_tenant(tx, user)
        if asked is not None and asked != tenant:
            raise Refused(
                Reason.INVALID,
                msg(
                    "tenant is {asked}; the job belongs to {tenant}, and so do its models",
                    asked=asked,
                    tenant=tenant,
                ),
            )
        if tenant not in tenants_of(tx, user):
            raise no_such_tenant(tenant, tenants_of(tx, user))
        return tenant

    async def get(self, context: TenantContext, user: str, name: str) -> api.Model:
        """Return a version of a model. Raises NotFound."""
        return to_wire(await self._find(context, user, name))

    async def tenant_of(self, user: str, name: str) -> tuple[str, str] | None:
        """Return the tenant of a version, and what means that very one; None where there is none."""
        found = await self._db.read(lambda tx: _find(tx, SYSTEM, user, name))
        return None if found is None else (found.item.tenant, found.item.name)

    async def list(
        self,
        context: TenantContext,
        user: str,
        *,
        tenant: str | None = None,
        state: str | None = None,
        name: str | None = None,
        stage: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> tuple[Sequence[api.Model], str | None]:
        """Return versions of a user's models, the newest first, and the cursor of the next page."""
        found = await self._db.read(
            lambda tx: tx.models.page(
                context,
                user,
                tenant=tenant,
                phase=None if state is None else P(state),
                name=name,
                stage=None if stage is None else ModelStage(stage),
                before=cursor,
                limit=limit + 1,
            )
        )
        following = found[limit - 1].item.uid if len(found) > limit else None
        return [to_wire(each) for each in found[:limit]], following

    async def move(
        self, context: TenantContext, user: str, name: str, stage: str, *, actor: str
    ) -> api.Model:
        """Say how far a version is used; the one that was in production before is archived."""
        now = self._clock()
        new = ModelStage(stage)

        def work(tx: Tx) -> ModelVersion:
            found = _existing(tx, context, user, name)
            if found.phase is not P.READY and new is not ModelStage.NONE:
                raise Refused(
                    Reason.WRONG_STATE,
                    msg(
                        "model {name} is {phase}; only one that is ready can be used",
                        name=found.item.name,
                        phase=found.phase,
                    ),
                )
            if new is ModelStage.PRODUCTION:
                tx.models.change_stage(user, found.model, ModelStage.PRODUCTION, ModelStage.ARCHIVED)
            moved = replace(found, stage=new)
            tx.models.put(moved)
            detail = {"old": str(found.stage), "new": str(new)}
            tx.audit.add(now, actor, "model.stage", found.item.name, tenant=found.item.tenant, detail=detail)
            return moved

        return to_wire(await self._db.write(work))

    async def delete(self, context: TenantContext, user: str, name: str, *, actor: str) -> api.Model:
        """Delete a version with its files, which are removed after this has returned; it holds its room until then."""
        now = self._clock()

        def work(tx: Tx) -> ModelVersion:
            found = _existing(tx, context, user, name)
            if app := tx.apps.using(SYSTEM, user, found.model, found.version):
                raise Refused(
                    Reason.WRONG_STATE,
                    msg(
                        "app {app} serves model {name}; delete the app first, or deploy another version there",
                        name=found.item.name,
                        app=app,
                    ),
                )
            check_model_move(found, P.DELETING)
            deleting = replace(found, phase=P.DELETING)
            tx.models.put(deleting)
            tx.audit.add(now, actor, "model.delete", found.item.name, tenant=found.item.tenant)
            return deleting

        deleting = await self._db.write(work)
        self._worker.look_at(deleting.item.uid, unwanted=True)
        return to_wire(deleting)

    async def remove(self, user: str) -> bool:
        """Delete all of a user who leaves; return whether none is left."""

        def work(tx: Tx) -> Sequence[str]:
            found = tx.models.page(SYSTEM, user, limit=TOGETHER)
            for each in found:
                if each.phase is not P.DELETING:
                    check_model_move(each, P.DELETING)
                    tx.models.put(replace(each, phase=P.DELETING))
            return [each.item.uid for each in found]

        uids = await self._db.write(work)
        for uid in uids:
            self._worker.look_at(uid, unwanted=True)
        return not uids

    async def files(
        self, context: TenantContext, user: str, name: str, path: str, *, after: str, limit: int
    ) -> DirectoryPage:
        """List a directory of a version that is ready."""
        found = await self._ready(context, user, name)
        return await self._executor.workspace.files(place_of(found.item), path, after, limit)

    async def open_file(self, context: TenantContext, user: str, name: str, path: str) -> OpenFile:
        """Open a file of a ready version; the caller closes it."""
        found = await self._ready(context, user, name)
        return await self._executor.workspace.open_file(place_of(found.item), path)

    async def mlmodel(self, context: TenantContext, user: str, name: str) -> str:
        """Return the `MLmodel` of a version that is ready: its own, or one that is written now."""
        found = await self._ready(context, user, name)
        if found.format.main != MLMODEL:
            return mlmodel(found)
        file = await self._executor.workspace.open_file(place_of(found.item), MLMODEL)
        try:
            return (await file.read(0, MOST_MLMODEL)).decode("utf-8", "replace")
        finally:
            file.close()

    async def _ready(self, context: TenantContext, user: str, name: str) -> ModelVersion:
        found = await self._find(context, user, name)
        if found.phase is not P.READY:
            raise Refused(
                Reason.WRONG_STATE,
                msg(
                    "model {name} is {phase}; only one that is ready has files",
                    name=found.item.name,
                    phase=found.phase,
                ),
            )
        return found

    async def _find(self, context: TenantContext, user: str, name: str) -> ModelVersion:
        return await self._db.read(lambda tx: _existing(tx, context, user, name))


def _find(tx: Tx, context: TenantContext, user: str, name: str) -> ModelVersion | None:
    parsed = names.parse_reference(name)
    return None if parsed is None else tx.models.find(context, user, *parsed)


def _existing(tx: Tx, context: TenantContext, user: str, name: str) -> ModelVersion:
    found = _find(tx, context, user, name)
    if found is None:
        raise not_found("model", name)
    return found
