"""What-if: scenarios, the present and recorded history, run in virtual time."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from mlp_api.platform.whatif import Simulated, SimulateRequest
from mlp_hub.api.auth.scopes import CLUSTER_READ
from mlp_hub.api.edge.call import Call
from mlp_hub.api.routes import Relation, Route

SCENARIO_LIMIT = 4 * 1024 * 1024
"""Limit of requests: bytes of the body of a request with a scenario."""


class SimulateQuery(Struct, forbid_unknown_fields=True):
    """Extras of the answer in addition to the figures: events line by line, and pictures in SVG."""

    lines: bool = False
    chart: bool = False


class ExportQuery(Struct, forbid_unknown_fields=True):
    """Source of the export: the present, or the jobs that were submitted in the last `days`."""

    source: Literal["now", "history"] = "now"
    days: Annotated[float, Meta(gt=0, le=3650)] = 7.0


async def simulate(call: Call) -> Simulated:
    """Run a scenario, or the present or recorded history with other quotas, nodes or policies. Changes nothing.

    The same body gives the same figures while the hub's state is the same. One run at a time for each admin; a run of too
    many jobs, or one that takes too long, is refused. An Idempotency-Key has no effect here.
    """
    query: SimulateQuery = call.query or SimulateQuery()
    return await call.platform.whatif.simulate(
        call.principal.name, call.body, lines=query.lines, chart=query.chart
    )


async def export(call: Call) -> dict[str, Any]:
    """Give the present, or the last days, as a scenario to edit and run elsewhere; one at a time for each admin.

    `remarks`, `begin`, the instant that its seconds count from, and `notes`, one for each job, are not part of that format.
    """
    query: ExportQuery = call.query or ExportQuery()
    return await call.platform.whatif.export(
        call.principal.name, None if query.source == "now" else query.days
    )


ROUTES = (
    Route(
        "POST",
        "/simulate",
        simulate,
        "What if",
        Relation.PLATFORM,
        CLUSTER_READ,
        body=SimulateRequest,
        query=SimulateQuery,
        reply=Simulated,
        body_limit=SCENARIO_LIMIT,
    ),
    Route(
        "GET",
        "/simulate",
        export,
        "The hub as a scenario",
        Relation.PLATFORM,
        CLUSTER_READ,
        query=ExportQuery,
        reply=dict,
    ),
)
