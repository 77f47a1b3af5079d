"""Announcements of the platform's administrators to everybody, and of a tenant's to its members."""

from __future__ import annotations

from collections.abc import Sequence

from mlp_api.platform.announcements import Announcement, AnnouncementCreate
from mlp_hub.api.auth.principal import CallerKind
from mlp_hub.api.auth.scopes import (
    CLUSTER_READ,
    CLUSTER_WRITE,
    LEDGER_WRITE,
    NOTICES_READ,
    SPAWNER,
    TENANTS_READ,
    TENANTS_WRITE,
)
from mlp_hub.api.edge.call import Call
from mlp_hub.api.routes import Relation, Route
from mlp_hub.domain.errors import Reason, Refused
from mlp_language.message import msg


async def shown(call: Call) -> Sequence[Announcement]:
    """List the announcements for the caller now: to everybody, and to members of the caller's tenants."""
    person = call.principal.name if call.principal.kind is CallerKind.USER else ""
    return await _for_person(call, person)


async def on_the_hubs_pages(call: Call) -> Sequence[Announcement]:
    """List the announcements for a person now, for the hub's own pages."""
    if call.principal.kind is not CallerKind.SERVICE or call.principal.name != SPAWNER:
        raise Refused(Reason.FORBIDDEN, msg("only the hub may ask this"))
    return await _for_person(call, call.user)


async def _for_person(call: Call, user: str) -> Sequence[Announcement]:
    service, tenants = call.platform.announcements, set[str]()
    if user and service.tells_tenants:
        tenants = {place.tenant for place in await call.platform.tenants.of_user(user)}
    return service.shown(tenants)


async def every(call: Call) -> Sequence[Announcement]:
    """List all that are not over, of every tenant, also those still to come."""
    return call.platform.announcements.list_of_tenant(None)


async def announce(call: Call) -> Announcement:
    """Tell everybody something."""
    return await call.platform.announcements.make(call.body, actor=call.principal.name)


async def remove(call: Call) -> Announcement:
    """Tell it no more; any tenant's too."""
    return await call.platform.announcements.remove(call.params["announcement"], actor=call.principal.name)


async def of_tenant(call: Call) -> Sequence[Announcement]:
    """List those of a tenant that are not over, also those still to come."""
    return call.platform.announcements.list_of_tenant(call.params["tenant"])


async def tell_tenant(call: Call) -> Announcement:
    """Tell the members of a tenant something."""
    return await call.platform.announcements.make(
        call.body, tenant=call.params["tenant"], actor=call.principal.name
    )


async def remove_of_tenant(call: Call) -> Announcement:
    """Tell the members of a tenant that no more."""
    return await call.platform.announcements.remove(
        call.params["announcement"], tenant=call.params["tenant"], actor=call.principal.name
    )


_ALL, _OF = "/announcements", "/tenants/{tenant}/announcements"
P, A = Relation.PLATFORM, Relation.TENANT_ADMIN

ROUTES = (
    Route(
        "GET", _ALL, shown, "What is announced now", Relation.ANYBODY, NOTICES_READ, reply=list[Announcement]
    ),
    Route(
        "GET",
        "/users/{user}:announced",
        on_the_hubs_pages,
        "What is announced to somebody, for the hub's own pages",
        P,
        LEDGER_WRITE,
        reply=list[Announcement],
    ),
    Route("GET", f"{_ALL}:all", every, "All announcements", P, CLUSTER_READ, reply=list[Announcement]),
    Route(
        "POST",
        _ALL,
        announce,
        "Tell everybody something",
        P,
        CLUSTER_WRITE,
        body=AnnouncementCreate,
        reply=Announcement,
        status=201,
        idempotent=True,
        bucket="change",
    ),
    Route(
        "DELETE",
        f"{_ALL}/{{announcement}}",
        remove,
        "Tell it no more",
        P,
        CLUSTER_WRITE,
        reply=Announcement,
        bucket="change",
    ),
    Route("GET", _OF, of_tenant, "A tenant's announcements", A, TENANTS_READ, reply=list[Announcement]),
    Route(
        "POST",
        _OF,
        tell_tenant,
        "Tell a tenant's members something",
        A,
        TENANTS_WRITE,
        body=AnnouncementCreate,
        reply=Announcement,
        status=201,
        idempotent=True,
        bucket="change",
    ),
    Route(
        "DELETE",
        f"{_OF}/{{announcement}}",
        remove_of_tenant,
        "Tell a tenant's members that no more",
        A,
        TENANTS_WRITE,
        reply=Announcement,
        bucket="change",
    ),
)
