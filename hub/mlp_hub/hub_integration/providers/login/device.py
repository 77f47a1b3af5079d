"""`mlp login` by the provider's device flow (RFC 8628): its data for a terminal, and the exchange.

    GET  /hub/api/mlp/cli-login                                          200 {"device": null, or where and as which client}
    POST /hub/api/mlp/device-token {"access_token", "id_token", "machine", "days"}    201 {"token", "user", "expires_in"}

The terminal asks the provider itself, as a separate public client. The hub sees the tokens at the
end, and accepts only those of that client. A person who was never here logs in by a browser first,
because names are given out there.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import jwt
from jupyterhub.handlers import default_handlers

from mlp_hub.hub_integration.providers.protocols import kinds
from mlp_hub.hub_integration.providers.protocols.discovery import Document
from mlp_hub.hub_integration.providers.protocols.oidc import OidcProvider
from mlp_hub.hub_integration.providers.protocols.provider import (
    ProviderIdentity,
    ProviderUnreachable,
    TokenRefused,
)
from mlp_hub.hub_integration.providers.protocols.provider_client import ProviderAway, for_people
from mlp_hub.hub_integration.providers.records import identities, used_tokens
from mlp_hub.hub_integration.tokens.cli_codes import Wrong, machine_and_days
from mlp_hub.hub_integration.tokens.cli_login import MAY_NOT, LoginWays, TokenGiver
from mlp_hub.settings import Settings
from mlp_language.message import msg

log = logging.getLogger(__name__)
EXCHANGES = r"/api/mlp/device-token"
FRESH_S = 600.0
"""Safety: seconds after which an ID token of the device flow is taken no more: bounds the use of one that leaked."""
REMEMBERED = 10_000
"""Safety: ID tokens that were exchanged and are remembered; with more of them at once none is taken: bounds memory."""


def take(db: Any, id_token: str, now: float, skew_s: float = 0.0) -> None:
    """Take a token whose signature was checked, which gives one token of ours; raise Wrong where it is old, or was taken before."""
    made = float(jwt.decode(id_token, options={"verify_signature": False})["iat"])
    if now - made > FRESH_S + skew_s:
        raise Wrong(msg("this login is too old: run `mlp login` again"))
    # of the part that is signed: what stands behind it can be written in more than one way
    signed, over = id_token.rpartition(".")[0], made + FRESH_S + 2 * skew_s + 1
    try:
        fresh = used_tokens.take(db, "device", signed, over=over, now=now, most=REMEMBERED)
    except used_tokens.TooManyTakenError:
        fresh = False
    if not fresh:
        raise Wrong(msg("this login was used: run `mlp login` again"))


class DeviceFlow:
    """The device flow of the provider, as the public client that `login_cli_client_id` names."""

    def __init__(
        self, settings: Settings, provider: OidcProvider, clock: Callable[[], float] = time.time
    ) -> None:
        """`clock` gives seconds since the epoch."""
        self.client_id = settings.login_cli_client_id
        self.skew_s = settings.login_clock_skew_s
        self.provider = provider
        self.clock = clock

    async def device_endpoints(self) -> dict[str, str] | None:
        """Return what a terminal needs to begin; None where the provider has no such flow, or does not answer."""
        try:
            document = await self.provider.discovery.document()
        except ProviderAway:
            return None
        where = begins_at(document)
        if not where:
            return None
        return {
            "title": self.provider.title,
            "client_id": self.client_id,
            "scope": "openid profile email",
            "begin": where,
            "token": document.url("token_endpoint"),
        }

    async def whose(self, db: Any, access_token: str, id_token: str) -> ProviderIdentity:
        """Return whose tokens these are, once; raise Wrong where they are not this client's, or nobody's any more."""
        try:
            found = await self.provider.identity_of(access_token, id_token, client_id=self.client_id)
        except TokenRefused as refused:
            raise Wrong(refused.message) from refused
        if isinstance(found, ProviderUnreachable):
            log.warning("No login of a terminal: %s", found.message)
            raise Wrong(for_people(self.provider.title, ProviderAway(found.message, found.misconfigured)))
        if not isinstance(found, ProviderIdentity):
            raise Wrong(msg("{title} no longer knows this login", title=self.provider.title))
        take(db, id_token, self.clock(), self.skew_s)
        return found


def begins_at(document: Document) -> str:
    """Return the address where the flow begins.

    It is empty where the provider has none, or names a place that is less safe than its others.
    """
    where, token = document.url("device_authorization_endpoint"), document.url("token_endpoint")
    try:
        here, there = urlsplit(where), urlsplit(token)
        same = here.hostname == there.hostname and here.port == there.port
    except ValueError:
        return ""
    # where tokens are had is checked with the document: in the clear only on this machine itself
    return where if here.scheme == "https" or (here.scheme == there.scheme and same) else ""


class DeviceExchange(TokenGiver):
    """Where the provider's tokens become one of ours."""

    flow: DeviceFlow

    async def granted(self, given: Callable[[str], str]) -> tuple[Any, str, int]:
        """Return who logged in at the provider, if they may here."""
        machine, days = machine_and_days(given)
        identity = await self.flow.whose(self.db, given("access_token"), given("id_token"))
        known = identities.find(self.db, identity.issuer, identity.subject)
        if known is None:
            raise Wrong(
                msg(
                    "your account of {title} is not known here yet: log in once in a browser",
                    title=self.flow.provider.title,
                )
            )
        user = self.find_user(str(known.name))
        # what the provider has just said is newer than anything the hub would go by, and a login that ended here is over
        if user is None or not await self.authenticator.vouched_for(user, identity):
            raise Wrong(MAY_NOT)
        return user, machine, days


def install(settings: Settings) -> None:
    """Add the routes below the hub's prefix; none where the provider does not speak OpenID Connect."""
    provider = kinds.provider_of(settings)
    if not isinstance(provider, OidcProvider):
        return
    LoginWays.flow = DeviceExchange.flow = DeviceFlow(settings, provider)
    default_handlers.append((EXCHANGES, DeviceExchange))
