"""Accounts: signing up, approval, leaving, what somebody chose."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Annotated, Literal
from urllib.parse import quote, unquote

from msgspec import Meta, Struct, convert
from msgspec.structs import replace

from mlp_api.accounts.users import (
    AdminRight,
    Departing,
    Leaving,
    PasswordReset,
    PasswordSet,
    Preferences,
    ServerStop,
    SpawnEnvironment,
    SpawnInfo,
    SpawnRoom,
    User,
    UserClosed,
    UserCreate,
)
from mlp_api.types import LINE_PATTERN, Tenant
from mlp_hub.api.auth.principal import CallerKind
from mlp_hub.api.auth.scopes import LEDGER_WRITE, USERS_READ, USERS_WRITE
from mlp_hub.api.edge.call import Call, Reply
from mlp_hub.api.edge.paging import ListPage
from mlp_hub.api.hubclient import HubAccount
from mlp_hub.api.routes import Relation, Route
from mlp_hub.domain.errors import Reason, Refused, not_found
from mlp_hub.domain.resources import units
from mlp_hub.domain.tenants.departure import FilesChoice, JobsChoice
from mlp_hub.domain.tenants.tenant import DEFAULT_TENANT
from mlp_hub.service.quota.lending import LentOut
from mlp_hub.service.support.units import when
from mlp_language.message import msg
from mlp_language.render import render


class UserQuery(ListPage, forbid_unknown_fields=True):
    """Which users: in a `state`, with a name that holds `search`, or those only who wait for their first approval."""

    cursor: Annotated[str, Meta(max_length=4096)] | None = None
    state: Literal["NotActive", "Actived"] | None = None
    waiting: bool = False
    search: Annotated[str, Meta(min_length=1, max_length=64, pattern=LINE_PATTERN)] | None = None


class LeaveQuery(Struct, forbid_unknown_fields=True):
    """Choices for the jobs and files of a user who leaves.

    `jobs=finish`: running jobs continue to their end, and waiting jobs are put aside. `stop`: all jobs
    are cancelled. `files=keep`: files stay for the time when the account is admitted again. `remove`:
    the home, and jobs with their outputs, are removed once nothing runs any more.
    """

    jobs: Literal["finish", "stop"] = "finish"
    files: Literal["keep", "remove"] = "keep"


async def sign_up(call: Call) -> User:
    """Make an account that waits for approval. The tenant named is applied for, and joined when it is approved."""
    body: UserCreate = call.body
    name = await call.service.hub.sign_up(body.username, body.password, call.address)
    if body.tenant is not None and body.tenant != DEFAULT_TENANT:
        await call.service.applications.apply(name, body.tenant)
    else:  # a namesake whose account is gone may have applied for one
        await call.service.applications.forget(name)
    return User(username=name, state="NotActive", tenants=[])


async def list_(call: Call) -> Reply:
    """List accounts by name, whether let in or not; `X-Total-Count` says how many there are on all pages."""
    query: UserQuery = call.query
    accounts, total = await call.service.hub.accounts(
        authorized=None if query.state is None else query.state == "Actived",
        waiting=query.waiting,
        search=(query.search or "").lower(),
        after=unquote(query.cursor or ""),
        limit=query.limit,
    )
    headers = {"X-Total-Count": str(total)}
    if len(accounts) == query.limit:
        headers["X-Next-Cursor"] = quote(accounts[-1].name)  # a header has no letters beyond Latin ones
    return Reply(call.encode(await _shown(call, accounts)), headers=headers)


async def get(call: Call) -> User:
    """Show one account."""
    return await _user(call, await _account(call))


async def approve(call: Call) -> User:
    """Let an account in, and into the tenant that it applied for.

    Who was never let in before begins in no tenant, whoever had their name.
    """
    name, actor = call.user, call.principal.name
    await _check_may_decide(call)
    account = await _account(call)
    standing = (await call.platform.users.among([name]))[name]
    applied_for = await call.service.applications.tenant_of(name)
    if not (standing.known and account.authorized):
        # first: nobody is let in without an entry that says by whom
        async with call.platform.users.approving(name, actor=actor, applied_for=applied_for):
            await call.platform.offboarding.come_back(name)
            if not standing.known and standing.placed and not account.authorized:
                await call.platform.tenants.forget_user(name, actor=actor)
            account = await call.service.hub.authorize(name)
    if applied_for is not None:
        await call.service.applications.accept(name, actor=actor)
    return await _user(call, account)


async def refuse(call: Call) -> User:
    """Refuse a sign-up: the account is gone with all that it was given, and its name free again.

    Who was ever let in has files and records, which a namesake must not inherit: such an account stays.
    """
    await _check_may_decide(call)
    account = await _account(call)
    if account.authorized or await call.platform.users.find(account.name) is not None:
        raise Refused(
            Reason.WRONG_STATE,
            msg(
                "{name} was approved before and has files and records here; deactivate the account instead",
                name=account.name,
            ),
        )
    shown = replace(await _user(call, account), tenants=[])
    await call.platform.tenants.forget_user(account.name, actor=call.principal.name)
    await call.service.hub.delete_account(account.name)
    await call.service.applications.forget(account.name)
    applied = {} if shown.applied_for is None else {"applied_for": shown.applied_for}
    await _noted(call, account, "user.refuse", **applied)
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
    """Shut an account out: sessions, tokens and notebook servers end; `jobs` and `files` are as chosen.

    The choices are carried out even if processes are killed meanwhile. `GET /users/{user}/leaving`
    shows the progress. An admin can approve the account again, with the files and jobs that were kept.
    Send no body, `{}`, or the user as the interface document has one. Any other content in a body is
    refused, since its sender means to change something.
    """
    query: LeaveQuery = call.query
    said: UserClosed | None = call.body
    given = said is not None and any(
        value is not None for value in (said.username, said.password, said.state)
    )
    if said is not None and given and said.username != call.user:
        raise Refused(
            Reason.INVALID,
            msg(
                "this request closes the account {user}, and its body does not name it; send no body to close it. "
                "A password is changed by PUT /users/{user}:password",
                user=call.user,
            ),
        )
    account = await _account(call)
    await call.platform.offboarding.begin(
        account.name, JobsChoice(query.jobs), FilesChoice(query.files), actor=call.principal.name
    )
    call.service.auth.forget_user(account.name)
    return await _user(call, HubAccount(account.name, False, account.admin))


async def leaving(call: Call) -> Leaving:
    """Say what would become of a user's jobs, servers, tokens and files who left now, or became of them."""
    account = await _account(call)
    user = await _user(call, account)
    offboarding = call.platform.offboarding
    owning, found = await offboarding.owned_counts(account.name), await offboarding.departure_of(account.name)
    tokens = await call.service.hub.tokens(account.name) if account.authorized else []
    departing = (
        None
        if found is None
        else Departing(
            stage=found.phase.value,
            jobs=found.jobs.value,
            files=found.files.value,
            actor=found.actor,
            since=when(found.since),
            stopped=found.stopped,
            suspended=found.suspended,
            removed=found.removed,
        )
    )
    return Leaving(
        username=account.name,
        state=user.state,
        tenants=user.tenants,
        running=owning.running,
        waiting=owning.waiting,
        suspended=owning.suspended,
        ended=owning.ended,
        servers=user.servers,
        tokens=len(tokens),
        datasets=owning.datasets,
        models=owning.models,
        stored=owning.stored,
        apps=owning.apps,
        bytes=call.platform.disk.size_of_home(account.name),
        departure=departing,
    )


