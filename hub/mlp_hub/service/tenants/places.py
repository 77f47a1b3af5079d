"""Places of people in tenants: who is where, what is said of it, and which tenant work counts for."""

from __future__ import annotations

from mlp_hub.domain.errors import Reason, Refused, not_found
from mlp_hub.domain.tenants.tenant import DEFAULT_TENANT, Member, Role, Tenant
from mlp_hub.store.tx import Tx
from mlp_language.message import Message, msg


def existing_tenant(tx: Tx, name: str) -> Tenant:
    """Return a tenant. Raises `NotFound`."""
    tenant = tx.tenants.get(name)
    if tenant is None:
        raise not_found("tenant", name)
    return tenant


def memberships_of(tx: Tx, user: str) -> list[Member]:
    """Return the user's tenants; a user in none is in `default`."""
    return tx.members.of_user(user) or [Member(DEFAULT_TENANT, user, Role.MEMBER, "default")]


def tenants_of(tx: Tx, user: str) -> frozenset[str]:
    """Return the names of the user's tenants; a user in none is in `default`."""
    return frozenset(place.tenant for place in memberships_of(tx, user))


def default_tenant(tx: Tx, user: str) -> str:
    """Return the tenant that the user's work belongs to when none is named: their choice, else their first."""
    mine = [m.tenant for m in memberships_of(tx, user)]
    known = tx.users.get(user)
    return known.default_tenant if known is not None and known.default_tenant in mine else mine[0]


def without_team(tx: Tx) -> list[Member]:
    """Return everybody who is in no tenant, as members of `default`."""
    return [Member(DEFAULT_TENANT, u, Role.MEMBER, "default") for u in tx.users.without_tenant()]


def check_member(user: str, role: Role | str) -> None:
    """Raise `Invalid` for a name or a role that nobody has."""
    if not user or len(user) > 255:
        raise Refused(Reason.INVALID, msg("a user's name has 1 to 255 characters"))
    if role not in list(Role):
        raise Refused(
            Reason.INVALID,
            msg("role {role} does not exist; the roles are {roles}", role=role, roles=tuple(Role)),
        )


def stays_in_default(user: str, tenant: str) -> Message:
    """Say where the work of somebody goes whom a tenant's own admin took in."""
    return msg(
        "{user} stays in {default} too: new work of {user} counts for {default} unless {tenant} is chosen for it",
        user=user,
        tenant=tenant,
        default=DEFAULT_TENANT,
    )


def left_default(user: str, tenant: str) -> Message:
    """Say what a first tenant takes."""
    return msg(
        "{user} is no longer in {default}, which is for users who are in no other team. New work of {user} counts for {tenant}. Running work, also a notebook server, continues and counts for {default} until it ends",
        user=user,
        tenant=tenant,
        default=DEFAULT_TENANT,
    )


def managed_elsewhere(member: Member, provider: str) -> Refused:
    """Return the refusal of a change to a place that follows a group, of JupyterHub or of the login's `provider`."""
    if provider:
        text = msg(
            "{user} is in {tenant} because of a group of {provider}, which manages this membership; change the user's groups there, and it follows within a minute",
            user=member.user,
            tenant=member.tenant,
            provider=provider,
        )
    else:
        text = msg(
            "{user} is in {tenant} because of the JupyterHub group {tenant}; remove the user from the group",
            user=member.user,
            tenant=member.tenant,
        )
    return Refused(Reason.WRONG_STATE, text)
