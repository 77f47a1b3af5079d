"""Accounts: signing up, approval, leaving, tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from mlp_api.types import Tenant
from mlp_api.users import SpawnInfo, SpawnRoom, TokenCreate, User, UserCreate
from mlp_hub.api.call import Call
from mlp_hub.api.hubclient import Account
from mlp_hub.api.principal import Kind
from mlp_hub.api.routes import Relation, Route
from mlp_hub.api.scopes import ACCESS, LEDGER_WRITE, OPERATOR, SCOPES, USERS_READ, USERS_WRITE
from mlp_hub.domain.errors import Reason, Refused, not_found
from mlp_hub.domain.resources import units
from mlp_hub.domain.tenant import DEFAULT_TENANT
from mlp_hub.domain.tenant import User as KnownUser
from mlp_hub.service.sharing import LentOut

TOKEN_LIFETIME_S = 30 * 24 * 3600


class UserQuery(Struct, forbid_unknown_fields=True):
    """Which users."""

    state: Literal["NotActive", "Actived"] | None = None


async def sign_up(call: Call) -> User:
    """Make an account that waits for approval. The tenant named is applied for, and joined when it is approved."""
    body: UserCreate = call.body
    name = await call.service.hub.sign_up(body.username, body.password, call.address)
    if body.tenant is not None and body.tenant != DEFAULT_TENANT:
        await call.service.applications.apply(name, body.tenant)
    else:  # a namesake whose account is gone may have applied for one
        await call.service.applications.forget(name)
    return User(username=name, state="NotActive", tenants=[])


async def list_(call: Call) -> list[User]:
    """List accounts, whether let in or not."""
    query: UserQuery = call.query
    places: dict[str, list[str]] = {}
    for tenant in await call.platform.tenants.list():
        for member in await call.platform.tenants.members(tenant.name):
            places.setdefault(member.user, []).append(tenant.name)
    known = {u.name: u for u in await call.platform.users.list()}
    return [
        await _shown(call, account, places.get(account.name, [DEFAULT_TENANT]), known.get(account.name))
        for account in await call.service.hub.accounts()
        if query.state is None or query.state == _state(account)
    ]


async def get(call: Call) -> User:
    """Show one account."""
    return await _user(call, await _account(call))


async def approve(call: Call) -> User:
    """Let an account in, and into the tenant that it applied for.

    Who was never let in before begins in no tenant, whoever had their name.
    """
    principal = call.principal
    await _check_may_decide(call)
    account = await _account(call)
    users, new = call.platform.users, await call.platform.users.find(call.user) is None
    if not account.authorized:
        if new:
            await call.platform.tenants.forget_user(account.name, actor=principal.name)
        await call.service.hub.authorize(account.name)
    if new or not account.authorized:
        applied_for = await call.service.applications.tenant_of(account.name)
        await users.approve(account.name, actor=principal.name, applied_for=applied_for)
    await call.service.applications.accept(account.name, actor=principal.name)
    return await _user(call, Account(account.name, True, account.admin))


async def refuse(call: Call) -> User:
    """Refuse a sign-up: the account is gone with all that it was given, and its name free again.

    Who was ever let in has files and records, which a namesake must not inherit: such an account stays.
    """
    await _check_may_decide(call)
    account = await _account(call)
    if account.authorized or await call.platform.users.find(account.name) is not None:
        raise Refused(
            Reason.WRONG_STATE,
            f"{account.name} was let in before and has files and records here; deactivate the account instead",
        )
    shown = await _shown(call, account, [], None)
    await call.platform.tenants.forget_user(account.name, actor=call.principal.name)
    await call.service.hub.delete_account(account.name)
    await call.service.applications.forget(account.name)
    applied = {} if shown.applied_for is None else {"applied_for": shown.applied_for}
    await call.platform.users.note("user.refuse", account.name, actor=call.principal.name, detail=applied)
    return shown


async def _check_may_decide(call: Call) -> None:
    """Raise NotFound unless the caller decides on this sign-up: a platform admin, or an admin of the tenant applied for."""
    principal = call.principal
    if principal.is_platform_admin:
        return
    tenant = await call.service.applications.tenant_of(call.user)
    led = [m.tenant for m in await call.platform.tenants.of_user(principal.name) if m.role == "admin"]
    if tenant is None or tenant not in led:
        raise not_found("user", call.user)


async def deregister(call: Call) -> User:
    """Shut an account out; its data stay, an admin can approve it again."""
    account = await _account(call)
    await call.service.hub.deauthorize(account.name)
    await call.platform.users.note("user.deactivate", account.name, actor=call.principal.name, detail={})
    return await _user(call, Account(account.name, False, account.admin))


async def token(call: Call) -> str:
    """Give a new token of the user with no more scopes than the caller's own token holds, valid for 30 days."""
    principal = call.principal
    held = sorted((principal.scopes | principal.own_scopes) & set(SCOPES))
    if principal.kind is not Kind.USER or principal.name != call.user:
        # an admin must not become somebody else: what they do is done in their own name
        raise Refused(Reason.FORBIDDEN, "a token is given to its user only; an operator uses `mlp-hub token`")
    asked = TokenCreate(
        note="asked for through MLP Hub's API", scopes=[ACCESS, *held], expires_in=TOKEN_LIFETIME_S
    )
    return await _new_token(call, asked)


