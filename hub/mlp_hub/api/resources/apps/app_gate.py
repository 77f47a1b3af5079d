"""Ways into apps: keys, who may open them, what was asked of them, and what the gateway asks."""

from __future__ import annotations

from mlp_api.apps.app_gate import (
    AppAccessNow,
    AppAccessSet,
    AppAdmission,
    AppAdmit,
    AppEnter,
    AppEntered,
    AppKeyCreate,
    AppKeyShown,
    AppMinute,
    AppsUsed,
    AppUsage,
    CountedUse,
)
from mlp_hub.api.auth.authentication import Credential, TooMany, Unauthorized, is_token, may_enter
from mlp_hub.api.auth.principal import CallerKind
from mlp_hub.api.auth.scopes import APPS_READ, APPS_WRITE, GATEWAY, TENANTS_READ
from mlp_hub.api.edge import answers
from mlp_hub.api.edge.call import Call, Reply
from mlp_hub.api.edge.connections import network_of
from mlp_hub.api.routes import Relation, Route
from mlp_hub.domain.apps import app_gate as domain
from mlp_hub.domain.apps.app import AppAccess
from mlp_hub.domain.apps.app_usage import AppUse, MinuteOfUse
from mlp_hub.domain.errors import Reason, Refused, Unavailable
from mlp_hub.service.apps.endpoints import Endpoint
from mlp_hub.service.apps.usage import with_live
from mlp_hub.service.apps.visitors import text_for_visitors
from mlp_hub.service.support.units import maybe_when, when
from mlp_language.message import msg

UNKNOWN, REFUSED, OFTEN = AppAdmission("unknown"), AppAdmission("refused"), AppAdmission("often")


async def keys(call: Call) -> list[AppKeyShown]:
    """List the keys of an app by name; none of them can be seen again."""
    return [
        _key(one) for one in await call.platform.app_gate.keys(call.context, call.user, call.params["app"])
    ]


async def add_key(call: Call) -> AppKeyShown:
    """Make a key with which programs reach this app and nothing else. It is in this answer, and nowhere afterwards."""
    made, secret = await call.platform.app_gate.add_key(
        call.context, call.user, call.params["app"], call.body.name, actor=call.principal.name
    )
    return _key(made, secret)


async def drop_key(call: Call) -> str:
    """Revoke a key; the gateway takes it for some seconds more, and what is open with it is ended then."""
    await call.platform.app_gate.drop_key(
        call.context, call.user, call.params["app"], call.params["key"], actor=call.principal.name
    )
    return ""


async def set_access(call: Call) -> AppAccessNow:
    """Set who may open an app with an account of the hub: `private`, `tenant` or `hub`. Keys are apart from that."""
    wanted = AppAccess(call.body.access)
    await call.platform.app_gate.set_access(
        call.context, call.user, call.params["app"], wanted, actor=call.principal.name
    )
    return AppAccessNow(access=call.body.access)


async def usage(call: Call) -> AppUsage:
    """Show what was asked of an app, how quickly it answered, and what of it went wrong."""
    uid = await call.platform.app_gate.uid_of(call.context, call.user, call.params["app"])
    return await _usage_of(call, "app", uid)


async def tenant_usage(call: Call) -> AppUsage:
    """Show what was asked of all apps of a tenant together."""
    return await _usage_of(call, "tenant", call.params["tenant"])


async def admit(call: Call) -> Reply:
    """Return whether a request for an app may pass, and where to; the gateway asks for the request's sender."""
    asked: AppAdmit = call.body
    # why it waits is told in the language of who sent the request, whose the gateway says it is, and to a stranger's eyes
    return Reply(answers.encode(await _admit(call, asked), call.reader))


async def enter(call: Call) -> AppEntered:
    """Trade a browser's code for the cookie of an app's own origin: asked by the gateway."""
    app = call.platform.app_gate.by_label(call.body.label)
    got = await call.service.visits.enter("" if app is None else app.uid, call.body.code, call.body.way)
    return AppEntered() if got is None else AppEntered(cookie=got[0], lasts_s=int(got[1]))


async def used(call: Call) -> str:
    """Store the counts of requests to apps, which the gateway reports every few seconds."""
    report: AppsUsed = call.body
    await call.platform.app_usage.store_report(
        [(one.kind, one.name, one.run, _counted(one)) for one in report.counted],
        [(one.name, one.under_way) for one in report.counted if one.kind == "app"],
    )
    return ""


async def _admit(call: Call, asked: AppAdmit) -> AppAdmission:
    gate = call.platform.app_gate
    app = gate.by_label(asked.label) if asked.label else gate.find(asked.user, asked.app)
    try:
        if asked.kind == "key":
            key, visitor = await _key_given(call, asked), ""
            open_to = app is not None and key.app == app.uid
        else:
            key, visitor = None, await _visitor(call, app, asked)
            open_to = app is not None and bool(visitor) and await gate.may(app, visitor)
    except Unauthorized:
        return UNKNOWN
    except TooMany:
        return OFTEN
    return await _may(call, app, visitor, key) if app is not None and open_to else REFUSED


async def _key_given(call: Call, asked: AppAdmit) -> domain.AppKey:
    """Return the key of a request; raise `Unauthorized`, or `TooMany` for a caller that guesses.

    The limit is that for unknown tokens.
    """
    gate = call.platform.app_gate
    wait = (
        0
        if asked.again or gate.is_known(asked.secret)
        else call.service.limiter.take_token("unknown-token", network_of(asked.address))
    )
    if wait:
        raise TooMany(wait)
    found = await gate.key(asked.secret)
    if found is None:
        raise Unauthorized
    return found


