"""Models: register, look at, say how far one is used, fetch, delete."""

from __future__ import annotations

from collections.abc import Sequence

from mlp_api.stored.files import FileEntry
from mlp_api.stored.models import FoundModel, Model, ModelCreate, ModelStageChange, ModelState, ModelUse
from mlp_api.types import Name
from mlp_hub.api.auth.scopes import JOBS_READ, MODELS_READ, MODELS_WRITE
from mlp_hub.api.edge.call import Call, Reply
from mlp_hub.api.edge.contents import ContentQuery, FilesQuery, content, listing
from mlp_hub.api.edge.paging import ListPage, listed
from mlp_hub.api.routes import Relation, Route


class ModelQuery(ListPage, forbid_unknown_fields=True):
    """Which models; of one `name` all its versions."""

    state: ModelState | None = None
    stage: ModelUse | None = None
    tenant: Name | None = None
    name: Name | None = None


async def register(call: Call) -> Model:
    """Register files of a job, or of the home, as the next version of a model; it is durable when the answer comes.

    The files are copied after that: `state` goes from `creating` to `ready`, or to `error` with a `message` why. Their size is
    charged to the tenant's storage from now on.
    """
    return await call.platform.models.register(call.context, call.user, call.body, actor=call.principal.name)


async def list_(call: Call) -> Reply:
    """List versions of a user's models, the newest first."""
    query: ModelQuery = call.query
    models, cursor = await call.platform.models.list(
        call.context,
        call.user,
        tenant=query.tenant,
        state=query.state,
        stage=query.stage,
        name=query.name,
        **query.asked,
    )
    return listed(call, models, cursor)


async def get(call: Call) -> Model:
    """Show a version of a model with where it comes from."""
    return await call.platform.models.get(call.context, call.user, call.params["model"])


async def found_in_job(call: Call) -> Sequence[FoundModel]:
    """List the models among the files of a job that can be registered.

    They are found by their names and headers, and nothing is loaded.
    """
    return await call.platform.models.found_in(call.context, call.user, call.params["job"])


async def stage(call: Call) -> Model:
    """Say how far a version is used. Of one version of a model it is `production`: the one before is archived."""
    return await call.platform.models.move(
        call.context, call.user, call.params["model"], call.body.stage, actor=call.principal.name
    )


async def delete(call: Call) -> Model:
    """Delete a version of a model with its files; one that is still being copied too."""
    return await call.platform.models.delete(
        call.context, call.user, call.params["model"], actor=call.principal.name
    )


async def files(call: Call) -> Reply:
    """List a directory of a version that is ready."""
    query: FilesQuery = call.query
    page = await call.platform.models.files(
        call.context, call.user, call.params["model"], query.path, after=query.after, limit=query.limit
    )
    return listing(call, page)


async def file(call: Call) -> Reply:
    """Give a file of a version that is ready, or a `Range` of it."""
    query: ContentQuery = call.query
    return content(
        call,
        await call.platform.models.open_file(call.context, call.user, call.params["model"], query.path),
        query.path,
    )


async def mlmodel(call: Call) -> Reply:
    """Give the `MLmodel` that MLflow reads: the version's own, or one that is written for its format."""
    text = await call.platform.models.mlmodel(call.context, call.user, call.params["model"])
    return Reply(text.encode(), media="text/plain; charset=utf-8")


_MODELS = "/users/{user}/models"
_MODEL = "/users/{user}/models/{model}"

ROUTES = (
    Route(
        "POST",
        _MODELS,
        register,
        "Register a model",
        Relation.SELF,
        MODELS_WRITE,
        body=ModelCreate,
        reply=Model,
        status=201,
        idempotent=True,
    ),
    Route(
        "GET",
        _MODELS,
        list_,
        "List a user's models",
        Relation.SELF,
        MODELS_READ,
        query=ModelQuery,
        reply=list[Model],
    ),
    Route("GET", _MODEL, get, "Show a model", Relation.OWNED, MODELS_READ, reply=Model),
    Route(
        "GET",
        "/users/{user}/jobs/{job}/models",
        found_in_job,
        "List the models among a job's files",
        Relation.OWNED,
        JOBS_READ,
        reply=list[FoundModel],
        ends_with_client=True,
    ),
    Route(
        "PUT",
        f"{_MODEL}:stage",
        stage,
        "Say how far a model is used",
        Relation.SELF,
        MODELS_WRITE,
        body=ModelStageChange,
        reply=Model,
        bucket="change",
    ),
    Route("DELETE", _MODEL, delete, "Delete a model", Relation.SELF, MODELS_WRITE, reply=Model),
    Route(
        "GET",
        f"{_MODEL}/files",
        files,
        "List a model's files",
        Relation.OWNED,
        MODELS_READ,
        query=FilesQuery,
        reply=list[FileEntry],
    ),
    Route(
        "GET",
        f"{_MODEL}/files/content",
        file,
        "A file of a model",
        Relation.OWNED,
        MODELS_READ,
        query=ContentQuery,
        reply=str,
        media="application/octet-stream",
        partial=True,
    ),
    Route(
        "GET",
        f"{_MODEL}/mlmodel",
        mlmodel,
        "A model as MLflow describes it",
        Relation.OWNED,
        MODELS_READ,
        reply=str,
        media="text/plain",
    ),
)
