"""Choices of users about notices of their jobs, and new notices; the addresses are never returned."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from mlp_api.platform.notices import ChannelTest, ChannelTested, Notice, Notifications, NotificationsSet
from mlp_hub.api.auth.scopes import NOTICES_READ, NOTICES_WRITE
from mlp_hub.api.edge.call import Call
from mlp_hub.api.routes import Relation, Route


class NoticeQuery(Struct, forbid_unknown_fields=True):
    """Selection of the browser's notices: those `after` a number, or only the newest one without a number."""

    after: Annotated[int, Meta(ge=0, le=2**53)] | None = None
    limit: Annotated[int, Meta(ge=1, le=100)] = 50


async def get(call: Call) -> Notifications:
    """Show a user's choices, with the parts of each address that are not secret."""
    return await call.platform.notices.get(call.user)


async def put(call: Call) -> Notifications:
    """Choose all of it. A channel without an address keeps the one it has; one that is left out is removed."""
    return await call.platform.notices.store_choices(call.user, call.body, call.principal.name)


async def test(call: Call) -> ChannelTested:
    """Send something by a channel now, and say how that went."""
    asked: ChannelTest = call.body
    return await call.platform.notices.try_out(call.user, asked.channel)


async def new(call: Call) -> list[Notice]:
    """List what is new, the oldest first. Notices are kept for two weeks."""
    query: NoticeQuery = call.query
    return await call.platform.notices.new(call.user, query.after, query.limit)


_AT = "/users/{user}/notifications"
S = Relation.SELF

ROUTES = (
    Route("GET", _AT, get, "What somebody wants to be told, and where", S, NOTICES_READ, reply=Notifications),
    Route(
        "PUT",
        _AT,
        put,
        "Choose what one is told, and where",
        S,
        NOTICES_WRITE,
        body=NotificationsSet,
        reply=Notifications,
        bucket="change",
    ),
    Route(
        "POST",
        f"{_AT}:test",
        test,
        "Try a channel",
        S,
        NOTICES_WRITE,
        body=ChannelTest,
        reply=ChannelTested,
        bucket="change",
    ),
    Route(
        "GET",
        "/users/{user}/notices",
        new,
        "What is new of somebody's jobs",
        S,
        NOTICES_READ,
        query=NoticeQuery,
        reply=list[Notice],
    ),
)
