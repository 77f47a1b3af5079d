"""Provider of OpenID Connect: Keycloak, or another one, by its discovery document."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from tornado.httputil import url_concat

from mlp_hub.hub_integration.providers.protocols import id_token
from mlp_hub.hub_integration.providers.protocols.claims import TEXT_MAX, Claims, text_of
from mlp_hub.hub_integration.providers.protocols.discovery import NOW_S, Discovery, Document, Keys
from mlp_hub.hub_integration.providers.protocols.provider import (
    AuthState,
    LoginEnded,
    LoginResult,
    PendingLogin,
    ProviderIdentity,
    ProviderUnreachable,
    TokenRefused,
)
from mlp_hub.hub_integration.providers.protocols.provider_client import (
    ProviderAnswer,
    ProviderAway,
    ProviderClient,
    RegisteredClient,
    client_refused,
)
from mlp_hub.hub_integration.providers.protocols.tokens import KeptLogin, asked_anew
from mlp_hub.settings import Settings
from mlp_language.message import msg

CLIENT_REFUSED = ("invalid_client", "unauthorized_client")
"""Given: errors of a token endpoint that are about the hub, not about the person (RFC 6749, 5.2)."""


class OidcProvider:
    """Asks a provider of OpenID Connect about people."""

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.time) -> None:
        self.issuer = settings.login_provider
        self.title = settings.login_name
        self._client = RegisteredClient(settings.login_client_id, settings.login_secret())
        self._scopes = " ".join(settings.login_scopes or settings.login_kind.scopes)
        self._skew_s = settings.login_clock_skew_s
        self._logs_out = settings.login_logout
        self._claims = Claims(settings)
        self._clock = clock
        self._asker = ProviderClient(self.title)
        self.discovery = Discovery(self.issuer, self.title, self._asker)
        self.keys = Keys(self.discovery, self.title, self._asker)

    # ------------------------------------------------------------- a browser's login

    async def login_url(self, pending: PendingLogin) -> str:
        """Return where a browser goes to log in, or raise ProviderAway: it would find nobody there."""
        document = await self.discovery.document(within_s=NOW_S)
        more = {"prompt": "login", "max_age": "0"} if pending.fresh else {}
        return str(
            url_concat(
                document.url("authorization_endpoint"),
                {
                    "response_type": "code",
                    "client_id": self._client.name,
                    "redirect_uri": pending.redirect_uri,
                    "scope": self._scopes,
                    "state": pending.state,
                    "nonce": pending.nonce,
                    "code_challenge": pending.challenge,
                    "code_challenge_method": "S256",
                    **more,
                },
            )
        )

    async def arrived(self, pending: PendingLogin, code: str, said_issuer: str) -> LoginResult:
        """Find out who came back from there with this code; raise TokenRefused or ProviderAway."""
        document = await self.discovery.document()
        if said_issuer != document.issuer and (said_issuer or document.says_issuer):
            raise TokenRefused(
                msg("This login was started at {title}, and ended elsewhere.", title=self.title)
            )
        answer = await self._token(
            document,
            {
                "grant_type": "authorization_code",
                "code": code,
                "redirect_uri": pending.redirect_uri,
                "code_verifier": pending.verifier,
            },
        )
        if answer.refused:
            if answer.object().get("error") in CLIENT_REFUSED:
                raise client_refused(self.title, self._client, _why(answer))
            raise TokenRefused(
                msg(
                    "{title} does not accept the code ({why}). Log in again.",
                    title=self.title,
                    why=_why(answer),
                )
            )
        kept, claims = await self._kept(document, answer, nonce=pending.nonce)
        entered = claims.get("auth_time")
        if pending.fresh and (entered is None or entered < pending.at - self._skew_s):
            raise TokenRefused(msg("{title} did not ask for the password again.", title=self.title))
        return LoginResult(kept.identity, kept.to_state(), None if entered is None else float(entered))

    async def logout_url(self, state: AuthState, back: str) -> str:
        """Return the address that logs a browser out there too; empty without such an address."""
        if not self._logs_out or (kept := KeptLogin.from_state(state)) is None:
            return ""
        try:
            url = (await self.discovery.document()).url("end_session_endpoint")
        except ProviderAway:
            return ""
        hint = {"id_token_hint": kept.id_token} if kept.id_token else {}
        query = {"client_id": self._client.name, "post_logout_redirect_uri": back, **hint}
        return str(url_concat(url, query)) if url else ""

    # --------------------------------------------------------------- how it is now

    async def refreshed(
        self, auth_state: AuthState
    ) -> tuple[ProviderIdentity, dict[str, Any]] | LoginEnded | ProviderUnreachable:
        """Ask for the person's present standing, and return the data to keep from now on."""
        return await asked_anew(self.issuer, auth_state, self._asked, self.discovery.document)

    async def _asked(self, kept: KeptLogin) -> KeptLogin | LoginEnded:
        document = await self.discovery.document()
        if document.url("userinfo_endpoint") and not (kept.groups_in_token and kept.refresh_token):
            userinfo = await self._userinfo(document, kept.access_token)
            if not userinfo.refused:
                return self._now(kept, {}, userinfo.object())
        return await self._renewed(document, kept)

    async def unreachable(self) -> ProviderUnreachable | None:
        """Look whether it is there; return why not."""
        try:
            await self.discovery.document(within_s=0)  # what was read before it went away shows nothing
        except ProviderAway as away:
            return ProviderUnreachable(away.message, away.misconfigured)
        return None

    async def identity_of(
        self, access_token: str, id_token: str, *, client_id: str
    ) -> ProviderIdentity | LoginEnded | ProviderUnreachable:
        """Check tokens that a client of ours was given, as a terminal's, and ask whose they are; or raise TokenRefused."""
        try:
            document = await self.discovery.document()
            claims = await self._checked(document, id_token, audience=client_id, access_token=access_token)
            userinfo = await self._userinfo(document, access_token)
        except ProviderAway as away:
            return ProviderUnreachable(away.message, away.misconfigured)
        if userinfo.refused:
            return LoginEnded("session")
        kept = KeptLogin(
            self.issuer,
            claims["sub"],
            access_token,
            groups_in_token=not self._claims.says_groups(userinfo.object()),
        )
        return self._now(kept, claims, userinfo.object()).identity

    # ------------------------------------------------------------------- its parts

    async def _renewed(self, document: Document, kept: KeptLogin) -> KeptLogin | LoginEnded:
        if not kept.refresh_token:
            if document.url("userinfo_endpoint"):
                return LoginEnded("session")
            return kept  # there is nobody to ask until the next login
        answer = await self._token(
            document, {"grant_type": "refresh_token", "refresh_token": kept.refresh_token}
        )
        if answer.refused:
            # the standard has one answer for all; what Keycloak writes beside it tells them apart
            gone = any(word in _why(answer).lower() for word in ("disabled", "not found"))
            if answer.object().get("error") == "invalid_grant":
                return LoginEnded("disabled" if gone else "session")
            if answer.object().get("error") in CLIENT_REFUSED:
                raise client_refused(self.title, self._client, _why(answer))
            raise ProviderAway(
                msg("{title} does not renew logins ({why}).", title=self.title, why=_why(answer))
            )
        made, _ = await self._kept(document, answer, before=kept)
        return made

    async def _kept(
        self,
        document: Document,
        answer: ProviderAnswer,
        *,
        nonce: str | None = None,
        before: KeptLogin | None = None,
    ) -> tuple[KeptLogin, dict[str, Any]]:
        """Return what a token response says, checked, and the claims of its ID token; a renewal may come without one."""
        got = answer.object()
        access, token = got.get("access_token"), got.get("id_token")
        if not isinstance(access, str) or not access or str(got.get("token_type", "")).lower() != "bearer":
            raise TokenRefused(msg("{title} returned no access token.", title=self.title))
        claims: dict[str, Any] = {}
        if token is not None or before is None:
            claims = await self._checked(
                document, token, audience=self._client.name, access_token=access, nonce=nonce
            )
            if before is not None and claims["sub"] != before.subject:
                raise TokenRefused(msg("The ID token belongs to another user."))
        kept = before or KeptLogin(self.issuer, claims["sub"], access)
        userinfo = await self._userinfo(document, access)
        if userinfo.refused:
            raise TokenRefused(
                msg("{title} does not identify the user ({why}).", title=self.title, why=_why(userinfo))
            )
        renewed = got.get("refresh_token")
        kept = replace(
            kept,
            access_token=access,
            refresh_token=renewed if isinstance(renewed, str) else kept.refresh_token,
            id_token=token if isinstance(token, str) else kept.id_token,
            session=_session(claims) or kept.session,
            groups_in_token=not self._claims.says_groups(userinfo.object())
            and self._claims.says_groups(claims),
        )
        return self._now(kept, claims, userinfo.object()), claims

    def _now(self, kept: KeptLogin, claims: dict[str, Any], userinfo: dict[str, Any]) -> KeptLogin:
        """Update the stored data with an ID token's claims and the provider's data of the person."""
        if userinfo and userinfo.get("sub") != kept.subject:
            raise TokenRefused(msg("{title} returned another user.", title=self.title))
        identity = self._claims.identity(
            self.issuer, kept.subject, {**claims, **userinfo}, known_as=kept.claimed_name
        )
        if kept.groups_in_token and not self._claims.says_groups(claims):  # nothing new is known of them
            identity = replace(identity, groups=kept.groups, admin=kept.admin)
        return replace(kept, **asdict(identity))

    async def _checked(self, document: Document, token: object, **how: Any) -> dict[str, Any]:
        return await id_token.check(token, document, self.keys, now=self._clock(), skew_s=self._skew_s, **how)

    async def _userinfo(self, document: Document, access_token: str) -> ProviderAnswer:
        url = document.url("userinfo_endpoint")
        return await self._asker.get(url, access_token) if url else ProviderAnswer(200, {})

    async def _token(self, document: Document, form: dict[str, str]) -> ProviderAnswer:
        headers, fields = self._client.shown(basic=document.basic)
        return await self._asker.post(document.url("token_endpoint"), {**form, **fields}, headers)


def _session(claims: dict[str, Any]) -> str:
    """Return the provider's name of its session; empty for one that no note of a logout could have."""
    name = text_of(claims.get("sid"))
    return name if len(name) <= TEXT_MAX else ""


def _why(answer: ProviderAnswer) -> str:
    """Return what a refusal says."""
    said = answer.object()
    return ": ".join(
        str(said[name])[:200] for name in ("error", "error_description") if said.get(name)
    ) or str(answer.status)
