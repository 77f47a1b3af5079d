"""Puts the HTTP side together around a platform."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tornado.httpserver import HTTPServer
from tornado.web import Application

from mlp_hub.api.auth import Authenticator
from mlp_hub.api.call import Config, Service
from mlp_hub.api.connections import Gate, GuardedServer
from mlp_hub.api.exchange import BODY_TIMEOUT_S
from mlp_hub.api.hubclient import HubClient
from mlp_hub.api.limits import RATES, Limiter, Rate
from mlp_hub.api.patience import Patience
from mlp_hub.api.principal import Principal
from mlp_hub.api.replay import Answers
from mlp_hub.api.server import Front
from mlp_hub.api.sessions import COOKIE, Sessions
from mlp_hub.api.table import make_table
from mlp_hub.service.applications import Applications

if TYPE_CHECKING:
    from mlp_hub.service.platform import Platform

HEADER_BYTES = 32 * 1024
PAGE_BODY_BYTES = 64 * 1024
IDLE_S = 300.0
TENANTS_IDLE_S = 60.0
GROUPS_S = 30.0
GROUPS_KEPT = 50_000


def make_service(
    platform: Platform,
    hub: HubClient,
    config: Config,
    sessions_dir: Path,
    *,
    cookie: str = COOKIE,
    rates: Mapping[str, Rate] = RATES,
    clock: Callable[[], float] = time.time,
    monotonic: Callable[[], float] = time.monotonic,
) -> Service:
    """Make everything handlers work with."""
    platform.strays.end = hub.stop_server
    sessions = Sessions(sessions_dir, clock, cookie)
    limiter = Limiter(monotonic, rates)
    groups: dict[str, tuple[tuple[str, ...], float]] = {}

    async def seen(principal: Principal) -> None:
        # the hub's groups decide; looked at again now and then, for a tenant named like one may be new
        known, until = groups.get(principal.name, ((), 0.0))
        if known == principal.groups and monotonic() < until:
            return
        await platform.users.ensure(principal.name)
        await platform.tenants.sync_groups(principal.name, principal.groups)
        if len(groups) > GROUPS_KEPT:
            groups.clear()
        groups[principal.name] = (principal.groups, monotonic() + GROUPS_S)

    auth = Authenticator(
        hub,
        platform.jobs.job_of_token,
        sessions,
        monotonic,
        seen=seen,
        allow_lookup=lambda address: limiter.take("unknown-token", address),
    )
    return Service(
        platform,
        hub,
        auth,
        sessions,
        limiter,
        config,
        Answers(),
        Applications(platform.db, platform.tenants),
        clock,
    )


def make_server(
    service: Service, application: Application, *, behind_proxy: bool, gate: Gate | None = None
) -> HTTPServer:
    """Make the server of one listening socket; `gate` bounds the connections of a socket that tenants reach."""
    patience = Patience()
    front = Front(service, make_table(), application, patience, behind_proxy=behind_proxy)
    return GuardedServer(
        front,
        gate=gate,
        patience=patience,
        max_header_size=HEADER_BYTES,
        max_body_size=PAGE_BODY_BYTES,  # routes of the API have limits of their own
        body_timeout=BODY_TIMEOUT_S,
        idle_connection_timeout=IDLE_S if behind_proxy else TENANTS_IDLE_S,
        xheaders=False,
    )
