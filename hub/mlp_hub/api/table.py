"""The table of all routes."""

from __future__ import annotations

from mlp_hub.api.resources.accounts import identity, idle_servers, notices, people, session, tokens, users
from mlp_hub.api.resources.apps import app_gate, apps
from mlp_hub.api.resources.jobs import idle_jobs, jobs, metrics, runs, runtimes, streams, sweeps
from mlp_hub.api.resources.platform import (
    accounting,
    alerts,
    announcements,
    audit,
    cluster,
    monitoring,
    over_time,
    whatif,
)
from mlp_hub.api.resources.stored import datasets, environments, models, secrets
from mlp_hub.api.resources.teams import bookings, services, teams, tenants
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
    idle_servers,
    idle_jobs,
    alerts,
    announcements,
    app_gate,
    cluster,
    monitoring,
    over_time,
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
