"""Metrics of the platform, for Prometheus."""

from __future__ import annotations

from mlp_hub.api.auth.scopes import METRICS_READ
from mlp_hub.api.edge.call import Call, Reply
from mlp_hub.api.routes import Relation, Route


async def scrape(call: Call) -> Reply:
    """Return all metrics of this replica, as text of Prometheus, or of OpenMetrics if `Accept` asks for it.

    A replica that does not lead answers too, without the metrics of the queue, tenants and nodes.
    """
    body, media = await call.platform.monitoring.scrape(call.accept)
    return Reply(body, media=media)


ROUTES = (
    Route(
        "GET",
        "/metrics",
        scrape,
        "Metrics of the platform",
        Relation.ANYBODY,
        METRICS_READ,
        reply=str,
        media="text/plain",
    ),
)
