"""The one function that says whether a caller may use a route on an object."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

from mlp_api.types import NAME_PATTERN
from mlp_hub.api.auth import may_enter
from mlp_hub.api.decode import clip
from mlp_hub.api.principal import Kind, Principal
from mlp_hub.api.routes import Relation, Route
from mlp_hub.domain.errors import Reason, Refused, not_found

USER_NAME_MAX = 255
_NAME = re.compile(NAME_PATTERN)


class Jobs(Protocol):
    """What is asked about jobs."""

    async def tenant_of(self, user: str, name: str) -> str | None:
        """Return the tenant of a job, None where there is none; as quickly in either case."""
        ...


class Place(Protocol):
    """A user's role in a tenant."""

    @property
    def tenant(self) -> str:
        """The tenant."""
        ...

    @property
    def role(self) -> str:
        """`member` or `admin`."""
        ...


class Tenants(Protocol):
    """What is asked about tenants."""

    async def of_user(self, user: str) -> Sequence[Place]:
        """List the user's places."""
        ...


class Known(Protocol):
    """The part of the platform that tells how callers stand to objects."""

    @property
    def jobs(self) -> Jobs:
        """The jobs."""
        ...

    @property
    def tenants(self) -> Tenants:
        """The tenants."""
        ...


async def authorize(route: Route, principal: Principal, params: dict[str, str], known: Known) -> None:
    """Return when the caller may; raise Refused otherwise.

    What a caller may not know of is refused in the words of what does not exist, whether it exists or not. Nothing
    is looked up for a caller without the scope.
    """
    if principal.kind is Kind.JOB:
        _check_job_token(route, principal, params)
        return
    if not may_enter(principal):
        raise Refused(
            Reason.FORBIDDEN, "this token was not made for MLP Hub; it lacks access:services!service=mlp"
        )
    everywhere = route.scope is None or route.scope in principal.scopes
    if not everywhere and route.scope not in principal.own_scopes:
        raise Refused(Reason.FORBIDDEN, f"this token lacks the scope {route.scope}")
    _check_names(params)
    if route.relation in (Relation.PUBLIC, Relation.ANYBODY):
        return
    if everywhere and principal.is_platform_admin:
        return
    if await _stands(route, principal, params, known, everywhere=everywhere):
        return
    raise _refusal(params)


async def _stands(
    route: Route, principal: Principal, params: dict[str, str], known: Known, *, everywhere: bool
) -> bool:
    if principal.kind is not Kind.USER:
        return False
    relation = route.relation
    if relation in (Relation.SELF, Relation.JOB) and params["user"] == principal.name:
        return True
    if not everywhere or relation in (Relation.SELF, Relation.PLATFORM):
        return False
    places = await known.tenants.of_user(principal.name)
    if relation is Relation.JOB:
        led = {m.tenant for m in places if m.role == "admin"}
        return bool(led) and await known.jobs.tenant_of(params["user"], params["job"]) in led
    place = next((m for m in places if m.tenant == params["tenant"]), None)
    if place is None:
        return False
    if relation is Relation.TENANT_ADMIN and place.role != "admin":
        # a member may know that the tenant exists
        raise Refused(Reason.FORBIDDEN, f"only an admin of {place.tenant} or of the platform may do this")
    return True


def _check_job_token(route: Route, principal: Principal, params: dict[str, str]) -> None:
    if not route.job_token:
        raise Refused(
            Reason.FORBIDDEN, "a job's token may report metrics and progress of its own job, and read it"
        )
    if params.get("user") != principal.name or params.get("job") != principal.job:
        raise _refusal(params)


def _check_names(params: dict[str, str]) -> None:
    """Refuse names that nothing can have, before they go any further."""
    for kind, value in params.items():
        if len(value) > USER_NAME_MAX or (kind != "user" and not _NAME.fullmatch(value)):
            raise _refusal(params)


def _refusal(params: dict[str, str]) -> Refused:
    if "job" in params:
        return not_found("job", clip(params["job"]))
    if "tenant" in params:
        return not_found("tenant", clip(params["tenant"]))
    if "user" in params:
        return not_found("user", clip(params["user"]))
    return Refused(Reason.FORBIDDEN, "only a platform admin may do this")
