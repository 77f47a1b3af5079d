"""Idle notebook servers: reports of use, countdowns, what keeps a server, and a team's policy."""

from __future__ import annotations

from mlp_api.accounts.idle_servers import (
    IdleServerPolicySet,
    ServerCountdown,
    ServerKeep,
    ServerUseReport,
    TenantIdlePolicy,
)
from mlp_hub.api.auth.scopes import JOBS_READ, JOBS_WRITE, TENANTS_READ, TENANTS_WRITE
from mlp_hub.api.edge.call import Call
from mlp_hub.api.routes import Relation, Route
from mlp_hub.domain.workload.idle_policy import IdleKind


async def countdowns(call: Call) -> list[ServerCountdown]:
    """List a user's notebook servers that the policy of their team counts."""
    return call.platform.idle_servers.of_user(call.user)


async def report(call: Call) -> ServerCountdown:
    """Take the report of a notebook server, and return its countdown."""
    return call.platform.idle_servers.report(call.user, call.body)


async def keep(call: Call) -> ServerCountdown:
    """Keep a notebook server for some hours: its countdown stops."""
    return await call.platform.idle_servers.keep(call.user, call.body)


async def policy(call: Call) -> TenantIdlePolicy:
    """Return a tenant's policy for idle notebook servers."""
    return await call.platform.idle_policies.of_servers(call.params["tenant"])


async def set_policy(call: Call) -> TenantIdlePolicy:
    """Store a tenant's policy for idle notebook servers."""
    tenant, policies = call.params["tenant"], call.platform.idle_policies
    await policies.put(IdleKind.SERVER, tenant, call.body, actor=call.principal.name)
    return await policies.of_servers(tenant)


_OF, _POLICY = "/users/{user}/idle_servers", "/tenants/{tenant}/idle_policy"

ROUTES = (
    Route(
        "GET",
        _OF,
        countdowns,
        "Countdowns of idle notebook servers",
        Relation.SELF,
        JOBS_READ,
        reply=list[ServerCountdown],
    ),
    Route(
        "PUT",
        f"{_OF}:report",
        report,
        "Report the use of a notebook server",
        Relation.SELF,
        JOBS_WRITE,
        body=ServerUseReport,
        reply=ServerCountdown,
    ),
    Route(
        "PUT",
        f"{_OF}:keep",
        keep,
        "Keep an idle notebook server",
        Relation.SELF,
        JOBS_WRITE,
        body=ServerKeep,
        reply=ServerCountdown,
        bucket="change",
    ),
    Route(
        "GET",
        _POLICY,
        policy,
        "A tenant's policy for idle notebook servers",
        Relation.MEMBER,
        TENANTS_READ,
        reply=TenantIdlePolicy,
    ),
    Route(
        "PUT",
        _POLICY,
        set_policy,
        "Set a tenant's policy for idle notebook servers",
        Relation.TENANT_ADMIN,
        TENANTS_WRITE,
        body=IdleServerPolicySet,
        reply=TenantIdlePolicy,
        bucket="change",
    ),
)
