"""The provider's word that one of its sessions has ended: OpenID Connect's back-channel logout.

`POST /hub/api/mlp/backchannel-logout` with a `logout_token` as a form, by anybody: it is the token that is believed, once.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

import jwt
from jupyterhub.apihandlers.base import APIHandler

from mlp_hub.hub_integration.pages.language import said
from mlp_hub.hub_integration.providers.protocols.discovery import Document
from mlp_hub.hub_integration.providers.protocols.id_token import KeySource, TimeInvalidError, verified
from mlp_hub.hub_integration.providers.protocols.provider import AuthState, TokenRefused
from mlp_hub.hub_integration.providers.protocols.provider_client import ProviderAway
from mlp_hub.hub_integration.providers.protocols.tokens import KeptLogin
from mlp_hub.hub_integration.providers.records import identities, provider_sessions, used_tokens
from mlp_hub.hub_integration.providers.sync.refresh import Refresher
from mlp_language.message import Message, msg, to_data

EVENT = "http://schemas.openid.net/event/backchannel-logout"
"""Given: event that a logout token contains."""
TYPES = ("logout+jwt", "jwt")
"""Given: type that a logout token has, where it has one."""
TOKEN_MAX = 64 << 10
"""Safety: characters of a logout token; a longer one is none."""
NAME_MAX = 255
"""Safety: characters of a subject, a session and a token's own name: bounds what is remembered."""
LONGEST_S = 600.0
"""Safety: seconds that a logout token is taken after it was made, whatever it says itself: bounds what is remembered of them."""
USED_MAX = 100_000
"""Safety: tokens that are remembered as used; above this number none is accepted until the oldest expire."""


@dataclass(frozen=True, slots=True)
class SessionEnd:
    """Content of a logout token: the user, or the session, that has ended; one of the two can be empty."""

    issuer: str
    subject: str
    session: str
    name: str
    over_at: float


def take(db: Any, logout: SessionEnd, now: float) -> None:
    """Note a logout token as taken; raise TokenRefused where it was before, also by the hub that ran before this one."""
    try:
        fresh = used_tokens.take(db, "logout", logout.name, over=logout.over_at, now=now, most=USED_MAX)
    except used_tokens.TooManyTakenError:
        raise TokenRefused(_none("too many at once")) from None
    if not fresh:
        raise TokenRefused(msg("the provider's logout token was already used"))


async def check(
    token: str, document: Document, keys: KeySource, *, audience: str, now: float, skew_s: float
) -> SessionEnd:
    """Return what a logout token says; raise TokenRefused, or ProviderAway."""
    if not 0 < len(token) <= TOKEN_MAX:
        raise TokenRefused(_none("there is no token"))
    try:
        found = await verified(
            token, document, keys, audience=audience, required=("iss", "aud", "iat", "jti", "events")
        )
    except jwt.InvalidAlgorithmError:
        raise TokenRefused(_none("it is signed in another way than the provider's")) from None
    except jwt.PyJWKClientError:
        raise TokenRefused(_none("it is signed with a key that the provider does not have")) from None
    except TimeInvalidError as error:
        raise TokenRefused(_none(f"its {error} is no time")) from None
    except jwt.PyJWTError as error:
        raise TokenRefused(_none(f"{type(error).__name__}: {error}"[:200])) from None
    if str(found["header"].get("typ", TYPES[0])).lower() not in TYPES:
        raise TokenRefused(_none("it is a token for something else"))
    return _said(found["payload"], now, skew_s)


def _said(claims: dict[str, Any], now: float, skew_s: float) -> SessionEnd:
    events = claims["events"]
    if not isinstance(events, dict) or not isinstance(events.get(EVENT), dict):
        raise TokenRefused(_none("it tells of no logout"))
    if "nonce" in claims:  # an ID token must not pass for it
        raise TokenRefused(_none("it is a token of a login"))
    made = claims["iat"]
    over = min(claims.get("exp", made + LONGEST_S), made + LONGEST_S) + skew_s
    if not made <= now + skew_s:
        raise TokenRefused(_none("it is of a time to come"))
    if not now < over:
        raise TokenRefused(_none("it is over"))
    subject, session, name = (claims.get(claim, "") for claim in ("sub", "sid", "jti"))
    for value in (subject, session, name):
        if not isinstance(value, str) or len(value) > NAME_MAX or not value.isprintable():
            raise TokenRefused(_none("it names nobody"))
    if not name or not (subject or session):
        raise TokenRefused(_none("it names nobody"))
    return SessionEnd(str(claims["iss"]), subject, session, name, over)


def _none(why: str) -> Message:
    return msg("the provider's logout token is not valid: {why}", why=why)


class LogoutHandler(APIHandler):  # type: ignore[misc]  # jupyterhub is untyped
    """Takes logout tokens."""

    def initialize(self, provider: Any, refresher: Refresher, *, audience: str, skew_s: float) -> None:
        """Take whom to ask for keys, and who ends logins."""
        self._provider, self._refresher = provider, refresher
        self._audience, self._skew_s = audience, skew_s

    def check_xsrf_cookie(self) -> None:
        """Let it be: no browser's cookie is worth anything here."""

    async def prepare(self) -> None:
        """Ask for nobody: the token is what counts."""

    async def post(self) -> None:
        """End the logins of the token's user; an unknown user, or one with a newer login, is not an error."""
        self.set_header("Cache-Control", "no-store")
        try:
            now = time.time()
            logout = await check(
                self.get_body_argument("logout_token", ""),
                await self._provider.discovery.document(),
                self._provider.keys,
                audience=self._audience,
                now=now,
                skew_s=self._skew_s,
            )
            take(self.db, logout, now)
        except TokenRefused as refused:
            self._refuse(400, refused.message)
            return
        except ProviderAway as away:
            self._refuse(503, away.message)
            return
        for name in self._names(logout):
            if (state := await self._asked_by(name, logout.session)) is not None:
                if logout.session and state.get("session"):
                    await self._refresher.end_session(name, state)
                else:
                    await self._refresher.end(name, "session")
            elif logout.session and (user := self.find_user(name)) is not None:
                provider_sessions.end_browsers(
                    self.db, user.orm_user, logout.session
                )  # of an earlier login than their last
        self.finish()

    def _names(self, logout: SessionEnd) -> list[str]:
        """Return whom it is about; a token may name a session alone."""
        if not logout.subject:
            return provider_sessions.names_of(self.db, logout.session)
        person = identities.find(self.db, self._provider.issuer, logout.subject)
        return [] if person is None else [str(person.name)]

    async def _asked_by(self, name: str, session: str) -> AuthState | None:
        """Return the login by which a person is asked about where it is of this session, as far as anybody says which it is."""
        user = self.find_user(name)
        state: AuthState | None = None if user is None else await user.get_auth_state()
        kept = KeptLogin.from_state(state)
        mine = kept is not None and (not session or not kept.session or session == kept.session)
        return state if mine else None

    def _refuse(self, status: int, text: Message) -> None:
        self.set_status(status)
        self.finish(
            json.dumps(
                {"error": "invalid_request", "error_description": said(self, text), "detail": to_data(text)}
            )
        )
