"""Use of datasets by people: make, list, show, report the upload's progress, delete."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from urllib.parse import urlsplit

from mlp_api.localized import Text
from mlp_api.stored import datasets as api
from mlp_hub.domain.errors import Reason, Refused, not_found
from mlp_hub.domain.stored.dataset import Dataset, DatasetPhase, SourceMode, check_dataset_move
from mlp_hub.domain.stored.storage import StoredItem, StoredKind
from mlp_hub.domain.tenants.tenant import DEFAULT_TENANT, no_such_tenant
from mlp_hub.domain.tenants.tenant_context import SYSTEM, TenantContext
from mlp_hub.executors.workspace import OpenSource, SourceAsk
from mlp_hub.service.datasets.sources import DataSources
from mlp_hub.service.datasets.worker import DatasetWorker
from mlp_hub.service.storage.data import check_unused, state_of
from mlp_hub.service.storage.ledger import TOGETHER, StorageLedger
from mlp_hub.service.support.told import notifying
from mlp_hub.service.support.uids import UidMaker
from mlp_hub.service.support.units import when
from mlp_hub.service.tenants.places import default_tenant, tenants_of
from mlp_hub.store.database import Database
from mlp_hub.store.records import Remembered
from mlp_hub.store.tx import Tx
from mlp_language.message import NOTHING, msg

P = DatasetPhase
_STEPS = "/stored"
"""Owner of the keys of takes and gives of bytes; it cannot be a user's name."""
_STATES: Mapping[DatasetPhase, api.DatasetState] = {
    P.CREATING: "creating",
    P.READY: "ready",
    P.ERROR: "error",
    P.DELETING: "deleting",
}


