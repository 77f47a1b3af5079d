"""Apps: deploy, look at, read logs, scale, delete."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from mlp_api.apps.apps import AppCreate, Application, AppScale, AppState, SharedApp
from mlp_api.types import Name
from mlp_hub.api.auth.scopes import APPS_READ, APPS_WRITE
from mlp_hub.api.edge.call import Call, Reply
from mlp_hub.api.edge.paging import ListPage, listed
from mlp_hub.api.resources.jobs.jobs import log_reply, page_of
from mlp_hub.api.routes import Relation, Route
from mlp_hub.domain.errors import Reason, Refused
from mlp_language.message import msg


class AppQuery(ListPage, forbid_unknown_fields=True):
    """Which apps."""

    state: AppState | None = None
    tenant: Name | None = None


class AppLogQuery(Struct, forbid_unknown_fields=True):
    """Which part of which replica's log; `since` is the offset that the last answer gave, `tail` asks for the last lines instead."""

    replica: Annotated[int, Meta(ge=0, le=100_000)] = 0
    since: Annotated[int, Meta(ge=0, le=2**62)] = 0
    limit: Annotated[int, Meta(ge=1, le=10_000)] = 1000
    tail: Annotated[int, Meta(ge=1, le=10_000)] | None = None


async def deploy(call: Call) -> Application:
    """Deploy a model, or a command, as an app; it is stored when the answer comes, and started after that.

    Its replicas take of the tenant's quota as jobs do. While the quota has no room, `phase` is
    `waiting`, and `message` has the reason. An existing app of this name is refused with `Conflict`
    unless `replace` is set.
    """
    if call.service.config.hub_attached:
        raise Refused(
            Reason.WRONG_STATE,
            msg(
                "apps need the platform's own proxy, and your JupyterHub has another; run the program as a job"
            ),
        )
    return await call.platform.apps.deploy(call.context, call.user, call.body, actor=call.principal.name)


async def list_(call: Call) -> Reply:
    """List a user's apps, the newest first."""
    query: AppQuery = call.query
    apps, cursor = await call.platform.apps.list(
        call.context,
        call.user,
        tenant=query.tenant,
        state=query.state,
        **query.asked,
    )
    return listed(call, apps, cursor)


async def get(call: Call) -> Application:
    """Show an app with its replicas."""
    return await call.platform.apps.get(call.context, call.user, call.params["app"])


class SharedAppQuery(ListPage, forbid_unknown_fields=True):
    """Which page of them."""


async def shared(call: Call) -> Reply:
    """List the apps of others that a user may open, as their access says, the newest first; none by a token for one's own objects alone."""
    query: SharedAppQuery = call.query
    if APPS_READ not in call.principal.scopes:
        return listed(call, [], None)
    apps, cursor = await call.platform.apps.visitors.list(call.user, **query.asked)
    return listed(call, apps, cursor)


async def get_shared(call: Call) -> SharedApp:
    """Show an app to a user with access to it: its address and its state, but not its configuration."""
    return await call.platform.apps.visitors.get(call.context, call.user, call.params["app"])


async def scale(call: Call) -> Application:
    """Set the number of replicas; those that already run continue."""
    return await call.platform.apps.scale(
        call.context, call.user, call.params["app"], call.body, actor=call.principal.name
    )


async def delete(call: Call) -> Application:
    """Delete an app; its replicas are ended after that, and its name and port are given back once they have gone."""
    return await call.platform.apps.delete(
        call.context, call.user, call.params["app"], actor=call.principal.name
    )


async def logs(call: Call) -> Reply:
    """Give the log of a replica that is there now, as text, or as JSON with times where that is accepted."""
    query: AppLogQuery = call.query
    chunk = await call.platform.apps.log_chunk(
        call.context,
        call.user,
        call.params["app"],
        query.replica,
        since=query.since,
        limit=query.limit,
        tail=query.tail,
    )
    return log_reply(call, page_of(chunk))


_APPS = "/users/{user}/apps"
_APP = "/users/{user}/apps/{app}"

ROUTES = (
    Route(
        "POST",
        _APPS,
        deploy,
        "Deploy an app",
        Relation.SELF,
        APPS_WRITE,
        body=AppCreate,
        reply=Application,
        status=201,
        idempotent=True,
    ),
    Route(
        "GET",
        _APPS,
        list_,
        "List a user's apps",
        Relation.SELF,
        APPS_READ,
        query=AppQuery,
        reply=list[Application],
    ),
    Route(
        "GET",
        f"{_APPS}:shared",
        shared,
        "List the apps of others that a user may open",
        Relation.SELF,
        APPS_READ,
        query=SharedAppQuery,
        reply=list[SharedApp],
    ),
    Route("GET", _APP, get, "Show an app", Relation.OWNED, APPS_READ, reply=Application),
    Route(
        "GET",
        f"{_APP}:shared",
        get_shared,
        "Show an app to who may open it",
        Relation.VISITOR,
        APPS_READ,
        reply=SharedApp,
    ),
    Route(
        "PUT",
        f"{_APP}:scale",
        scale,
        "Say how many replicas an app has",
        Relation.SELF,
        APPS_WRITE,
        body=AppScale,
        reply=Application,
        bucket="change",
    ),
    Route("DELETE", _APP, delete, "Delete an app", Relation.SELF, APPS_WRITE, reply=Application),
    Route(
        "GET",
        f"{_APP}/logs",
        logs,
        "The log of an app's replica",
        Relation.OWNED,
        APPS_READ,
        query=AppLogQuery,
        reply=str,
        media="text/plain",
    ),
)
