"""Accounts of tenants, for builds and nightly runs: made by a tenant's admins, and nobody's who leaves."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime

from msgspec import structs

from mlp_api.accounts import users as wire
from mlp_hub.api.auth.scopes import (
    ACCESS,
    APPS_READ,
    APPS_WRITE,
    DATA_READ,
    DATA_WRITE,
    JOBS_READ,
    JOBS_WRITE,
    MODELS_READ,
    MODELS_WRITE,
    TENANTS_READ,
    TENANTS_WRITE,
)
from mlp_hub.api.edge.call import Call
from mlp_hub.api.resources.accounts.tokens import shown
from mlp_hub.api.routes import Relation, Route
from mlp_hub.domain.errors import Reason, Refused, Unavailable
from mlp_hub.domain.tenants.service_account import PREFIX, ServiceAccount
from mlp_hub.domain.tenants.tenant import DEFAULT_TENANT
from mlp_hub.service.support.units import when
from mlp_language.message import msg

LIFETIME_S = 90 * 24 * 3600
"""Limit of requests: seconds that a token of a service account is valid, if it was requested without a time."""
SCOPES = (
    ACCESS,
    JOBS_READ,
    JOBS_WRITE,
    MODELS_READ,
    MODELS_WRITE,
    APPS_READ,
    APPS_WRITE,
    DATA_READ,
    DATA_WRITE,
    TENANTS_READ,
)
"""Scopes of a service account's token, whoever made it.

They are for its own jobs, models, apps and datasets, and to see its tenant.
"""


async def list_(call: Call) -> list[wire.ServiceAccount]:
    """List a tenant's accounts with their tokens."""
    found = await call.platform.service_accounts.of_tenant(call.params["tenant"])
    return [await _to_wire(call, account) for account in found]


async def create(call: Call) -> wire.ServiceTokenGiven:
    """Make an account of the tenant and its first token."""
    body: wire.ServiceCreate = call.body
    tenant, user, actor = call.params["tenant"], PREFIX + body.name, call.principal.name
    if tenant == DEFAULT_TENANT:
        raise Refused(
            Reason.INVALID,
            msg("{tenant} belongs to nobody; make the account for another team", tenant=tenant),
        )
    accounts = call.platform.service_accounts
    await accounts.free(user, tenant)
    await call.service.hub.make_without_login(user)
    account = await accounts.add(user, tenant, actor=actor)
    return await _token(call, account, body.expires_in, grace=None)


async def rotate(call: Call) -> wire.ServiceTokenGiven:
    """Make another token; those before it are taken for a grace."""
    body: wire.ServiceRotate = call.body
    account = await _account(call)
    await call.platform.service_accounts.check_place(account)
    return await _token(call, account, body.expires_in, grace=body.grace)


async def end(call: Call) -> str:
    """End an account with its tokens: running jobs continue to their end, and waiting jobs are suspended.

    Its place in the tenant is removed first, because no token is accepted without it. The account is
    removed last, so that a caller that gets an error asks again.
    """
    account, actor = await _account(call), call.principal.name
    places = await call.platform.tenants.of_user(account.user)
    if account.tenant in {place.tenant for place in places}:
        await call.platform.tenants.remove_member(account.tenant, account.user, actor=actor)
    call.service.auth.forget_user(account.user)
    await call.service.hub.deauthorize(account.user)
    await call.platform.service_accounts.end(account, actor=actor)
    return ""


async def _account(call: Call) -> ServiceAccount:
    return await call.platform.service_accounts.get(PREFIX + call.params["service"], call.params["tenant"])


async def _token(
    call: Call, account: ServiceAccount, expires_in: int | None, *, grace: int | None
) -> wire.ServiceTokenGiven:
    """Make a token. It is taken by nobody, nor given, before it is noted and written down who asked."""
    lasts, now, actor = expires_in or LIFETIME_S, call.service.clock(), call.principal.name
    note = f"{account.name} of {account.tenant}"
    made, token_id = await call.service.hub.new_token_and_id(
        account.user, list(SCOPES), expires_in=lasts, note=note
    )
    old_until = None if grace is None else now + grace
    detail = {"note": note, "scopes": list(SCOPES), "expires": msg("after {seconds} s", seconds=str(lasts))}
    try:
        await call.platform.service_accounts.took(
            account, token_id, old_until=old_until, actor=actor, detail=detail
        )
    except Exception:
        # nobody has it and nobody takes it: the hub need not keep it. Of a service that died here the same is true
        with contextlib.suppress(Unavailable):
            await call.service.hub.end_token(account.user, token_id)
        raise
    call.service.auth.forget_user(account.user)
    return wire.ServiceTokenGiven(
        user=account.user,
        token=made,
        expires=datetime.fromtimestamp(now + lasts, UTC),
        old_until=None if old_until is None else when(old_until),
    )


async def _to_wire(call: Call, account: ServiceAccount) -> wire.ServiceAccount:
    """Tell of an account, and of those of its tokens that are taken: not of one that the hub made and nobody noted."""
    taken = await call.platform.service_accounts.taken(account.user)
    found = [one for one in await call.service.hub.tokens(account.user) if one.id in taken]
    uses = await call.service.uses.uses_of(account.user, [one.id for one in found])
    return wire.ServiceAccount(
        name=account.name,
        user=account.user,
        made_by=account.made_by,
        made_at=when(account.made_at),
        tokens=[_until(taken[one.id], shown(call, one, uses.get(one.id))) for one in found],
    )


def _until(rotated_out: float | None, token: wire.TokenInfo) -> wire.TokenInfo:
    """Say when a token ends that was rotated out before its own end."""
    if rotated_out is None:
        return token
    ends = datetime.fromtimestamp(rotated_out, UTC)
    if token.expires is not None and token.expires < ends:
        return token
    return structs.replace(token, expires=ends, ends_soon=True)


_ALL = "/tenants/{tenant}/services"
_ONE = "/tenants/{tenant}/services/{service}"
ROUTES = (
    Route(
        "GET",
        _ALL,
        list_,
        "List the tenant's accounts for programs",
        Relation.TENANT_ADMIN,
        TENANTS_READ,
        reply=list[wire.ServiceAccount],
    ),
    Route(
        "POST",
        _ALL,
        create,
        "Make an account for programs of the tenant, and its token",
        Relation.TENANT_ADMIN,
        TENANTS_WRITE,
        body=wire.ServiceCreate,
        reply=wire.ServiceTokenGiven,
        status=201,
        recent=True,
        bucket="change",
    ),
    Route(
        "PUT",
        f"{_ONE}:rotate",
        rotate,
        "Make another token of such an account; the old ones end after a grace",
        Relation.TENANT_ADMIN,
        TENANTS_WRITE,
        body=wire.ServiceRotate,
        reply=wire.ServiceTokenGiven,
        recent=True,
        bucket="change",
    ),
    Route(
        "DELETE",
        _ONE,
        end,
        "End such an account with its tokens",
        Relation.TENANT_ADMIN,
        TENANTS_WRITE,
        recent=True,
        bucket="change",
    ),
)
