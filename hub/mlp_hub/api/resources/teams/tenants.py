"""Tenants, their members and their use; a user's quota."""

from __future__ import annotations

from collections.abc import Sequence

from mlp_api.teams.previews import TenantPreview
from mlp_api.types import Member, MemberUpdate, Tenant, TenantCreate, TenantUpdate, Usage
from mlp_hub.api.auth.scopes import TENANTS_READ, TENANTS_WRITE
from mlp_hub.api.edge.call import Call, Reply
from mlp_hub.api.edge.decode import clip
from mlp_hub.api.edge.paging import ListPage, listed_by
from mlp_hub.api.hubclient import Person
from mlp_hub.api.routes import Relation, Route
from mlp_hub.domain.errors import Reason, Refused, not_found
from mlp_hub.domain.tenants.service_account import is_service
from mlp_hub.domain.tenants.tenant import DEFAULT_TENANT
from mlp_hub.domain.tenants.tenant import Member as Place
from mlp_language.message import msg


class TenantsPage(ListPage, forbid_unknown_fields=True):
    """Which tenants, by name."""


class MembersPage(ListPage, forbid_unknown_fields=True):
    """Which members, by name."""


async def list_(call: Call) -> Reply:
    """List the tenants that the caller may know of, by name."""
    asker = call.principal
    found = await call.platform.tenants.list(None if asker.is_platform_admin else asker.name)
    return listed_by(call, found, lambda tenant: tenant.name, call.query)


async def create(call: Call) -> Tenant:
    """Make a tenant."""
    return await call.platform.tenants.create(call.body, actor=call.principal.name)


async def get(call: Call) -> Tenant:
    """Show a tenant."""
    return await call.platform.tenants.get(call.params["tenant"])


async def update(call: Call) -> Tenant:
    """Set all fields of a tenant; a field that is left out returns to its default."""
    return await call.platform.tenants.update(call.params["tenant"], call.body, actor=call.principal.name)


async def preview(call: Call) -> TenantPreview:
    """Say what an update would mean for running and waiting jobs; nothing is changed."""
    return await call.platform.previews.preview_update(call.params["tenant"], call.body)


async def delete(call: Call) -> Tenant:
    """Delete a tenant that nobody uses."""
    gone = await call.platform.tenants.delete(call.params["tenant"], actor=call.principal.name)
    call.platform.announcements.forget_tenant(gone.name)
    call.platform.alerts.forget_tenant(gone.name)
    return gone


async def rotate_key(call: Call) -> Tenant:
    """Wrap the key that encrypts a tenant's files with another key; the files are not encrypted again."""
    await call.platform.storage_migration.rotate(call.params["tenant"], call.principal.name)
    return await call.platform.tenants.get(call.params["tenant"])


async def usage(call: Call) -> Usage:
    """Show a tenant's quota, who uses it, and its use over time."""
    return await call.platform.tenants.usage(call.params["tenant"])


async def members(call: Call) -> Reply:
    """List a tenant's members, by name."""
    found = await call.platform.tenants.members(call.params["tenant"])
    return listed_by(call, sorted(found, key=lambda one: one.user), lambda member: member.user, call.query)


async def get_member(call: Call) -> Member:
    """Show one member."""
    return await _member(call)


async def set_member(call: Call) -> Member:
    """Add a member or change a role. Only who was let in can be one.

    Whom a tenant's admin takes in stays in `default` too, where their work goes until they choose otherwise: they
    were not asked, and an admin of a tenant sees what its members run there.
    """
    tenant, user = call.params["tenant"], call.user
    body: MemberUpdate = call.body if call.body is not None else MemberUpdate()
    if is_service(user):
        raise Refused(
            Reason.FORBIDDEN,
            msg(
                "{user} is an account of one team: it cannot join another team or administer one",
                user=clip(user),
            ),
        )
    if call.principal.is_platform_admin:
        if await _person(call) is None:
            raise Refused(
                Reason.NOT_FOUND,
                msg(
                    "{user} is not an approved user; people sign up on the login page, an admin approves them, then they can join a team",
                    user=clip(user),
                ),
            )
    else:
        places = await call.platform.tenants.of_user(user)
        if tenant not in {m.tenant for m in places if m.source != "default"}:
            await _check_free(call, places)
            if tenant != DEFAULT_TENANT:
                return await call.platform.tenants.take_in(tenant, user, body.role, actor=call.principal.name)
    return await call.platform.tenants.set_member(tenant, user, body.role, actor=call.principal.name)