async def set_password(call: Call) -> PasswordSet:
    """Give somebody another password. All their sessions and tokens end, their notebook servers are stopped."""
    asked: PasswordReset = call.body if call.body is not None else PasswordReset()
    account = await _account(call)
    if account.name == call.principal.name:
        raise Refused(
            Reason.FORBIDDEN,
            msg("you change your own password on the page Password, which asks for the present one"),
        )
    made = None if asked.password is not None else secrets.token_urlsafe(12)
    async with _changing(call, account, "user.password"):
        await call.service.hub.set_password(account.name, made or asked.password or "")
    call.service.auth.forget_user(account.name)
    return PasswordSet(username=account.name, password=made)


async def log_out(call: Call) -> User:
    """Log a user out everywhere: all sessions and tokens end, and notebook servers stop; jobs continue."""
    account = await _account(call)
    async with _changing(call, account, "user.logout"):
        await call.service.hub.log_out(account.name)
    call.service.auth.forget_user(
        account.name
    )  # none of the tokens is believed any more without asking the hub
    return await _user(call, account, servers=0)


async def stop_servers(call: Call) -> User:
    """Stop all notebook servers of a user; saved files stay, and the state of kernels is lost."""
    account = await _account(call)
    await call.service.hub.stop_servers(account.name)
    await _noted(call, account, "user.stop_servers", servers=account.servers)
    return await _user(call, account, servers=0)