async def _visitor(call: Call, app: Endpoint | None, asked: AppAdmit) -> str:
    """Return who asks; empty where the token is not for apps. Raises `Unauthorized` and `TooMany`."""
    if asked.kind == "cookie":
        session = None if app is None else await call.service.visits.session(app.uid, asked.secret)
        if session is None:
            raise Unauthorized
        credential = Credential(session.token, session.id)
    elif is_token(asked.secret):
        credential = Credential(asked.secret)
    else:
        raise Unauthorized
    principal = await call.service.auth.identify(credential, asked.address, again=asked.again)
    if principal.kind is not CallerKind.USER or not may_enter(principal):
        return ""
    if APPS_READ in principal.scopes:
        return principal.name
    own = app is not None and APPS_READ in principal.own_scopes and app.user == principal.name
    return principal.name if own else ""


async def _may(call: Call, app: Endpoint, visitor: str, key: domain.AppKey | None) -> AppAdmission:
    wakes = await call.platform.app_gate.wakes(app)
    reason = None
    if not app.replicas:
        # what it waits for is in the way of who may open it; as they would read it in the panel
        found = await call.platform.apps.get(call.context, app.user, app.name)
        reason = found.message if visitor == app.user else text_for_visitors(found)
    return AppAdmission(
        verdict="may",
        uid=app.uid,
        user=app.user,
        app=app.name,
        tenant=app.tenant,
        visitor=visitor,
        key="" if key is None else key.id,
        key_name="" if key is None else key.name,
        state=app.state,
        reason=reason,
        wakes=wakes,
        replicas=app.replicas,
    )


async def _usage_of(call: Call, kind: str, name: str) -> AppUsage:
    """Return the stored use, with the proxy's counts since then; while the proxy is away, the stored use only."""
    figures = call.service.figures
    if figures is None:
        raise Refused(
            Reason.WRONG_STATE,
            msg("requests to apps are not counted here, because this hub does not have its own proxy"),
        )
    # asked first: what it tells in between is in what is kept, and must not count twice
    try:
        live = await (figures.of_app(name) if kind == "app" else figures.of_tenant(name))
    except Unavailable:
        kept = await call.platform.app_usage.usage_of(kind, name)
        if kept is None:
            raise
        return _usage(kept.total, 0)
    kept = await call.platform.app_usage.usage_of(kind, name)
    return _usage(with_live(kept, live.run, live.use), live.open)


def _counted(counted: CountedUse) -> AppUse:
    return AppUse(
        since=counted.since,
        requests=counted.requests,
        errors=counted.errors,
        bytes_in=counted.bytes_in,
        bytes_out=counted.bytes_out,
        last=counted.last,
        bounds_ms=tuple(counted.bounds_ms),
        latency=tuple(counted.latency),
        minutes=tuple(
            MinuteOfUse(one.minute, one.requests, one.errors, one.bytes_in, one.bytes_out)
            for one in counted.minutes
        ),
    )


def _key(key: domain.AppKey, secret: str | None = None) -> AppKeyShown:
    return AppKeyShown(
        name=key.name,
        made_by=key.made_by,
        made_at=when(key.made_at),
        used_at=maybe_when(key.used_at),
        key=secret,
    )


def _usage(found: AppUse, under_way: int) -> AppUsage:
    return AppUsage(
        since=when(found.since),
        requests=found.requests,
        errors=found.errors,
        bytes_in=found.bytes_in,
        bytes_out=found.bytes_out,
        open=under_way,
        last=maybe_when(found.last or None),
        bounds_ms=list(found.bounds_ms),
        latency=list(found.latency),
        p50_ms=found.within_ms(0.5),
        p99_ms=found.within_ms(0.99),
        minutes=[
            AppMinute(
                time=when(m.minute * 60.0),
                requests=m.requests,
                errors=m.errors,
                bytes_in=m.bytes_in,
                bytes_out=m.bytes_out,
            )
            for m in found.minutes
        ],
    )


_APP = "/users/{user}/apps/{app}"
S, P = Relation.SELF, Relation.PLATFORM

ROUTES = (
    Route(
        "GET", f"{_APP}/keys", keys, "List an app's keys", Relation.OWNED, APPS_READ, reply=list[AppKeyShown]
    ),
    Route(
        "POST",
        f"{_APP}/keys",
        add_key,
        "Make a key of an app",
        S,
        APPS_WRITE,
        body=AppKeyCreate,
        reply=AppKeyShown,
        status=201,
        bucket="change",
    ),
    Route(
        "DELETE", f"{_APP}/keys/{{key}}", drop_key, "Revoke a key of an app", S, APPS_WRITE, bucket="change"
    ),
    Route(
        "PUT",
        f"{_APP}/access",
        set_access,
        "Set who may open an app",
        S,
        APPS_WRITE,
        body=AppAccessSet,
        reply=AppAccessNow,
        bucket="change",
    ),
    Route(
        "GET",
        f"{_APP}/usage",
        usage,
        "What was asked of an app",
        Relation.OWNED,
        APPS_READ,
        reply=AppUsage,
    ),
    Route(
        "GET",
        "/tenants/{tenant}/apps/usage",
        tenant_usage,
        "What was asked of a tenant's apps",
        Relation.MEMBER,
        TENANTS_READ,
        reply=AppUsage,
    ),
    Route(
        "PUT",
        "/gateway:admit",
        admit,
        "A request for an app came",
        P,
        GATEWAY,
        body=AppAdmit,
        reply=AppAdmission,
    ),
    Route(
        "PUT",
        "/gateway:enter",
        enter,
        "A browser came to an app",
        P,
        GATEWAY,
        body=AppEnter,
        reply=AppEntered,
    ),
    Route("PUT", "/gateway:used", used, "What was asked of apps", P, GATEWAY, body=AppsUsed),
)