async def _check_free(call: Call, places: Sequence[Place]) -> None:
    """Raise NotFound unless a tenant's admin may take the user in: not who has a tenant, and no platform admin.

    Always in the same words, so that nobody learns by trying who is here and who is where.
    """
    person = await _person(call)
    if person is None or person.admin or {m.tenant for m in places} - {DEFAULT_TENANT}:
        raise Refused(
            Reason.NOT_FOUND,
            msg(
                "{user} is not a user without a team; a platform administrator adds users who have one",
                user=clip(call.user),
            ),
        )


async def _person(call: Call) -> Person | None:
    return await call.service.hub.person(call.user)


async def remove_member(call: Call) -> Member:
    """Remove a member: running jobs in the tenant continue, waiting ones are suspended, servers end.

    The servers are the member's notebook servers.
    """
    return await call.platform.tenants.remove_member(
        call.params["tenant"], call.user, actor=call.principal.name
    )


async def quota(call: Call) -> list[Usage]:
    """Show what a user's tenants may use, use, and who uses it."""
    places = await call.platform.tenants.of_user(call.user)
    return [await call.platform.tenants.usage(place.tenant) for place in places]


async def _member(call: Call) -> Member:
    for member in await call.platform.tenants.members(call.params["tenant"]):
        if member.user == call.user:
            return member
    raise not_found("member", clip(call.user))


_TENANT = "/tenants/{tenant}"
_MEMBER = "/tenants/{tenant}/members/{user}"
R, W = TENANTS_READ, TENANTS_WRITE

ROUTES = (
    Route(
        "GET",
        "/tenants",
        list_,
        "List the caller's tenants",
        Relation.ANYBODY,
        R,
        query=TenantsPage,
        reply=list[Tenant],
    ),
    Route(
        "POST",
        "/tenants",
        create,
        "Make a tenant",
        Relation.PLATFORM,
        W,
        body=TenantCreate,
        reply=Tenant,
        status=201,
        idempotent=True,
    ),
    Route("GET", _TENANT, get, "Show a tenant", Relation.MEMBER, R, reply=Tenant),
    Route(
        "PUT",
        _TENANT,
        update,
        "Change a tenant",
        Relation.PLATFORM,
        W,
        body=TenantUpdate,
        reply=Tenant,
        recent=True,
    ),
    Route(
        "POST",
        f"{_TENANT}:preview",
        preview,
        "What a change of a tenant would do",
        Relation.PLATFORM,
        W,
        body=TenantUpdate,
        reply=TenantPreview,
    ),
    Route(
        "POST",
        f"{_TENANT}:rotate-key",
        rotate_key,
        "Change the key of an encrypted tenant",
        Relation.PLATFORM,
        W,
        reply=Tenant,
        recent=True,
    ),
    Route("DELETE", _TENANT, delete, "Delete a tenant", Relation.PLATFORM, W, reply=Tenant, recent=True),
    Route("GET", f"{_TENANT}/usage", usage, "A tenant's use", Relation.MEMBER, R, reply=Usage),
    Route(
        "GET",
        f"{_TENANT}/members",
        members,
        "List members",
        Relation.MEMBER,
        R,
        query=MembersPage,
        reply=list[Member],
    ),
    Route("GET", _MEMBER, get_member, "Show a member", Relation.MEMBER, R, reply=Member),
    Route(
        "PUT",
        _MEMBER,
        set_member,
        "Add a member or change a role",
        Relation.TENANT_ADMIN,
        W,
        body=MemberUpdate,
        body_optional=True,
        reply=Member,
        bucket="change",
    ),
    Route(
        "DELETE",
        _MEMBER,
        remove_member,
        "Remove a member",
        Relation.TENANT_ADMIN,
        W,
        reply=Member,
        bucket="change",
    ),
    Route("GET", "/users/{user}/quota", quota, "A user's quota", Relation.SELF, R, reply=list[Usage]),
)
