"""Datasets, and what the part of the platform that holds their files asks and tells."""

from __future__ import annotations

from mlp_api.stored.datasets import (
    Dataset,
    DatasetAccess,
    DatasetCreate,
    DatasetHeartbeat,
    DatasetState,
    SourceAddress,
    SourceOpen,
    StorageGive,
    StorageTake,
)
from mlp_api.types import Name
from mlp_hub.api.auth.principal import CallerKind
from mlp_hub.api.auth.scopes import DATA, DATA_READ, DATA_WRITE, STORED_WRITE
from mlp_hub.api.edge.call import Call, Reply
from mlp_hub.api.edge.paging import ListPage, listed
from mlp_hub.api.routes import Relation, Route
from mlp_hub.domain.errors import Reason, Refused
from mlp_language.message import msg


class DatasetQuery(ListPage, forbid_unknown_fields=True):
    """Which datasets."""

    state: DatasetState | None = None
    tenant: Name | None = None


async def create(call: Call) -> Dataset:
    """Make a dataset; its room is kept when the answer comes, and its files may be written."""
    return await call.platform.datasets.create(call.user, call.body, actor=call.principal.name)


async def list_(call: Call) -> Reply:
    """List a user's datasets by name."""
    query: DatasetQuery = call.query
    found, cursor = await call.platform.datasets.list(
        call.context, call.user, tenant=query.tenant, state=query.state, **query.asked
    )
    return listed(call, found, cursor)


async def get(call: Call) -> Dataset:
    """Show a dataset."""
    return await call.platform.datasets.get(call.context, call.user, call.params["dataset"])


async def heartbeat(call: Call) -> str:
    """Record the progress that an uploader reports.

    Once it is `ready`, the dataset is charged with the size of its files.
    """
    await call.platform.datasets.heartbeat(call.context, call.user, call.params["dataset"], call.body)
    return ""


async def sync(call: Call) -> Dataset:
    """Fetch the changes of a dataset's source; files that the source no longer has are removed."""
    return await call.platform.datasets.sync(
        call.context, call.user, call.params["dataset"], actor=call.principal.name
    )


async def delete(call: Call) -> Dataset:
    """Delete a dataset that is ready or in error, with its files."""
    return await call.platform.datasets.delete(
        call.context, call.user, call.params["dataset"], actor=call.principal.name
    )


async def readable(call: Call) -> DatasetAccess:
    """Say whether this token may read the dataset's files: asked with it by the part that holds them."""
    return await call.platform.datasets.access(call.context, call.user, call.params["dataset"], write=False)


async def writable(call: Call) -> DatasetAccess:
    """Say whether this token may write the dataset's files: asked with it by the part that holds them."""
    return await call.platform.datasets.access(call.context, call.user, call.params["dataset"], write=True)


async def take(call: Call) -> str:
    """Take `size` bytes of quota for a write."""
    await call.platform.datasets.grant_bytes(call.body.uid, call.body.size, call.body.once)
    return ""


async def give(call: Call) -> str:
    """Record the result of a write."""
    report: StorageGive = call.body
    await call.platform.datasets.settle_bytes(
        report.uid, report.granted, report.grown, report.once, report.took, gone=report.gone
    )
    return ""


async def begun(call: Call) -> str:
    """Measure what was being written to when the part that holds files ended."""
    await call.platform.datasets.begun()
    return ""


async def open_source(call: Call) -> SourceAddress:
    """Return the address of an object of a dataset's source, to the part of the platform that holds files.

    That part asks for a user who may read the object. Nobody else may ask, not even an administrator.
    Such an address works for anyone who has it. It also names the part of a secret that the store gets.
    """
    if call.principal.kind is not CallerKind.SERVICE or call.principal.name != DATA:
        raise Refused(Reason.FORBIDDEN, msg("only the part of the platform that holds files may ask this"))
    return await call.platform.datasets.open_source(call.body)


_DATASETS = "/users/{user}/datasets"
_DATASET = f"{_DATASETS}/{{dataset}}"
S, P = Relation.SELF, Relation.PLATFORM

ROUTES = (
    Route(
        "POST",
        _DATASETS,
        create,
        "Make a dataset",
        S,
        DATA_WRITE,
        body=DatasetCreate,
        reply=Dataset,
        status=201,
        idempotent=True,
    ),
    Route(
        "GET",
        _DATASETS,
        list_,
        "List a user's datasets",
        S,
        DATA_READ,
        query=DatasetQuery,
        reply=list[Dataset],
    ),
    Route("GET", _DATASET, get, "Show a dataset", Relation.OWNED, DATA_READ, reply=Dataset),
    Route(
        "PUT",
        f"{_DATASET}:heartbeat",
        heartbeat,
        "How far the upload of a dataset is",
        S,
        DATA_WRITE,
        body=DatasetHeartbeat,
    ),
    Route("PUT", f"{_DATASET}:sync", sync, "Fetch a dataset's source anew", S, DATA_WRITE, reply=Dataset),
    Route("DELETE", _DATASET, delete, "Delete a dataset", S, DATA_WRITE, reply=Dataset),
    Route(
        "GET",
        f"{_DATASET}:read",
        readable,
        "Whether files may be read",
        Relation.OWNED,
        DATA_READ,
        reply=DatasetAccess,
    ),
    Route(
        "PUT",
        f"{_DATASET}:write",
        writable,
        "Whether files may be written",
        S,
        DATA_WRITE,
        reply=DatasetAccess,
        bucket="metrics",
    ),
    Route("PUT", "/stored:take", take, "Storage is going to be written", P, STORED_WRITE, body=StorageTake),
    Route("PUT", "/stored:give", give, "Storage was written", P, STORED_WRITE, body=StorageGive),
    Route(
        "PUT",
        "/stored:open",
        open_source,
        "Something of a source is read",
        P,
        STORED_WRITE,
        body=SourceOpen,
        reply=SourceAddress,
    ),
    Route("PUT", "/stored:begun", begun, "What holds files has begun", P, STORED_WRITE),
)
