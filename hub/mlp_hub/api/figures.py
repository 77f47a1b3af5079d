"""Figures of apps that the proxy counts: asked for by its API, when somebody wants to see them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from tornado.httpclient import HTTPRequest
from tornado.simple_httpclient import SimpleAsyncHTTPClient

from mlp_hub.api.edge.one_socket import OneSocket
from mlp_hub.domain.apps.app_usage import AppUse, MinuteOfUse
from mlp_hub.domain.errors import Unavailable
from mlp_hub.unix_sockets import Place, url_of
from mlp_language.message import msg

TIMEOUT_S = 5.0
"""Safety: seconds that an answer of the proxy is waited for."""


class Figures(msgspec.Struct, frozen=True):
    """Counts of this process of the proxy (`run`), and the number of its requests in progress."""

    run: str
    since: float
    requests: int
    errors: int
    bytes_in: int
    bytes_out: int
    open: int
    last: float
    bounds_ms: tuple[int, ...]
    latency: tuple[int, ...]
    minutes: tuple[MinuteOfUse, ...]

    @property
    def use(self) -> AppUse:
        """Return the count alone."""
        return AppUse(
            since=self.since,
            requests=self.requests,
            errors=self.errors,
            bytes_in=self.bytes_in,
            bytes_out=self.bytes_out,
            last=self.last,
            bounds_ms=self.bounds_ms,
            latency=self.latency,
            minutes=self.minutes,
        )


class ProxyFigures:
    """Asks the proxy by its socket, or at (host, port); `token` is that of its API."""

    def __init__(self, where: Place, token: str) -> None:
        self._headers = {"Authorization": f"token {token}"}
        by_socket = isinstance(where, Path)
        options: dict[str, Any] = {"resolver": OneSocket(path=str(where))} if by_socket else {}
        self._http = SimpleAsyncHTTPClient(force_instance=True, **options)
        self._url = "http://proxy" if by_socket else url_of(where)

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
            f"{self._url}{path}",
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
        raise Unavailable(msg("the proxy, which counts requests, does not answer; try again in a moment"))
