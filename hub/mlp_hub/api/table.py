"""The table of all routes."""

from __future__ import annotations

from mlp_hub.api.resources import (
    accounting,
    announcements,
    app_gate,
    apps,
    audit,
    bookings,
    cluster,
    datasets,
    environments,
    identity,
    jobs,
    metrics,
    models,
    monitoring,
    notices,
    people,
    runs,
    runtimes,
    secrets,
    services,
    session,
    streams,
    sweeps,
    teams,
    tenants,
    tokens,
    users,
    whatif,
)
from mlp_hub.api.routes import Route, RouteTable

_MODULES = (
    session,
    users,
    people,
    tokens,
    identity,
    services,
    tenants,
    teams,
    bookings,
    runtimes,
    jobs,
    runs,
    sweeps,
    metrics,
    streams,
    environments,
    models,
    apps,
    datasets,
    secrets,
    notices,
    announcements,
    app_gate,
    cluster,
    monitoring,
    audit,
    accounting,
    whatif,
)


def all_routes() -> tuple[Route, ...]:
    """List all routes in the order of the documentation."""
    return tuple(route for module in _MODULES for route in module.ROUTES)


def make_table() -> RouteTable:
    """Make the table that finds routes."""
    return RouteTable(all_routes())