async def set_admin(call: Call) -> User:
    """Make somebody an administrator of the platform, or no longer one."""
    asked: AdminRight = call.body
    account = await _account(call)
    # first: of no administrator it is unknown who made them one
    async with _changing(call, account, "user.admin", admin=asked.admin, was=account.admin):
        await call.service.hub.set_admin(account.name, asked.admin)
    call.service.auth.forget_user(account.name)
    return await _user(call, await _account(call))


async def preferences(call: Call) -> Preferences:
    """Show what somebody chose for themselves."""
    return convert({"language": await call.platform.users.language_of(call.user)}, Preferences)


async def prefer(call: Call) -> Preferences:
    """Choose for oneself. It holds wherever one is logged in, from the next request on."""
    chosen: Preferences = call.body
    if call.principal.kind is CallerKind.USER and call.principal.name != call.user:
        await call.platform.users.get(call.user)  # nobody becomes known by what an administrator wrote
    await call.platform.users.choose_language(call.user, chosen.language)
    return chosen


async def spawn(call: Call) -> SpawnInfo:
    """Tell the spawner what it needs to start a user's notebook server."""
    user = await call.platform.users.ensure(call.user)
    places = await call.platform.tenants.of_user(call.user)
    tenants = [m.tenant for m in places] or [DEFAULT_TENANT]
    tenancy = call.platform.tenants
    kinds = sorted({node.gpu_kind for node in call.platform.executor.nodes() if node.gpu_kind})
    environments = await call.platform.environments.for_servers(tenants)
    room = {
        name: _room(await tenancy.get(name), await tenancy.lent_out(name), kinds, environments[name])
        for name in tenants
    }
    return SpawnInfo(
        number=user.number,
        tenants=tenants,
        default_tenant=user.default_tenant,
        room=room,
    )


async def stopped(call: Call) -> ServerStop:
    """Tell the spawner why the platform is stopping a user's notebook servers: from memory, for it waits for the answer."""
    platform = call.platform
    full = render(platform.disk.ends_servers_for(call.user), call.reader)
    unused = render(platform.idle_servers.ends_server_for(call.user), call.reader)
    return ServerStop(why=full or unused, at_once=bool(full))


def _room(
    tenant: Tenant,
    lent: Mapping[str, LentOut],
    kinds: Sequence[str],
    environments: Sequence[SpawnEnvironment],
) -> SpawnRoom:
    """Return the free part of the tenant's quota, the amounts to borrow, and the amounts to take back."""
    cpu, cpu_free, cpu_borrow = _left(tenant, "cpu")
    ram, ram_free, ram_borrow = _left(tenant, "ram")
    gpu, gpu_free, _ = _left(tenant, "gpu")
    return SpawnRoom(
        cpu=cpu,
        cpu_free=cpu_free,
        ram=None if ram is None else int(ram),
        ram_free=None if ram_free is None else int(ram_free),
        gpu=gpu,
        gpu_free=gpu_free,
        gpu_kinds=[kind for kind in kinds if tenant.gpu_kinds.get(kind) != 0],
        cpu_borrow=cpu_borrow,
        ram_borrow=int(ram_borrow),
        cpu_back=units(lent["cpu"].amount),
        ram_back=lent["ram"].amount,
        back_from=sorted({t for each in lent.values() for t in each.borrowers}),
        network=tenant.network,
        job_network=tenant.job_network,
        environments=list(environments),
    )


