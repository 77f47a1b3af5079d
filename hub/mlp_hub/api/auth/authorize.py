"""The one function that says whether a caller may use a route on an object."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING

from mlp_api.jobs.jobs import JOB_NAME_PATTERN
from mlp_api.types import NAME_PATTERN
from mlp_hub.api.auth.authentication import may_enter
from mlp_hub.api.auth.owned import KINDS, kind_in
from mlp_hub.api.auth.principal import CallerKind, Principal
from mlp_hub.api.edge.decode import clip
from mlp_hub.api.routes import Relation, Route
from mlp_hub.domain.errors import Reason, Refused, not_found
from mlp_hub.domain.tenants.tenant import no_such_tenant
from mlp_hub.domain.tenants.tenant_context import TenantContext
from mlp_language.message import msg

if TYPE_CHECKING:
    from mlp_hub.service.platform import Platform

USER_NAME_MAX = 255
"""Safety: characters of a name in a path; a longer one names nothing, and is not looked up."""
_NAME = re.compile(NAME_PATTERN)
_OF_THE_USER = (Relation.SELF, Relation.OWNED, Relation.VISITOR)
_OTHER_NAMES = {
    # a machine's, which nobody here chose
    "node": re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?"),
    "silence": re.compile(r"[0-9]{1,18}"),
    "announcement": re.compile(r"[0-9]{1,18}"),
    "environment": re.compile(JOB_NAME_PATTERN),
}


async def authorize(
    route: Route, principal: Principal, params: dict[str, str], platform: Platform
) -> TenantContext:
    """Return which owned objects the caller can reach, if it may use the route; raise Refused otherwise.

    Permission for one object is not permission for a later one of its name, as for another run of a
    job. Where that matters, the name in `params` becomes the name of exactly that object, so that a
    later one is not taken for it.

    An object that a caller may not know of is refused with the words for an object that does not exist.
    Nothing is looked up for a caller without the scope.
    """
    if principal.kind is CallerKind.JOB:
        _check_job_token(route, principal, params)
        return TenantContext(principal.name)
    if not may_enter(principal):
        raise Refused(
            Reason.FORBIDDEN, msg("this token was not made for MLP Hub; it lacks access:services!service=mlp")
        )
    everywhere = route.scope is None or route.scope in principal.scopes
    if not everywhere and route.scope not in principal.own_scopes:
        raise Refused(Reason.FORBIDDEN, msg("this token lacks the scope {scope}", scope=str(route.scope)))
    _check_names(params)
    own = TenantContext(principal.name)
    if everywhere and principal.is_platform_admin:
        return TenantContext(principal.name, None)
    if route.relation in (Relation.PUBLIC, Relation.ANYBODY):
        return own
    if (led := await _stands(route, principal, params, platform, everywhere=everywhere)) is not None:
        return own.and_of(led)
    raise _refusal(params)


async def _stands(
    route: Route, principal: Principal, params: dict[str, str], platform: Platform, *, everywhere: bool
) -> Collection[str] | None:
    """Return the tenants of which the caller comes to all objects; None where they may not use the route."""
    if principal.kind is not CallerKind.USER:
        return None
    relation = route.relation
    if relation in _OF_THE_USER and params["user"] == principal.name:
        return ()
    if not everywhere or relation in (Relation.SELF, Relation.PLATFORM):
        return None
    if relation in (Relation.VISITOR, Relation.OWNED):
        return await _stands_to_anothers(relation, principal, params, platform)
    places = await platform.tenants.of_user(principal.name)
    place = next((m for m in places if m.tenant == params["tenant"]), None)
    if place is None:
        return None
    if relation is Relation.TENANT_ADMIN and place.role != "admin":
        # a member may know that the tenant exists
        raise Refused(
            Reason.FORBIDDEN,
            msg("only an admin of {tenant} or of the platform may do this", tenant=place.tenant),
        )
    return (place.tenant,)


async def _stands_to_anothers(
    relation: Relation, principal: Principal, params: dict[str, str], platform: Platform
) -> Collection[str] | None:
    """Do so for an object of somebody else's."""
    if relation is Relation.VISITOR:
        # the context stays theirs: what is shown of another's app is for `AppVisitors` to look up, by the same rule
        return () if await platform.apps.visitors.may(principal.name, params["user"], params["app"]) else None
    led = {m.tenant for m in await platform.tenants.of_user(principal.name) if m.role == "admin"}
    return led if await _leads(led, params, platform) else None


async def _leads(tenants: set[str], params: dict[str, str], platform: Platform) -> bool:
    kind = kind_in(params)
    if kind is None or not tenants:
        return False
    found = await KINDS[kind].tenant_of(platform)(params["user"], params[kind])
    if found is None or found[0] not in tenants:
        return False
    params[kind] = found[1]
    return True


def _check_job_token(route: Route, principal: Principal, params: dict[str, str]) -> None:
    if not route.job_token:
        raise Refused(
            Reason.FORBIDDEN,
            msg(
                "a job's token may read its job, and report metrics and progress; submit other jobs from a notebook or a terminal, many alike with --array or mlp sweep"
            ),
        )
    name = principal.job.partition("@")[0]
    if params.get("user") != principal.name or params.get("job") not in (name, principal.job):
        raise _refusal(params)
    params["job"] = principal.job  # by its name alone a job means itself, not a later run


def _check_names(params: dict[str, str]) -> None:
    """Refuse names that nothing can have, before they go any further."""
    for kind, value in params.items():
        pattern = KINDS[kind].name if kind in KINDS else _OTHER_NAMES.get(kind, _NAME)
        if len(value) > USER_NAME_MAX or (kind != "user" and not pattern.fullmatch(value)):
            raise not_found(kind, clip(value)) if kind in _OTHER_NAMES else _refusal(params)


def _refusal(params: dict[str, str]) -> Refused:
    owned = kind_in(params)
    if owned is not None:
        return not_found(owned, clip(params[owned]))
    if "tenant" in params:
        return no_such_tenant(clip(params["tenant"]))
    if "user" in params:
        return not_found("user", clip(params["user"]))
    return Refused(Reason.FORBIDDEN, msg("only a platform administrator may do this"))
