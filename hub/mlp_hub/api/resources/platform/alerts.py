"""Alerts by the service's own evaluation, and silences of them: of the platform, and of a tenant for its administrators."""

from __future__ import annotations

from mlp_api.platform.alerts import AlertBoard, AlertSilence, SilenceCreate, TeamSilenceCreate
from mlp_hub.api.auth.scopes import CLUSTER_READ, CLUSTER_WRITE, TENANTS_READ, TENANTS_WRITE
from mlp_hub.api.edge.call import Call
from mlp_hub.api.routes import Relation, Route


async def every(call: Call) -> AlertBoard:
    """Return all alerts: those that fire, that are pending, and that were over lately, with all silences and rules."""
    return await call.platform.alerts.shown()


async def of_tenant(call: Call) -> AlertBoard:
    """Return the alerts of a tenant, and the silences and rules that concern it."""
    return await call.platform.alerts.shown(call.params["tenant"])


async def silence(call: Call) -> AlertSilence:
    """Silence alerts for a while, with a reason. They cause no notices meanwhile; the page still has them."""
    return await call.platform.alerts.silences.make(
        call.body, tenant=call.body.tenant, of_team=False, actor=call.principal.name
    )


async def silence_of_tenant(call: Call) -> AlertSilence:
    """Silence alerts of a tenant. A silence of its administrators keeps nothing from those of the platform."""
    of_team = not call.principal.is_platform_admin
    return await call.platform.alerts.silences.make(
        call.body, tenant=call.params["tenant"], of_team=of_team, actor=call.principal.name
    )


async def end(call: Call) -> AlertSilence:
    """End a silence early, also one of a tenant's administrators."""
    return await call.platform.alerts.silences.end(call.params["silence"], actor=call.principal.name)


async def end_of_tenant(call: Call) -> AlertSilence:
    """End a silence of this tenant early. Its administrators end only their own ones."""
    of_any = call.principal.is_platform_admin
    return await call.platform.alerts.silences.end(
        call.params["silence"], tenant=call.params["tenant"], of_any=of_any, actor=call.principal.name
    )


P, A = Relation.PLATFORM, Relation.TENANT_ADMIN
_OF = "/tenants/{tenant}"

ROUTES = (
    Route("GET", "/alerts", every, "All alerts", P, CLUSTER_READ, reply=AlertBoard),
    Route("GET", f"{_OF}/alerts", of_tenant, "A tenant's alerts", A, TENANTS_READ, reply=AlertBoard),
    Route(
        "POST",
        "/silences",
        silence,
        "Silence alerts",
        P,
        CLUSTER_WRITE,
        body=SilenceCreate,
        reply=AlertSilence,
        status=201,
        idempotent=True,
        bucket="change",
    ),
    Route(
        "DELETE",
        "/silences/{silence}",
        end,
        "End a silence",
        P,
        CLUSTER_WRITE,
        reply=AlertSilence,
        bucket="change",
    ),
    Route(
        "POST",
        f"{_OF}/silences",
        silence_of_tenant,
        "Silence a tenant's alerts",
        A,
        TENANTS_WRITE,
        body=TeamSilenceCreate,
        reply=AlertSilence,
        status=201,
        idempotent=True,
        bucket="change",
    ),
    Route(
        "DELETE",
        f"{_OF}/silences/{{silence}}",
        end_of_tenant,
        "End a silence of a tenant",
        A,
        TENANTS_WRITE,
        reply=AlertSilence,
        bucket="change",
    ),
)