class DatasetService:
    """Use cases of datasets. Whether who asks may is for the caller to say; `changed` is told what may have made or taken room."""

    def __init__(
        self,
        db: Database,
        storage: StorageLedger,
        worker: DatasetWorker,
        clock: Callable[[], float],
        *,
        sources: DataSources,
        first_uid: int | None,
        silent_s: float,
        changed: Callable[[], None],
    ) -> None:
        self._db, self._storage, self._worker, self._clock = db, storage, worker, clock
        self.start = worker.start
        self.ready_for = worker.stages.ready
        self._sources = sources
        self._first_uid = first_uid
        self._silent_s = silent_s
        self._changed = changed
        self._uids = UidMaker()

    async def create(self, user: str, asked: api.DatasetCreate, *, actor: str | None = None) -> api.Dataset:
        """Make a dataset and keep the room for it; durable when this returns. Raises `Refused`."""
        if asked.user not in (None, user):
            raise Refused(
                Reason.INVALID,
                msg(
                    "user is {given}, but the path has {user}; leave it out",
                    given=asked.user[:100],
                    user=user,
                ),
            )
        source = None if asked.source is None else self._sources.parse(asked.source)
        now = self._clock()
        uid = self._uids.make(now)

        def work(tx: Tx) -> Dataset:
            tenant = default_tenant(tx, user) if asked.tenant is None else asked.tenant
            if tenant not in tenants_of(tx, user):
                raise no_such_tenant(tenant, tenants_of(tx, user))
            tx.users.ensure(user, now)
            item = StoredItem(uid, StoredKind.DATASET, tenant, user, asked.name, now, reserved=asked.size)
            self._storage.reserve(tx, item)
            made = Dataset(item, P.CREATING, 0, source=source)
            detail = {"size": str(asked.size)}
            if source is not None:
                self._sources.check(tx, made)
                detail |= {"source": source.url, "endpoint": source.endpoint, "secret": source.secret}
            tx.datasets.put(made)
            tx.audit.add(now, actor or user, "dataset.create", asked.name, tenant=tenant, detail=detail)
            return made

        made = await notifying(self._db.write(work), self._changed)
        self._worker.heard(uid, now)
        if source is None:
            await self._worker.place(uid)
        else:
            self._worker.look_at(uid)
        return to_wire(made)

    async def sync(self, context: TenantContext, user: str, name: str, *, actor: str) -> api.Dataset:
        """Start a fetch of the changes at the dataset's source, unless one is in progress."""
        now = self._clock()

        def work(tx: Tx) -> Dataset:
            found = _existing(tx, context, user, name)
            _check_member(tx, found)
            self._sources.check(tx, found)
            if found.is_copied:
                return found
            check_dataset_move(found, P.CREATING)
            check_unused(tx, found, msg("fetched again"))
            if found.item.granted:
                raise Refused(
                    Reason.CONFLICT,
                    msg("files of dataset {name} are being uploaded; sync it after that", name=name),
                )
            again = replace(found, phase=P.CREATING, progress=0, message=NOTHING)
            tx.datasets.put(again)
            tx.audit.add(now, actor, "dataset.sync", name, tenant=found.item.tenant)
            return again

        found = await self._db.write(work)
        self._worker.look_at(found.item.uid)
        return to_wire(found)

    async def get(self, context: TenantContext, user: str, name: str) -> api.Dataset:
        """Return a dataset. Raises NotFound."""
        return to_wire(await self._db.read(lambda tx: _existing(tx, context, user, name)))

    async def tenant_of(self, user: str, name: str) -> tuple[str, str] | None:
        """Return the tenant of a dataset and its name; None where there is none: as quickly in either case."""
        found = await self._db.read(lambda tx: tx.datasets.find(SYSTEM, user, name))
        return None if found is None else (found.item.tenant, name)

    async def list(
        self,
        context: TenantContext,
        user: str,
        *,
        tenant: str | None = None,
        state: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> tuple[Sequence[api.Dataset], str | None]:
        """Return a user's datasets by name, and the cursor of the next page."""
        phase = None if state is None else P(state)
        found = await self._db.read(
            lambda tx: tx.datasets.page(
                context, user, tenant=tenant, phase=phase, after=cursor or "", limit=limit + 1
            )
        )
        following = found[limit - 1].item.name if len(found) > limit else None
        return [to_wire(each) for each in found[:limit]], following

    async def heartbeat(
        self, context: TenantContext, user: str, name: str, beat: api.DatasetHeartbeat
    ) -> None:
        """Store the progress of an upload; when it is reported ready, its size is measured."""
        new = P(beat.state)

        def work(tx: Tx) -> str:
            found = _existing(tx, context, user, name)
            if found.is_copied and new is not P.ERROR:
                raise _copied(found)
            if found.source is not None and new is P.CREATING:
                raise Refused(
                    Reason.WRONG_STATE,
                    msg(
                        "dataset {name} is a copy of {url}; sync it, or write to it as it is",
                        name=name,
                        url=found.source.url,
                    ),
                )
            if new is not found.phase:
                check_dataset_move(found, new)
                if found.phase is P.READY:
                    check_unused(tx, found, msg("uploaded again"))
            progress = 100 if new is P.READY else beat.progress
            tx.datasets.put(replace(found, phase=new, progress=progress, message=NOTHING))
            return found.item.uid

        uid, now = await self._db.write(work), self._clock()
        self._worker.heard(uid, now)
        if new is P.ERROR:
            self._worker.stop_copying(uid)
        self._worker.measure(uid, now)

    async def delete(self, context: TenantContext, user: str, name: str, *, actor: str) -> api.Dataset:
        """Delete a dataset with its files, which are removed after this has returned; it holds its room until then."""
        now = self._clock()

        def work(tx: Tx) -> Dataset:
            found = _existing(tx, context, user, name)
            if found.phase is P.CREATING:
                raise Refused(
                    Reason.WRONG_STATE,
                    msg(
                        "dataset {name} is being created and cannot be deleted; first report by its heartbeat that it is ready or in error",
                        name=name,
                    ),
                )
            check_dataset_move(found, P.DELETING)
            check_unused(tx, found, msg("deleted"))
            deleting = replace(found, phase=P.DELETING)
            tx.datasets.put(deleting)
            tx.audit.add(now, actor, "dataset.delete", name, tenant=found.item.tenant)
            return deleting

        deleting = await self._db.write(work)
        self._worker.look_at(deleting.item.uid)
        return to_wire(deleting)

    async def remove(self, user: str) -> bool:
        """Delete all of a user who leaves, also what is being uploaded; return whether none is left."""

        def work(tx: Tx) -> Sequence[str]:
            found = tx.datasets.page(SYSTEM, user, limit=TOGETHER)
            for each in found:
                if each.phase is not P.DELETING:
                    # where it is being created, by way of an error
                    tx.datasets.put(replace(each, phase=P.DELETING))
            if not found:
                tx.secrets.remove_all("", user)
            return [each.item.uid for each in found]

        uids = await self._db.write(work)
        for uid in uids:
            self._worker.stop_copying(uid)
        return not uids

    async def access(self, context: TenantContext, user: str, name: str, *, write: bool) -> api.DatasetAccess:
        """Return the location of a dataset's files for users who may read or write them.

        Raises NotFound, `WrongState` while it is deleted.
        """

        def work(tx: Tx) -> tuple[Dataset, int]:
            found, owner = _existing(tx, context, user, name), tx.users.get(user)
            if write:
                _check_stays(tx, found)
            return found, 0 if owner is None else owner.number

        found, number = await self._db.read(work)
        if found.phase is P.DELETING:
            what = msg("written to") if write else msg("read")
            raise Refused(
                Reason.WRONG_STATE,
                msg("dataset {name} is being deleted and cannot be {what} any more", name=name, what=what),
            )
        if write and found.is_copied:
            raise _copied(found)
        if found.is_read_through and (write or found.phase is not P.READY):
            raise _through(found, write=write)
        owner = None if self._first_uid is None else self._first_uid + number
        item = found.item
        if write:
            self._worker.heard(item.uid, self._clock())
        return api.DatasetAccess(
            uid=item.uid,
            user=user,
            name=name,
            tenant=item.tenant,
            state=_STATES[found.phase],
            owner=owner,
            through=found.is_read_through,
        )

    async def open_source(self, asked: api.SourceOpen) -> api.SourceAddress:
        """Return the address of one request to the source of a dataset that is read through. Raises NotFound, `Refused`."""

        def work(tx: Tx) -> OpenSource:
            found = tx.datasets.get(SYSTEM, asked.uid)
            if found is None or not found.is_read_through:
                raise not_found("dataset", asked.uid)
            if found.phase is not P.READY:
                raise _through(found, write=False)
            return self._sources.opened(tx, found)

        if any(part in {".", ".."} for part in asked.path.split("/")):
            raise Refused(Reason.INVALID, msg("the path has a part that is not a name: . or .."))
        source = await self._db.read(work)
        ask = SourceAsk(source.prefix + asked.path, asked.listed, asked.flat, asked.after, asked.limit)
        url = await self._worker.address(source, ask)
        return api.SourceAddress(
            url=url,
            host=urlsplit(url).netloc,
            bucket=source.bucket,
            prefix=source.prefix,
            secret=bool(source.key_id),
        )

    # -------------------------------------------- what is said by who holds the files

    async def grant_bytes(self, uid: str, size: int, once: str | None = None) -> None:
        """Grant `size` more bytes to write; a repeated request with the same key counts once.

        Raises NotFound, `WrongState`, or the refusal that the quota has no room.
        """
        now = self._clock()

        def work(tx: Tx) -> None:
            if _known(tx, once):
                return
            found = tx.datasets.get(SYSTEM, uid)
            if found is None:
                raise not_found("dataset", uid)
            if found.phase is P.DELETING:
                raise Refused(
                    Reason.WRONG_STATE,
                    msg("dataset {name} is being deleted and cannot be written to", name=found.item.name),
                )
            if found.is_copied:
                raise _copied(found)
            if found.is_read_through:
                raise _through(found, write=True)
            _check_member(tx, found)
            self._storage.grant_bytes(tx, uid, size)
            _remember(tx, once, now)

        await notifying(self._db.write(work), self._changed)
        self._worker.heard(uid, now)

    async def settle_bytes(
        self,
        uid: str,
        granted: int,
        grown: int,
        once: str | None = None,
        took: str | None = None,
        *,
        gone: int = 0,
    ) -> None:
        """Store the written amount; a repeated report with the same key counts once.

        Where bytes are `gone`, the files are measured: their lengths are only the owner's claim. `took` is
        the key of the request for the bytes, if its success is unknown: if it did not arrive, it is void
        from now on.
        """
        now = self._clock()

        def work(tx: Tx) -> StoredItem | None:
            if _known(tx, once):
                return tx.stored.get(uid)
            _remember(tx, once, now)
            if took is not None and not _known(tx, took):
                _remember(tx, took, now)
                return tx.stored.get(uid)
            return self._storage.settle_bytes(tx, uid, granted, max(grown, 0))

        left = await notifying(self._db.write(work), self._changed)
        self._worker.heard(uid, now)
        if grown > 0:
            self._worker.came(uid, now)
        if left is None:
            return
        if gone or grown < 0:
            await self._worker.shrunk(uid, now)
        elif not left.granted:
            self._worker.rested(left)

    async def begun(self) -> None:
        """Measure the datasets that were written to: the file service restarted and lost its open operations."""
        await self._worker.recount()

    def put_off(self, by: float) -> None:
        """Give uploads the time that they had before the clock was set by `by` seconds."""
        self._worker.put_off(by)

    async def end_silent_uploads(self) -> None:
        """End uploads that nobody was heard of for too long, and measure some of the rest."""
        await self._worker.end_silent_uploads(self._clock(), self._silent_s)


def _known(tx: Tx, once: str | None) -> bool:
    return once is not None and tx.idempotency.get(_STEPS, once) is not None


def _remember(tx: Tx, once: str | None, now: float) -> None:
    if once is not None:
        tx.idempotency.put(_STEPS, once, Remembered("stored", ""), now)


def _through(found: Dataset, *, write: bool) -> Refused:
    url = "" if found.source is None else found.source.url
    if write:
        return Refused(
            Reason.WRONG_STATE,
            msg(
                "dataset {name} is read through from {url}: write to it there",
                name=found.item.name,
                url=url,
            ),
        )
    return Refused(
        Reason.WRONG_STATE,
        msg(
            "dataset {name} cannot be read through from {url} yet: it is {state}; sync checks it again",
            name=found.item.name,
            url=url,
            state=state_of(found),
        ),
    )


def _copied(found: Dataset) -> Refused:
    url = "" if found.source is None else found.source.url
    return Refused(
        Reason.WRONG_STATE,
        msg(
            "dataset {name} is being copied from {url}; wait until it is ready, or stop that by deleting it",
            name=found.item.name,
            url=url,
        ),
    )


def _check_member(tx: Tx, found: Dataset) -> None:
    """Refuse to take more of the storage of a tenant that the dataset's user has left."""
    user, tenant = found.item.user, found.item.tenant
    if tenant != DEFAULT_TENANT and tenant not in tenants_of(tx, user):
        raise Refused(
            Reason.FORBIDDEN,
            msg(
                "dataset {name} belongs to team {tenant}, of which {user} is no longer a member; it can be read and deleted",
                name=found.item.name,
                tenant=tenant,
                user=user,
            ),
        )


def _check_stays(tx: Tx, found: Dataset) -> None:
    if tx.relocations.under_way(found.item.tenant) is not None:
        raise Refused(
            Reason.TENANT_MOVES,
            msg(
                "dataset {name} cannot be written to while the files of team {tenant} are being moved; try again when that is done",
                name=found.item.name,
                tenant=found.item.tenant,
            ),
            retry_after=30,
        )


def _existing(tx: Tx, context: TenantContext, user: str, name: str) -> Dataset:
    found = tx.datasets.find(context, user, name)
    if found is None:
        raise not_found("dataset", name)
    return found


def to_wire(dataset: Dataset) -> api.Dataset:
    """Return a dataset as it crosses the wire."""
    item = dataset.item
    return api.Dataset(
        name=item.name,
        user=item.user,
        tenant=item.tenant,
        size=item.charged,
        state=_STATES[dataset.phase],
        progress=dataset.progress,
        used=item.used,
        path=f"/data/{item.user}/{item.name}/",
        message=Text(dataset.message),
        made_at=when(item.made_at),
        source=_source(dataset),
    )


def _source(dataset: Dataset) -> api.DatasetSource | None:
    source = dataset.source
    if source is None:
        return None
    return api.DatasetSource(
        url=source.url,
        endpoint=source.endpoint or None,
        region=source.region or None,
        secret=source.secret or None,
        mode="copy" if source.mode == SourceMode.COPY else "read-through",
    )
