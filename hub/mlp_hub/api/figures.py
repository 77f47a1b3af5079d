"""Figures of apps, which the proxy keeps: asked for by its API, when somebody wants to see them."""

from __future__ import annotations

from pathlib import Path

import msgspec
from tornado.httpclient import HTTPRequest
from tornado.simple_httpclient import SimpleAsyncHTTPClient

from mlp_hub.api.hubclient import OneSocket
from mlp_hub.domain.errors import Unavailable
from mlp_language.message import msg

TIMEOUT_S = 5.0
"""Safety: seconds that an answer of the proxy is waited for."""


class Minute(msgspec.Struct, frozen=True):
    """What was asked in one minute, counted from the epoch."""

    minute: int
    requests: int
    errors: int
    bytes_in: int
    bytes_out: int


class Figures(msgspec.Struct, frozen=True):
    """What was asked since the proxy began. `latency` counts answers by the first of `bounds_ms` that they kept, and slower ones."""

    since: float
    requests: int
    errors: int
    bytes_in: int
    bytes_out: int
    open: int
    last: float
    bounds_ms: list[int]
    latency: list[int]
    minutes: list[Minute]

    def within_ms(self, share: float) -> int | None:
        """Return the bound that such a share of all answers kept; None where there is none, or they were slower."""
        wanted, seen = share * sum(self.latency), 0
        if not wanted:
            return None
        for bound, number in zip(self.bounds_ms, self.latency, strict=False):
            seen += number
            if seen >= wanted:
                return bound
        return None


class ProxyFigures:
    """Asks the proxy by its socket; `token` is that of its API."""

    def __init__(self, path: Path, token: str) -> None:
        self._headers = {"Authorization": f"token {token}"}
        self._http = SimpleAsyncHTTPClient(force_instance=True, resolver=OneSocket(path=str(path)))

    def close(self) -> None:
        """Close the client."""
        self._http.close()

    async def of_app(self, uid: str) -> Figures:
        """Return an app's. Raises `Unavailable`."""
        return await self._ask(f"/apps/apps/{uid}")

    async def of_tenant(self, tenant: str) -> Figures:
        """Return those of all apps of a tenant together. Raises `Unavailable`."""
        return await self._ask(f"/apps/tenants/{tenant}")

    async def _ask(self, path: str) -> Figures:
        asked = HTTPRequest(
            f"http://proxy{path}",
            headers=self._headers,
            connect_timeout=TIMEOUT_S,
            request_timeout=TIMEOUT_S,
        )
        try:
            answer = await self._http.fetch(asked, raise_error=False)
            if answer.code == 200:
                return msgspec.json.decode(answer.body, type=Figures)
        except (OSError, msgspec.MsgspecError):
            pass
        raise Unavailable(msg("the proxy, which counts, does not answer; try again in a moment"))