def _left(tenant: Tenant, dimension: str) -> tuple[float | None, float | None, float]:
    """Return the quota, its free part, and the amount that can be borrowed.

    Without its own quota in this dimension, a tenant has its use plus its free amount as its quota.
    """
    own: float | None = getattr(tenant, dimension)
    used: float = getattr(tenant, f"{dimension}_inuse")
    free = tenant.free.get(dimension)
    if free is None:
        return own, None, 0.0
    if own is None:
        return round(used + free, 3), free, 0.0
    idle = min(free, max(0.0, own - used - tenant.lent.get(dimension, 0.0)))
    return own, round(idle, 3), round(free - idle, 3)


async def _account(call: Call) -> HubAccount:
    account = await call.service.hub.account(call.user)
    if account is None:
        raise not_found("user", call.user)
    return account


def _changing(
    call: Call, account: HubAccount, action: str, **detail: object
) -> AbstractAsyncContextManager[None]:
    """Return a context that writes down first what the caller does to an account in it."""
    users = call.platform.users
    return users.changing(action, account.name, actor=call.principal.name, detail=detail)


async def _noted(call: Call, account: HubAccount, action: str, **detail: object) -> None:
    """Write down what the caller did to an account."""
    await call.platform.users.note(action, account.name, actor=call.principal.name, detail=detail)


async def _user(call: Call, account: HubAccount, *, servers: int | None = None) -> User:
    shown = (await _shown(call, [account]))[0]
    return shown if servers is None else replace(shown, servers=servers)


async def _shown(call: Call, accounts: Sequence[HubAccount]) -> list[User]:
    """Describe accounts; `new` are those whom the platform does not know, because they were never let in."""
    standing = await call.platform.users.among([a.name for a in accounts])
    new = {a.name for a in accounts if not a.authorized and not standing[a.name].known}
    applied_for = await call.service.applications.tenants_of(new)
    return [
        User(
            username=account.name,
            state=_state(account),
            tenants=standing[account.name].tenants,
            admin=account.admin,
            default_tenant=standing[account.name].default_tenant,
            new=account.name in new,
            applied_for=applied_for.get(account.name),
            servers=account.servers,
            last_activity=account.last_activity,
        )
        for account in accounts
    ]


def _state(account: HubAccount) -> Literal["NotActive", "Actived"]:
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
        "Deregister: this closes the account",
        Relation.SELF,
        USERS_WRITE,
        body=UserClosed,
        body_optional=True,
        query=LeaveQuery,
        reply=User,
        recent=True,
    ),
    Route(
        "GET",
        "/users/{user}/leaving",
        leaving,
        "What becomes of who leaves",
        Relation.SELF,
        USERS_READ,
        reply=Leaving,
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
        "PUT",
        "/users/{user}:password",
        set_password,
        "Set the password of somebody who forgot it, or whose account others got into",
        Relation.PLATFORM,
        USERS_WRITE,
        body=PasswordReset,
        body_optional=True,
        reply=PasswordSet,
        bucket="change",
        recent=True,
    ),
    Route(
        "PUT",
        "/users/{user}:logout",
        log_out,
        "Log somebody out everywhere (the body is ignored)",
        Relation.SELF,
        USERS_WRITE,
        reply=User,
        bucket="change",
    ),
    Route(
        "PUT",
        "/users/{user}:stop_servers",
        stop_servers,
        "Stop somebody's notebook servers (the body is ignored)",
        Relation.SELF,
        USERS_WRITE,
        reply=User,
        bucket="change",
    ),
    Route(
        "PUT",
        "/users/{user}:admin",
        set_admin,
        "Make somebody an administrator, or no longer one",
        Relation.PLATFORM,
        USERS_WRITE,
        body=AdminRight,
        reply=User,
        bucket="change",
        recent=True,
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
        recent=True,
    ),
    Route(
        "GET",
        "/users/{user}/preferences",
        preferences,
        "What somebody chose for themselves",
        Relation.SELF,
        reply=Preferences,
    ),
    Route(
        "PATCH",
        "/users/{user}/preferences",
        prefer,
        "Choose the language that one is spoken to in",
        Relation.SELF,
        body=Preferences,
        reply=Preferences,
        bucket="change",
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
    Route(
        "GET",
        "/users/{user}:stopped",
        stopped,
        "Why the platform is stopping a user's notebook servers",
        Relation.PLATFORM,
        LEDGER_WRITE,
        reply=ServerStop,
    ),
)
