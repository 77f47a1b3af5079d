"""Caller of the session, and the service's own information."""

from __future__ import annotations

from msgspec import Struct

from mlp_api.accounts.users import Keeping, Session
from mlp_hub.api.auth.principal import CallerKind
from mlp_hub.api.auth.sessions import xsrf_token
from mlp_hub.api.edge import answers
from mlp_hub.api.edge.call import Call, Reply
from mlp_hub.api.routes import Relation, Route
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.service.config import DAY_S, MIB, KeepPolicy
from mlp_hub.service.state.leadership import LeaseLost, short_name
from mlp_language.message import msg
from mlp_language.render import render


class HealthProblem(Struct):
    """Something that does not work, in words for everybody."""

    component: str
    reason: str
    message: str


class Health(Struct):
    """State of the platform: `ok`, `degraded` or `failing`.

    In the state `degraded` requests are served in spite of problems.
    """

    status: str
    version: str
    problems: list[HealthProblem]


class Ready(Struct):
    """Whether a replica serves requests, its name, and that of the one which decides, where it is known; neither says on which machine."""

    ready: bool
    replica: str
    leader: str | None
    msg: str


async def auth(call: Call) -> str:
    """Give the name of the token's owner."""
    return call.principal.name


async def session(call: Call) -> Session:
    """Tell a page all it needs before anything else. `xsrf` is empty for a caller without a cookie."""
    principal = call.principal
    if principal.kind is not CallerKind.USER:
        raise Refused(Reason.FORBIDDEN, msg("only people have sessions; this token belongs to a service"))
    places = await call.platform.tenants.of_user(principal.name)
    return Session(
        username=principal.name,
        admin=principal.is_platform_admin,
        tenants=[m.tenant for m in places],
        tenant_admin=[m.tenant for m in places if m.role == "admin"],
        xsrf=xsrf_token(principal.session) if principal.session else "",
        version=call.service.config.version,
        keeping=_keeping(call.platform.policy.keep),
        warnings=list(call.service.config.warnings) if principal.is_platform_admin else [],
        language=await call.platform.users.language_of(principal.name),
        images=call.platform.environments.images,
    )


def _keeping(policy: KeepPolicy) -> Keeping:
    return Keeping(
        job_days=None if policy.job_s is None else policy.job_s / DAY_S,
        jobs=policy.jobs,
        job_mib=None if policy.job_bytes is None else policy.job_bytes / MIB,
    )


async def health(call: Call) -> Health:
    """Say that the service is alive, and what does not work. Needs no token; restarting it mends none of these problems."""
    found = await call.platform.problems.now()
    fails = any(problem.fails for problem in found)
    problems = [HealthProblem(p.component, p.reason, render(p.message, call.reader)) for p in found]
    return Health(
        "failing" if fails else "degraded" if found else "ok", call.service.config.version, problems
    )


async def ready(call: Call) -> Reply:
    """Say whether this replica serves requests: it leads, and has taken up all there is; 503 where it does not."""
    platform = call.platform
    leader = platform.lease.holder if platform.lease.is_held else platform.lease.waits_for
    found = Ready(
        ready=platform.leads,
        replica=short_name(platform.lease.holder),
        leader=None if leader is None else short_name(leader),
        msg="" if platform.leads else render(LeaseLost().message, call.reader),
    )
    headers = {} if found.ready else {"Retry-After": "2"}
    return Reply(answers.encode(found), status=200 if found.ready else 503, headers=headers)


async def openapi_json(call: Call) -> Reply:
    """Give this document."""
    return Reply(call.service.document())


ROUTES = (
    Route("GET", "/auth", auth, "Whose token this is", Relation.ANYBODY, reply=str),
    Route("GET", "/session", session, "Who is logged in", Relation.ANYBODY, reply=Session),
    Route("GET", "/health", health, "The service is alive", Relation.PUBLIC, reply=Health),
    Route("GET", "/ready", ready, "This replica serves requests", Relation.PUBLIC, reply=Ready),
    Route("GET", "/openapi.json", openapi_json, "This document", Relation.PUBLIC, reply=dict),
)
