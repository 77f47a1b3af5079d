"""Runtimes: the platform's own, and those that tenants register."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from mlp_api.jobs.runtimes import RuntimeInfo, RuntimeUpdate
from mlp_hub.api.auth.principal import CallerKind
from mlp_hub.api.auth.scopes import TENANTS_READ, TENANTS_WRITE
from mlp_hub.api.edge.call import Call
from mlp_hub.api.routes import Relation, Route
from mlp_hub.domain.runtime.runtime import RuntimeState
from mlp_language.message import Message
from mlp_language.render import Reader, render


async def runtimes(call: Call) -> Sequence[RuntimeInfo]:
    """List the runtimes that the caller's jobs may have; for a platform admin all of all tenants, in whatever state."""
    who = call.principal
    user = who.name if who.kind is CallerKind.USER else None
    found = await call.platform.runtimes.offered(user, everything=who.is_platform_admin)
    return [_to_wire(one, call.reader) for one in found]


def _to_wire(one: RuntimeInfo, reader: Reader) -> RuntimeInfo:
    if one.tenant is not None:  # what people wrote stays as it is
        return one
    return msgspec.structs.replace(one, description=render(Message(one.description), reader))


async def list_(call: Call) -> Sequence[RuntimeInfo]:
    """List a tenant's own runtimes, in whatever state."""
    return await call.platform.runtimes.list(call.params["tenant"])


async def put(call: Call) -> RuntimeInfo:
    """Register a runtime for a tenant, or change one: it then waits for review again, where that is asked for."""
    return await call.platform.runtimes.store_runtime(
        call.params["tenant"],
        call.params["runtime"],
        call.body,
        actor=call.principal.name,
        reviewer=call.principal.is_platform_admin,
    )


async def approve(call: Call) -> RuntimeInfo:
    """Let jobs of the tenant use a runtime."""
    return await _set_state(call, RuntimeState.APPROVED)


async def disable(call: Call) -> RuntimeInfo:
    """Let no new job use a runtime, until it is approved again."""
    return await _set_state(call, RuntimeState.DISABLED)


async def _set_state(call: Call, state: RuntimeState) -> RuntimeInfo:
    return await call.platform.runtimes.set_state(
        call.params["tenant"], call.params["runtime"], state, actor=call.principal.name
    )


async def remove(call: Call) -> RuntimeInfo:
    """Remove a runtime; jobs that were submitted with it keep it."""
    return await call.platform.runtimes.remove(
        call.params["tenant"],
        call.params["runtime"],
        actor=call.principal.name,
        reviewer=call.principal.is_platform_admin,
    )


_ALL = "/tenants/{tenant}/runtimes"
_ONE = f"{_ALL}/{{runtime}}"
P, A, W = Relation.PLATFORM, Relation.TENANT_ADMIN, TENANTS_WRITE

ROUTES = (
    Route("GET", "/runtimes", runtimes, "List runtimes", Relation.ANYBODY, reply=list[RuntimeInfo]),
    Route("GET", _ALL, list_, "A tenant's runtimes", Relation.MEMBER, TENANTS_READ, reply=list[RuntimeInfo]),
    Route(
        "PUT",
        _ONE,
        put,
        "Register or change a runtime",
        A,
        W,
        body=RuntimeUpdate,
        reply=RuntimeInfo,
        bucket="change",
    ),
    Route("POST", f"{_ONE}:approve", approve, "Approve a runtime", P, W, reply=RuntimeInfo),
    Route("POST", f"{_ONE}:disable", disable, "Disable a runtime", P, W, reply=RuntimeInfo),
    Route("DELETE", _ONE, remove, "Remove a runtime", A, W, reply=RuntimeInfo, bucket="change"),
)
