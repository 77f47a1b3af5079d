"""Datasets, and what the part of the platform that holds their files asks and tells."""

from __future__ import annotations

from mlp_api.datasets import (
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
    """Take the word of who uploads on how far that is; once it is `ready` the dataset is charged with what its files take."""
    await call.platform.datasets.heartbeat(call.context, call.user, call.params["dataset"], call.body)
    return ""


async def sync(call: Call) -> Dataset:
    """Have what changed at a dataset's source fetched; what is not there any more is removed."""
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
    """Let so many bytes more be written."""
    await call.platform.datasets.take(call.body.uid, call.body.size, call.body.once)
    return ""


async def give(call: Call) -> str:
    """Take in what was written."""
    told: StorageGive = call.body
    await call.platform.datasets.give(
        told.uid, told.granted, told.grown, told.once, told.took, gone=told.gone
    )
    return ""


async def begun(call: Call) -> str:
    """Measure what was being written to when the part that holds files ended."""
    await call.platform.datasets.begun()
    return ""


async def open_source(call: Call) -> SourceAddress:
    """Say where something of a dataset's source is to be had: asked by the part that holds files, for who may read it.

    By nobody else, administrators neither: such an address is good for whoever has it, and names what of a secret the store is told.
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
