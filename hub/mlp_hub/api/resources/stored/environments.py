"""Environments of tenants: make, list, look at, delete."""

from __future__ import annotations

from collections.abc import Sequence

from mlp_api.stored.environments import EnvironmentCreate, EnvironmentDetail, EnvironmentInfo
from mlp_hub.api.auth.scopes import JOBS_READ, JOBS_WRITE
from mlp_hub.api.edge.call import Call
from mlp_hub.api.routes import Relation, Route


async def create(call: Call) -> EnvironmentInfo:
    """Have an environment made of requirements, or of an image; it is durable when the answer comes, and made after that.

    Requirements are resolved to a lock with hashes, then installed, both in sandboxes: `state` goes from `creating` to `ready`, or to
    `error` with a `message` why. Of an image nothing is made. Which of the two this hub takes, `images` of the session tells.
    """
    return await call.platform.environments.create(
        call.params["tenant"],
        call.body,
        actor=call.principal.name,
        admin=call.principal.is_platform_admin,
    )


async def list_(call: Call) -> Sequence[EnvironmentInfo]:
    """List a tenant's environments, the oldest first."""
    return await call.platform.environments.list(call.params["tenant"])


async def get(call: Call) -> EnvironmentDetail:
    """Show an environment with its requirements, its lock and the last lines of its making."""
    return await call.platform.environments.get(call.params["tenant"], call.params["environment"])


async def delete(call: Call) -> EnvironmentInfo:
    """Delete an environment; one that a job uses which has not ended is refused, with the job's name."""
    return await call.platform.environments.delete(
        call.params["tenant"],
        call.params["environment"],
        actor=call.principal.name,
        admin=call.principal.is_platform_admin,
    )


_ALL = "/tenants/{tenant}/environments"
_ONE = f"{_ALL}/{{environment}}"
M = Relation.MEMBER

ROUTES = (
    Route("GET", _ALL, list_, "List a tenant's environments", M, JOBS_READ, reply=list[EnvironmentInfo]),
    Route(
        "POST",
        _ALL,
        create,
        "Make an environment",
        M,
        JOBS_WRITE,
        body=EnvironmentCreate,
        reply=EnvironmentInfo,
        status=201,
        idempotent=True,
    ),
    Route("GET", _ONE, get, "Show an environment", M, JOBS_READ, reply=EnvironmentDetail),
    Route("DELETE", _ONE, delete, "Delete an environment", M, JOBS_WRITE, reply=EnvironmentInfo),
)