async def token_of(call: Call) -> str:
    """Give a new token of any user to the operator's command on the hub's machine.

    Without scopes it may do all that the user may, without `expires_in` (seconds) it holds for ever.
    """
    if call.principal.kind is not Kind.SERVICE or call.principal.name != OPERATOR:
        raise Refused(Reason.FORBIDDEN, "only the operator's command `mlp-hub token` may ask for this")
    return await _new_token(call, call.body)


async def _new_token(call: Call, asked: TokenCreate) -> str:
    """Have the hub make a token; it is given to nobody before it is written down who asked for it."""
    made = await call.service.hub.new_token(
        call.user, asked.scopes, expires_in=asked.expires_in, note=asked.note
    )
    detail = {
        "note": asked.note,
        "scopes": "all of the user's" if asked.scopes is None else asked.scopes,
        "expires": "never" if asked.expires_in is None else f"after {asked.expires_in} s",
    }
    await call.platform.users.note("user.token", call.user, actor=call.principal.name, detail=detail)
    return made


async def spawn(call: Call) -> SpawnInfo:
    """Tell the spawner what it needs to start a user's notebook server."""
    user = await call.platform.users.ensure(call.user)
    places = await call.platform.tenants.of_user(call.user)
    tenants = [m.tenant for m in places] or [DEFAULT_TENANT]
    tenancy = call.platform.tenants
    room = {name: _room(await tenancy.get(name), await tenancy.lent_out(name)) for name in tenants}
    return SpawnInfo(number=user.number, tenants=tenants, default_tenant=user.default_tenant, room=room)


def _room(tenant: Tenant, lent: Mapping[str, LentOut]) -> SpawnRoom:
    """Say what may be taken now, of what: with what is borrowed that may be more than the quota."""
    cpu, ram = tenant.cpu, tenant.ram
    cpu_free, ram_free = tenant.free.get("cpu"), tenant.free.get("ram")
    return SpawnRoom(
        cpu=cpu if cpu_free is None else max(cpu or 0, round(tenant.cpu_inuse + cpu_free, 3)),
        cpu_free=cpu_free,
        ram=ram if ram_free is None else max(ram or 0, tenant.ram_inuse + int(ram_free)),
        ram_free=None if ram_free is None else int(ram_free),
        cpu_back=units(lent["cpu"].amount),
        ram_back=lent["ram"].amount,
        back_from=sorted({t for each in lent.values() for t in each.borrowers}),
    )


async def _account(call: Call) -> Account:
    account = await call.service.hub.account(call.user)
    if account is None:
        raise not_found("user", call.user)
    return account


async def _user(call: Call, account: Account) -> User:
    places = await call.platform.tenants.of_user(account.name)
    return await _shown(
        call, account, [m.tenant for m in places], await call.platform.users.find(account.name)
    )


async def _shown(call: Call, account: Account, tenants: list[str], known: KnownUser | None) -> User:
    """Describe an account; `known` is who it is to the platform, None for who was never let in."""
    waits = not account.authorized and known is None
    return User(
        username=account.name,
        state=_state(account),
        tenants=tenants,
        admin=account.admin,
        default_tenant=known.default_tenant if known else DEFAULT_TENANT,
        new=waits,
        applied_for=await call.service.applications.tenant_of(account.name) if waits else None,
    )


def _state(account: Account) -> Literal["NotActive", "Actived"]:
    return "Actived" if account.authorized else "NotActive"


ROUTES = (
    Route(
        "POST",
        "/users",
        sign_up,
        "Sign up; an admin approves the account",
        Relation.PUBLIC,
        body=UserCreate,
        reply=User,
        status=201,
        idempotent=True,
        bucket="signup",
    ),
    Route(
        "GET",
        "/users",
        list_,
        "List accounts",
        Relation.PLATFORM,
        USERS_READ,
        query=UserQuery,
        reply=list[User],
    ),
    Route("GET", "/users/{user}", get, "Show an account", Relation.SELF, USERS_READ, reply=User),
    Route(
        "PUT",
        "/users/{user}",
        deregister,
        "Deregister (the body is ignored)",
        Relation.SELF,
        USERS_WRITE,
        reply=User,
    ),
    Route(
        "PUT",
        "/users/{user}:approve",
        approve,
        "Approve an account",
        Relation.ANYBODY,
        USERS_WRITE,
        reply=User,
        bucket="change",
    ),
    Route(
        "DELETE",
        "/users/{user}",
        refuse,
        "Refuse a sign-up",
        Relation.ANYBODY,
        USERS_WRITE,
        reply=User,
        bucket="change",
    ),
    Route(
        "GET",
        "/users/{user}/token",
        token,
        "Get a new token",
        Relation.SELF,
        USERS_WRITE,
        reply=str,
        unsafe=True,
        bucket="change",
    ),
    Route(
        "POST",
        "/users/{user}/token",
        token_of,
        "Get a new token of any user, for the operator's command",
        Relation.PLATFORM,
        USERS_WRITE,
        body=TokenCreate,
        reply=str,
        status=201,
    ),
    Route(
        "GET",
        "/users/{user}:spawn",
        spawn,
        "What the spawner needs to know of a user",
        Relation.PLATFORM,
        LEDGER_WRITE,
        reply=SpawnInfo,
    ),
)
