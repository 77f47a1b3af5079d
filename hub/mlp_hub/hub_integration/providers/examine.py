"""The doctor's check of the login provider: `python -m mlp_hub.hub_integration.providers.examine`.

It needs no person. It fetches the discovery document and the keys, sends a code that the provider never
issued, and fetches the login page. The last two show whether the provider knows this hub. Findings are a JSON
list on stdout.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import sys
from dataclasses import dataclass
from typing import Literal

from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest
from tornado.httputil import url_concat

from mlp_hub.hub_integration.providers.login.paths import ARRIVE
from mlp_hub.hub_integration.providers.protocols import github, oidc
from mlp_hub.hub_integration.providers.protocols.discovery import WELL_KNOWN, Discovery, Document
from mlp_hub.hub_integration.providers.protocols.provider_client import (
    TIMEOUT_S,
    ProviderAway,
    ProviderClient,
    RegisteredClient,
)
from mlp_hub.settings import Settings
from mlp_language.message import Message, msg
from mlp_language.render import here, render

BASE = "/hub/"
_UNKNOWN_CLIENT = (*oidc.CLIENT_REFUSED, *github.CLIENT_REFUSED)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found; `remedy` says what to do unless it is ok."""

    status: Literal["ok", "warn", "fail"]
    found: Message
    remedy: Message | None = None


def redirect_uri(settings: Settings) -> str:
    """Return where the provider is to lead people back to, as it has to know it."""
    return f"{settings.origins.platform}{BASE}{ARRIVE}"


