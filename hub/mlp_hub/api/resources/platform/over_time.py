"""Use, waits, failures and answers of apps over time, of a tenant and of the cluster."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from mlp_api.platform.over_time import OverTime
from mlp_hub.api.auth.scopes import CLUSTER_READ, TENANTS_READ
from mlp_hub.api.edge.call import Call
from mlp_hub.api.routes import Relation, Route


class OverTimeQuery(Struct, forbid_unknown_fields=True):
    """Which span until now, and the seconds of its steps: without them a usual number for the span."""

    span: Literal["hour", "day", "week", "month"] = "hour"
    step: Annotated[int, Meta(ge=1, le=2_592_000)] | None = None


async def of_tenant(call: Call) -> OverTime:
    """Show a tenant's use against its quota, waits, queue, failures and answers of apps by step, as a member."""
    query: OverTimeQuery = call.query
    return await call.platform.over_time.of_tenant(call.params["tenant"], query.span, query.step)


async def of_cluster(call: Call) -> OverTime:
    """Show the same of all tenants together, against the capacity of the nodes, as a platform admin."""
    query: OverTimeQuery = call.query
    return await call.platform.over_time.of_cluster(query.span, query.step)


ROUTES = (
    Route(
        "GET",
        "/tenants/{tenant}/over-time",
        of_tenant,
        "A tenant over time",
        Relation.MEMBER,
        TENANTS_READ,
        query=OverTimeQuery,
        reply=OverTime,
    ),
    Route(
        "GET",
        "/over-time",
        of_cluster,
        "The cluster over time",
        Relation.PLATFORM,
        CLUSTER_READ,
        query=OverTimeQuery,
        reply=OverTime,
    ),
)
