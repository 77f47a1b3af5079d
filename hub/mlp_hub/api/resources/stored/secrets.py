"""Secrets of users and of tenants; their contents are never returned."""

from __future__ import annotations

from mlp_api.stored.secrets import Secret, SecretSet
from mlp_hub.api.auth.scopes import DATA_READ, DATA_WRITE, TENANTS_READ, TENANTS_WRITE
from mlp_hub.api.edge.call import Call
from mlp_hub.api.routes import Relation, Route
from mlp_hub.domain.tenants.secret import SealedSecret
from mlp_hub.service.support.units import when


async def list_own(call: Call) -> list[Secret]:
    """List a user's secrets by name, without what is in them."""
    return [_wire(one) for one in await call.platform.secrets.list(user=call.user)]


async def set_own(call: Call) -> str:
    """Set a secret of a user; an earlier secret of that name is replaced."""
    asked: SecretSet = call.body
    await call.platform.secrets.store_secret(
        call.params["secret"], asked.keys, user=call.user, actor=call.principal.name
    )
    return ""


async def remove_own(call: Call) -> str:
    """Forget a secret of a user's."""
    await call.platform.secrets.remove(call.params["secret"], user=call.user, actor=call.principal.name)
    return ""


async def list_shared(call: Call) -> list[Secret]:
    """List a tenant's secrets by name, which its members may use, without what is in them."""
    return [_wire(one) for one in await call.platform.secrets.list(tenant=call.params["tenant"])]


async def set_shared(call: Call) -> str:
    """Set a secret of a tenant; an earlier secret of that name is replaced."""
    asked: SecretSet = call.body
    tenant = call.params["tenant"]
    await call.platform.secrets.store_secret(
        call.params["secret"], asked.keys, tenant=tenant, actor=call.principal.name
    )
    return ""


async def remove_shared(call: Call) -> str:
    """Forget a secret of a tenant's."""
    tenant = call.params["tenant"]
    await call.platform.secrets.remove(call.params["secret"], tenant=tenant, actor=call.principal.name)
    return ""


def _wire(one: SealedSecret) -> Secret:
    return Secret(
        name=one.name,
        keys=list(one.keys),
        tenant=one.tenant or None,
        user=one.user or None,
        changed_at=when(one.changed_at),
        changed_by=one.changed_by,
    )


_OWN, _SHARED = "/users/{user}/secrets", "/tenants/{tenant}/secrets"
S, M, A = Relation.SELF, Relation.MEMBER, Relation.TENANT_ADMIN

ROUTES = (
    Route("GET", _OWN, list_own, "List a user's secrets", S, DATA_READ, reply=list[Secret]),
    Route(
        "PUT",
        f"{_OWN}/{{secret}}",
        set_own,
        "Set a user's secret",
        S,
        DATA_WRITE,
        body=SecretSet,
        bucket="change",
    ),
    Route(
        "DELETE", f"{_OWN}/{{secret}}", remove_own, "Forget a user's secret", S, DATA_WRITE, bucket="change"
    ),
    Route("GET", _SHARED, list_shared, "List a tenant's secrets", M, TENANTS_READ, reply=list[Secret]),
    Route(
        "PUT",
        f"{_SHARED}/{{secret}}",
        set_shared,
        "Set a tenant's secret",
        A,
        TENANTS_WRITE,
        body=SecretSet,
        bucket="change",
    ),
    Route(
        "DELETE",
        f"{_SHARED}/{{secret}}",
        remove_shared,
        "Forget a tenant's secret",
        A,
        TENANTS_WRITE,
        bucket="change",
    ),
)
