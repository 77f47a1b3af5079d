"""Who is asking, and what the service says of itself."""

from __future__ import annotations

from msgspec import Struct

from mlp_api.users import Keeping, Session
from mlp_hub.api.call import Call, Reply
from mlp_hub.api.principal import Kind
from mlp_hub.api.routes import Relation, Route
from mlp_hub.api.sessions import xsrf_token
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.service.config import DAY_S, MIB, KeepPolicy


class Health(Struct):
    """The service answers."""

    status: str
    version: str


async def auth(call: Call) -> str:
    """Give the name of the token's owner."""
    return call.principal.name


async def session(call: Call) -> Session:
    """Tell a page all it needs before anything else. `xsrf` is empty for a caller without a cookie."""
    principal = call.principal
    if principal.kind is not Kind.USER:
        raise Refused(Reason.FORBIDDEN, "only people have sessions; this token is a service's")
    places = await call.platform.tenants.of_user(principal.name)
    return Session(
        username=principal.name,
        admin=principal.is_platform_admin,
        tenants=[m.tenant for m in places],
        tenant_admin=[m.tenant for m in places if m.role == "admin"],
        xsrf=xsrf_token(principal.session) if principal.session else "",
        version=call.service.config.version,
        keeping=_keeping(call.platform.policy.keep),
    )


def _keeping(policy: KeepPolicy) -> Keeping:
    return Keeping(
        job_days=None if policy.job_s is None else policy.job_s / DAY_S,
        jobs=policy.jobs,
        job_mib=None if policy.job_bytes is None else policy.job_bytes / MIB,
    )


async def health(call: Call) -> Health:
    """Say that the service answers. Needs no token and tells nothing else."""
    return Health(status="ok", version=call.service.config.version)


async def openapi_json(call: Call) -> Reply:
    """Give this document."""
    service = call.service
    if not service.openapi:
        # made late: most services are never asked, and what its making needs stays in memory
        from mlp_hub.api import answers, openapi, table  # noqa: PLC0415

        service.openapi = answers.encode(openapi.document(table.all_routes(), service.config.version))
    return Reply(service.openapi)


ROUTES = (
    Route("GET", "/auth", auth, "Whose token this is", Relation.ANYBODY, reply=str),
    Route("GET", "/session", session, "Who is logged in", Relation.ANYBODY, reply=Session),
    Route("GET", "/health", health, "The service answers", Relation.PUBLIC, reply=Health),
    Route("GET", "/openapi.json", openapi_json, "This document", Relation.PUBLIC, reply=dict),
)