class Examination:
    """Looks at one provider."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._title = settings.login_name
        self._asker = ProviderClient(self._title)
        self._client = RegisteredClient(settings.login_client_id, settings.login_secret())
        self._register = msg(
            "Register these at {title}: redirect URI {uri}, and post-logout address {back}",
            title=self._title,
            uri=redirect_uri(settings),
            back=f"{settings.origins.platform}{BASE}login",
        )

    async def findings(self) -> list[Finding]:
        """Return all findings; checks that are impossible after a failure are left out."""
        if path := self._settings.login_kind.codes_at:
            url = f"{self._settings.login_provider}{path}"
            return [*self._secret(), await self._client_known(url, basic=False)]
        discovery = Discovery(self._settings.login_provider, self._title, self._asker)
        try:
            document = await discovery.document()
            keys = await self._asker.get(document.url("jwks_uri"))
        except ProviderAway as away:
            return [
                Finding(
                    "fail",
                    away.message,
                    msg(
                        "Check MLP_LOGIN_ISSUER for a typing error, and whether this machine reaches {where}.",
                        where=f"{self._settings.login_provider}{WELL_KNOWN}",
                    ),
                )
            ]
        listed = keys.object().get("keys")
        count = len(listed) if isinstance(listed, list) else 0
        if not count:
            return [Finding("fail", msg("{title} publishes no keys.", title=self._title))]
        about = msg(
            "{title} answers as {issuer}; {n} keys, signed by {algorithms}",
            title=self._title,
            issuer=document.issuer,
            n=count,
            algorithms=", ".join(document.algorithms),
        )
        return [
            Finding("ok", about),
            *self._announced(document),
            *self._secret(),
            await self._client_known(document.url("token_endpoint"), basic=document.basic),
            await self._led_back(document),
        ]

    def _announced(self, document: Document) -> list[Finding]:
        found = []
        if "S256" not in document.lists("code_challenge_methods_supported"):
            found.append(
                Finding(
                    "warn",
                    msg("{title} does not declare that it supports PKCE with S256.", title=self._title),
                    msg("The hub sends it anyway; ask whether the client can be set to require it."),
                )
            )
        if self._settings.login_logout and not document.url("end_session_endpoint"):
            found.append(
                Finding(
                    "warn",
                    msg(
                        "{title} has no logout address; users who log out here stay logged in there.",
                        title=self._title,
                    ),
                    msg("MLP_LOGIN_LOGOUT=0 confirms that this is known."),
                )
            )
        if self._settings.login_cli_client_id and not document.url("device_authorization_endpoint"):
            found.append(
                Finding(
                    "warn",
                    msg(
                        "{title} has no device flow, but MLP_LOGIN_CLI_CLIENT_ID names a client for it.",
                        title=self._title,
                    ),
                    msg("Without that setting `mlp login` uses the browser."),
                )
            )
        return found

    def _secret(self) -> list[Finding]:
        if self._client.secret:
            return []
        return [
            Finding(
                "warn",
                msg("The secret of the client {name} is missing.", name=self._client.name),
                msg(
                    "Write it into {path} (mode 0600), unless the client is a public one.",
                    path=str(self._settings.login_secret_path),
                ),
            )
        ]

    async def _client_known(self, token_url: str, *, basic: bool) -> Finding:
        """Request the exchange of a code that nobody was given: an unknown client gets that error first."""
        headers, fields = self._client.shown(basic=basic)
        form = {
            "grant_type": "authorization_code",
            "code": secrets.token_urlsafe(16),
            "redirect_uri": redirect_uri(self._settings),
            "code_verifier": secrets.token_urlsafe(48),
            **fields,
        }
        try:
            answer = await self._asker.post(token_url, form, headers)
        except ProviderAway as away:
            return Finding("fail", away.message)
        error = str(answer.object().get("error", answer.status))[:100]
        if error in _UNKNOWN_CLIENT:
            return Finding(
                "fail",
                msg(
                    "{title} does not accept the client {name} with its secret ({error}).",
                    title=self._title,
                    name=self._client.name,
                    error=error,
                ),
                msg("Compare MLP_LOGIN_CLIENT_ID and the secret with the client's settings at the provider."),
            )
        return Finding(
            "ok", msg("{title} knows the client {name}", title=self._title, name=self._client.name)
        )

    async def _led_back(self, document: Document) -> Finding:
        """Ask for the page to log in as a browser would: a wrong redirect URI is told there, and not by leading back to it."""
        query = {
            "response_type": "code",
            "client_id": self._client.name,
            "redirect_uri": redirect_uri(self._settings),
            "scope": "openid",
            "state": "doctor",
            "nonce": secrets.token_urlsafe(16),
            "code_challenge": secrets.token_urlsafe(32),
            "code_challenge_method": "S256",
        }
        url = str(url_concat(document.url("authorization_endpoint"), query))
        status = await _status(url)
        if status in range(400, 500):
            return Finding(
                "fail",
                msg(
                    "{title} does not redirect people back to {uri} (status {status}).",
                    title=self._title,
                    uri=redirect_uri(self._settings),
                    status=status,
                ),
                self._register,
            )
        if status >= 500:
            text = msg(
                "The page to log in at {title} answers with {status}.", title=self._title, status=status
            )
            return Finding("warn", text, self._register)
        return Finding("ok", self._register)


async def _status(url: str) -> int:
    """Return the status of a page, as a browser would get it; 599: no answer. Its content is for people."""
    client = AsyncHTTPClient(force_instance=True)
    request = HTTPRequest(url, follow_redirects=False, connect_timeout=TIMEOUT_S, request_timeout=TIMEOUT_S)
    try:
        return int((await client.fetch(request, raise_error=False)).code)
    except (HTTPClientError, OSError, ValueError):
        return 599
    finally:
        client.close()


def main() -> None:
    """Print what is found."""
    found = asyncio.run(Examination(Settings.load(os.environ)).findings())
    reader = here()
    rows = [
        {
            "status": one.status,
            "found": render(one.found, reader),
            "remedy": render(one.remedy, reader) if one.remedy else "",
        }
        for one in found
    ]
    json.dump(rows, sys.stdout)


if __name__ == "__main__":
    main()
