"""GitHub, the public or a company's: organisations and teams are groups (ORGANISATION, ORGANISATION:TEAM).

It has no ID tokens. Its API identifies the person, when asked with a token that came straight from
it for a code of this login.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any
from urllib.parse import urlsplit

from tornado.httputil import url_concat

from mlp_hub.hub_integration.providers.protocols.claims import GROUPS_MAX, Claims, groups
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

PAGE = 100
_NEXT = re.compile(r'<([^<>]+)>\s*;[^,]*\brel="?next"?')

CLIENT_REFUSED = ("incorrect_client_credentials",)
"""Given: errors of the token endpoint that are about the hub, not about the person."""


class GitHubProvider:
    """Asks GitHub about people. Where it is and what it answers to is oauthenticator's to know."""

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.time) -> None:
        self.issuer = settings.login_provider
        self.title = settings.login_name
        # brings all providers that it knows: a second of the start, which only a hub that logs in at GitHub is to pay
        from oauthenticator.github import GitHubOAuthenticator  # noqa: PLC0415

        self._at = GitHubOAuthenticator(github_url=self.issuer)
        self._client = RegisteredClient(settings.login_client_id, settings.login_secret())
        self._scopes = " ".join(settings.login_scopes or settings.login_kind.scopes)
        self._claims = Claims(settings)
        self._clock = clock
        self._asker = ProviderClient(self.title)

    async def login_url(self, pending: PendingLogin) -> str:
        """Return where a browser goes to log in."""
        # it has no way to ask for the password again; who confirms chooses the account again
        more = {"prompt": "select_account"} if pending.fresh else {}
        return str(
            url_concat(
                self._at.authorize_url,
                {
                    "client_id": self._client.name,
                    "redirect_uri": pending.redirect_uri,
                    "scope": self._scopes,
                    "state": pending.state,
                    "code_challenge": pending.challenge,
                    "code_challenge_method": "S256",
                    **more,
                },
            )
        )

    async def arrived(self, pending: PendingLogin, code: str, said_issuer: str) -> LoginResult:
        """Find out who came back from there with this code; raise TokenRefused or ProviderAway."""
        if said_issuer and not said_issuer.rstrip("/").startswith(self.issuer):
            raise TokenRefused(
                msg("This login was started at {title}, and ended elsewhere.", title=self.title)
            )
        form = {"code": code, "redirect_uri": pending.redirect_uri, "code_verifier": pending.verifier}
        _, fields = self._client.shown(basic=False)
        answer = await self._asker.post(self._at.token_url, {**form, **fields}, {})
        got = answer.object()
        access = got.get("access_token")
        if answer.refused or not isinstance(access, str) or not access:  # it says no with status 200
            why = str(got.get("error_description") or got.get("error") or answer.status)[:200]
            if got.get("error") in CLIENT_REFUSED:
                raise client_refused(self.title, self._client, why)
            text = msg("{title} does not accept the code ({why}). Log in again.", title=self.title, why=why)
            raise TokenRefused(text)
        renewed = got.get("refresh_token")
        kept = KeptLogin(self.issuer, "", access, renewed if isinstance(renewed, str) else "")
        found = await self._now(kept)
        if found is None:
            raise TokenRefused(msg("{title} returned no access token.", title=self.title))
        return LoginResult(found.identity, found.to_state(), self._clock() if pending.fresh else None)

    async def logout_url(self, state: AuthState, back: str) -> str:  # noqa: ARG002
        """Return nothing: nobody else can log out there."""
        return ""

    async def refreshed(
        self, auth_state: AuthState
    ) -> tuple[ProviderIdentity, dict[str, Any]] | LoginEnded | ProviderUnreachable:
        """Ask for the person's present standing, and return the data to keep from now on."""
        return await asked_anew(self.issuer, auth_state, self._asked, self._look_whether_it_is_there)

    async def _asked(self, kept: KeptLogin) -> KeptLogin | LoginEnded:
        found = await self._now(kept)
        if found is None and kept.refresh_token:
            renewed = await self._renewed(kept)
            found = None if renewed is None else await self._now(renewed)
        return LoginEnded("session") if found is None else found

    async def unreachable(self) -> ProviderUnreachable | None:
        """Return None: requests without a token would soon be limited."""
        return None

    async def identity_of(
        self,
        access_token: str,  # noqa: ARG002
        id_token: str,  # noqa: ARG002
        *,
        client_id: str,
    ) -> ProviderIdentity | LoginEnded | ProviderUnreachable:
        """Refuse: a token does not say for whom it was made; GitHub tells it only of the client's own."""
        raise TokenRefused(
            msg(
                "{title} does not confirm that a token was made for {client_id}.",
                title=self.title,
                client_id=client_id,
            )
        )

    async def _look_whether_it_is_there(self) -> None:
        """Raise ProviderAway unless GitHub's API answers as it does without a token: with 401."""
        answer = await self._asker.get(self._at.userdata_url)
        if answer.status not in (200, 401):
            why = str(answer.status)
            raise ProviderAway(
                msg("{title} does not identify the user ({why}).", title=self.title, why=why),
                misconfigured=True,
            )

    async def _renewed(self, kept: KeptLogin) -> KeptLogin | None:
        _, fields = self._client.shown(basic=False)
        form = {"grant_type": "refresh_token", "refresh_token": kept.refresh_token}
        got = (await self._asker.post(self._at.token_url, {**form, **fields}, {})).object()
        access, renewed = got.get("access_token"), got.get("refresh_token")
        if not isinstance(access, str) or not access:
            return None
        return replace(
            kept,
            access_token=access,
            refresh_token=renewed if isinstance(renewed, str) else kept.refresh_token,
        )

    async def _now(self, kept: KeptLogin) -> KeptLogin | None:
        """Ask who it is and in which teams; None where the token holds no longer."""
        answer = await self._asker.get(self._at.userdata_url, kept.access_token)
        if answer.status == 401:
            return None
        person = answer.object()
        number = person.get("id")  # a name there is somebody else's after a while, a number never
        if answer.refused or isinstance(number, bool) or not isinstance(number, int):
            raise ProviderAway(
                msg("{title} does not identify the user ({why}).", title=self.title, why=str(answer.status))
            )
        if kept.subject not in ("", str(number)):
            raise TokenRefused(msg("{title} returned another user.", title=self.title))
        claims = {**person, "email": "", "email_verified": False, **await self._address(kept.access_token)}
        identity = self._claims.identity(self.issuer, str(number), claims, known_as=kept.claimed_name)
        identity = self._claims.with_groups(identity, await self._groups(kept.access_token))
        return replace(kept, **asdict(identity))

    async def _address(self, token: str) -> dict[str, Any]:
        answer = await self._asker.get(f"{self._at.github_api}/user/emails", token)
        listed = answer.body if isinstance(answer.body, list) and not answer.refused else []
        for one in listed:
            if isinstance(one, dict) and one.get("primary") is True:
                return {"email": one.get("email"), "email_verified": one.get("verified") is True}
        return {}

    async def _groups(self, token: str) -> tuple[str, ...]:
        names = [str(org.get("login", "")) for org in await self._all("/user/orgs", token)]
        for team in await self._all("/user/teams", token):
            organization = team.get("organization")
            if isinstance(organization, dict):
                names.append(f"{organization.get('login', '')}:{team.get('slug', '')}")
        return groups(names)

    async def _all(self, path: str, token: str) -> list[dict[str, Any]]:
        """Read a list, page by page."""
        url = f"{self._at.github_api}{path}?per_page={PAGE}"
        found: list[dict[str, Any]] = []
        while url and len(found) <= GROUPS_MAX:
            answer = await self._asker.get(url, token)
            if answer.refused or not isinstance(answer.body, list):
                # without the list nobody's groups are known: that is not the same as none
                raise ProviderAway(
                    msg(
                        "{title} does not return groups ({why}).",
                        title=self.title,
                        why=f"{path}: {answer.status}",
                    )
                )
            found += [one for one in answer.body if isinstance(one, dict)]
            url = self._next(answer)
        return found

    def _next(self, answer: ProviderAnswer) -> str:
        """Return where the next page is, which is where this one was: nobody else gets the token."""
        match = _NEXT.search(answer.links)
        url = match[1] if match else ""
        same = urlsplit(url)[:2] == urlsplit(self._at.github_api)[:2]
        return url if same else ""
