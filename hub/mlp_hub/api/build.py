"""Puts the HTTP side together around a platform."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from tornado.httpserver import HTTPServer
from tornado.web import Application

from mlp_hub.api.auth.app_visits import AppVisits
from mlp_hub.api.auth.authentication import Authenticator
from mlp_hub.api.auth.gatekeeper import Gatekeeper
from mlp_hub.api.auth.principal import CallerKind, Principal
from mlp_hub.api.auth.sessions import COOKIE, Sessions
from mlp_hub.api.auth.token_uses import TokenUses
from mlp_hub.api.edge import answers
from mlp_hub.api.edge.call import Config, Service
from mlp_hub.api.edge.connections import ConnectionGate, GuardedServer, network_of
from mlp_hub.api.edge.exchange import BODY_TIMEOUT_S
from mlp_hub.api.edge.limits import RATES, Limiter, Rate
from mlp_hub.api.edge.patience import Patience
from mlp_hub.api.edge.refusals import RefusalLog
from mlp_hub.api.edge.replay import RecentAnswers
from mlp_hub.api.edge.server import Front
from mlp_hub.api.edge.sockets import close_all, open_sockets
from mlp_hub.api.figures import ProxyFigures
from mlp_hub.api.hubclient import HubClient
from mlp_hub.api.table import all_routes, make_table
from mlp_hub.domain.errors import Unavailable
from mlp_hub.domain.resources import HOUR_S
from mlp_hub.service.config import DAY_S
from mlp_hub.service.monitoring.table import WEBSOCKETS
from mlp_hub.service.tenants.requests.signups import Applications

if TYPE_CHECKING:
    from mlp_hub.service.platform import Platform

HEADER_BYTES = 64 * 1024
"""Limit of requests: bytes of the headers of a request."""
PAGE_BODY_BYTES = 64 * 1024
"""Safety: bytes of a body that goes to a page; the API's routes have their own limits."""
IDLE_S = 300.0
"""Safety: seconds that an idle connection is kept behind the proxy: bounds how many are open."""
TENANTS_IDLE_S = 60.0
"""Safety: seconds that an idle connection is kept where tenants connect themselves: bounds how many one can hold open."""
ASKED_AT_ONCE = 8
"""Tuning: people of whom the hub is asked at one time: sooner answered, or in the way of other questions to the hub."""
GROUPS_S = 30.0
"""Tuning: seconds that a user's groups count as known: how soon a change is seen, for fewer writes."""
GROUPS_KEPT = 50_000
"""Safety: users whose groups are remembered; beyond, all are forgotten: bounds memory."""


def _say_who_administrates(platform: Platform, hub: HubClient) -> None:
    """Let notices about the platform ask the hub for its administrators."""

    async def admins_of(names: Sequence[str]) -> list[str]:
        found: list[str] = []
        for at in range(0, len(names), ASKED_AT_ONCE):
            some = names[at : at + ASKED_AT_ONCE]
            people = await asyncio.gather(*map(hub.person, some))
            found += [
                name for name, person in zip(some, people, strict=True) if person is not None and person.admin
            ]
        return found

    platform.alerts.platform_admins = admins_of
    platform.budgets.platform_admins = admins_of


def make_service(
    platform: Platform,
    hub: HubClient,
    config: Config,
    *,
    cookie: str = COOKIE,
    figures: ProxyFigures | None = None,
    rates: Mapping[str, Rate] = RATES,
    clock: Callable[[], float] = time.time,
    monotonic: Callable[[], float] = time.monotonic,
) -> Service:
    """Make everything handlers work with."""
    platform.former_members_servers.end = hub.stop_server
    platform.idle_servers.end = hub.stop_server
    platform.disk.end_server = hub.stop_server
    platform.drains.end_server = hub.stop_server
    platform.offboarding.shut_out = hub.deauthorize
    platform.problems.add(hub.problems)

    platform.on_lost.append(close_all)
    _say_who_administrates(platform, hub)
    platform.monitoring.version = config.version
    platform.monitoring.sources.append(lambda: [(WEBSOCKETS, [((), float(open_sockets()))])])
    sessions = Sessions(platform.db, clock, cookie, platform.policy.limits.session_days * DAY_S)
    uses = TokenUses(platform.db, clock, monotonic)
    limiter = Limiter(monotonic, rates)
    groups: dict[str, tuple[tuple[str, ...], float]] = {}

    def used(principal: Principal, key: bytes, address: str) -> None:
        if platform.leads:
            uses.note(principal, key, address)

    async def seen(principal: Principal) -> None:
        if not platform.leads:
            return  # a replica on standby identifies scrapers, and stores nothing of them
        # the hub's groups decide; looked at again now and then, for a tenant named like one may be new
        known, until = groups.get(principal.name, ((), 0.0))
        if known == principal.groups and monotonic() < until:
            return
        await platform.users.ensure(principal.name)
        await platform.tenants.sync_groups(principal.name, principal.groups)
        if len(groups) > GROUPS_KEPT:
            groups.clear()
        groups[principal.name] = (principal.groups, monotonic() + GROUPS_S)

    async def stands(principal: Principal) -> bool:
        """Take a token of a tenant's account for no other kind of caller, and end one that was rotated out."""
        taken = principal.kind is CallerKind.USER and await platform.service_accounts.stands(
            principal.name, principal.token_id
        )
        if not taken and principal.kind is CallerKind.USER and principal.token_id:
            with contextlib.suppress(Unavailable):
                await hub.end_token(principal.name, principal.token_id)
        return taken

    auth = Authenticator(
        hub,
        platform.jobs.job_of_token,
        sessions,
        monotonic,
        seen=seen,
        allow_lookup=lambda address: limiter.take_token("unknown-token", network_of(address)),
        used=used,
        stands=stands,
    )
    return Service(
        platform,
        hub,
        auth,
        sessions,
        limiter,
        config,
        RecentAnswers(),
        Applications(platform.db, platform.tenants),
        uses,
        AppVisits(platform.db, sessions, clock, platform.policy.limits.app_visit_hours * HOUR_S),
        functools.cache(lambda: _document(config.version)),
        RefusalLog(monotonic),
        figures,
        clock,
    )


def _document(version: str) -> bytes:
    # made at the first request: most services never get one, and modules and schemas stay in memory
    from mlp_hub.api import openapi  # noqa: PLC0415

    return answers.encode(openapi.document(all_routes(), version))


def make_server(
    service: Service,
    application: Application,
    *,
    behind_proxy: bool,
    gate: ConnectionGate | None = None,
    only: Collection[str] = (),
) -> HTTPServer:
    """Make the server of one listening socket.

    `gate` says whose connections it serves, and how many; `only` which paths it serves, where it does not serve all.
    """
    patience = Patience()
    front = Front(
        service,
        Gatekeeper(service, make_table()),
        application,
        patience,
        behind_proxy=behind_proxy,
        only=only,
    )
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
