"""Requests to a provider: short, bounded, led nowhere else, and one kind of failure where it does not answer as it should."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest

from mlp_language.message import Message, msg

TIMEOUT_S = 10.0
BODY_MAX = 4 << 20
"""Of somebody in ten thousand groups, and some more."""
_REFUSALS = range(400, 500)
_TOO_MANY = 429


@dataclass(eq=False)
class ProviderAway(Exception):  # noqa: N818 - what happened
    """The provider does not answer, or not as it should; says so.

    `misconfigured`: it answered, and the settings of the hub do not fit it, so that waiting does not help.
    """

    message: Message
    misconfigured: bool = False


def for_people(title: str, away: ProviderAway) -> Message:
    """Return the remedy for a person who logs in; the exact error is for the log."""
    if away.misconfigured:
        return msg(
            "{title} answers, but does not accept this hub. An administrator of the hub must correct its settings; trying again does not help.",
            title=title,
        )
    return msg(
        "{title} does not answer. Try again in a moment; users who are logged in here stay logged in.",
        title=title,
    )


@dataclass(frozen=True, slots=True)
class ProviderAnswer:
    """Answer of a provider: JSON, with success or as a refusal (400 to 499)."""

    status: int
    body: Any
    links: str = ""
    """Its `Link` header: where the next page is."""

    @property
    def refused(self) -> bool:
        """Whether it is a refusal."""
        return self.status in _REFUSALS

    def object(self) -> dict[str, Any]:
        """Return the body where it is an object; else an empty one."""
        return self.body if isinstance(self.body, dict) else {}


@dataclass(frozen=True, slots=True)
class RegisteredClient:
    """Hub as the provider knows it; without a secret it is a public client."""

    name: str
    secret: str = ""

    def shown(self, *, basic: bool) -> tuple[dict[str, str], dict[str, str]]:
        """Return headers and form fields by which it shows who it is."""
        if not self.secret:
            return {}, {"client_id": self.name}
        if not basic:
            return {}, {"client_id": self.name, "client_secret": self.secret}
        both = f"{quote(self.name, safe='')}:{quote(self.secret, safe='')}"
        return {"Authorization": f"Basic {b64encode(both.encode()).decode()}"}, {}


def client_refused(title: str, client: RegisteredClient, why: str) -> ProviderAway:
    """Return the failure of a provider that answers, and does not accept the hub's client or its secret."""
    return ProviderAway(
        msg(
            "{title} does not accept the client {client} with its secret ({why}).",
            title=title,
            client=client.name,
            why=why,
        ),
        misconfigured=True,
    )


class ProviderClient:
    """Client of one provider, which is called `title` in messages to people."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._made: AsyncHTTPClient | None = None

    @property
    def _http(self) -> AsyncHTTPClient:
        if self._made is None:  # it belongs to the event loop, which is not there yet when settings are read
            self._made = AsyncHTTPClient(force_instance=True, max_clients=50, max_body_size=BODY_MAX)
        return self._made

    async def get(self, url: str, bearer: str = "") -> ProviderAnswer:
        """Read something, in a person's name where a token is given."""
        return await self._ask(url, {"Authorization": f"Bearer {bearer}"} if bearer else {}, None)

    async def post(self, url: str, form: Mapping[str, str], headers: Mapping[str, str]) -> ProviderAnswer:
        """Send a form."""
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        return await self._ask(url, {**kind, **headers}, urlencode(form))

    async def _ask(self, url: str, headers: Mapping[str, str], body: str | None) -> ProviderAnswer:
        request = HTTPRequest(
            url,
            method="GET" if body is None else "POST",
            body=body,
            headers={"Accept": "application/json", "User-Agent": "mlp-hub", **headers},
            follow_redirects=False,
            connect_timeout=TIMEOUT_S,
            request_timeout=TIMEOUT_S,
        )
        try:
            answer = await self._http.fetch(request, raise_error=False)
        except (HTTPClientError, OSError, ValueError) as error:
            raise self._away(f"{type(error).__name__}: {error}") from error
        refusal = answer.code in _REFUSALS and answer.code != _TOO_MANY
        if answer.error is not None and not refusal:
            raise self._away(str(answer.error))
        try:
            found = json.loads(answer.body or b"null")
        except (ValueError, RecursionError) as error:
            if not refusal:
                raise self._away("no JSON") from error
            found = None
        return ProviderAnswer(answer.code, found, answer.headers.get("Link", ""))

    def _away(self, why: str) -> ProviderAway:
        return ProviderAway(msg("{title} does not answer ({why}).", title=self._title, why=why[:200]))
