"""The proxy's client: routes to UNIX sockets, and a proxy in its own pod, which begins without routes."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from jupyterhub.proxy import ConfigurableHTTPProxy
from tornado.httpclient import AsyncHTTPClient, HTTPError
from tornado.ioloop import PeriodicCallback
from traitlets import TraitError, validate

LOOK_S = 2.0
"""Tuning: seconds between two looks at a proxy elsewhere: how long requests find no server after it started again."""
ANSWER_S = 5.0
"""Safety: seconds for which its answer is waited for."""


class SocketProxy(ConfigurableHTTPProxy):  # type: ignore[misc]  # jupyterhub is untyped
    """`ConfigurableHTTPProxy` whose `extra_routes` may lead to `http+unix://` targets.

    The base class knows only http and https there, though the proxy itself takes UNIX sockets.
    """

    _run = ""
    _watch: PeriodicCallback | None = None

    async def check_routes(self, user_dict: Any, service_dict: Any, routes: Any = None) -> None:
        """Check them; from the first time on see whether the proxy starts again, if it is elsewhere: then it has lost them."""
        elsewhere = self.api_url.startswith("http://")
        if elsewhere:  # first: the routes are those of this run
            self._run = await self._run_of_proxy() or self._run
        await super().check_routes(user_dict, service_dict, routes)
        if elsewhere and self._watch is None:
            self._watch = PeriodicCallback(self._restore_routes, LOOK_S * 1000)
            self._watch.start()

    async def _restore_routes(self) -> None:
        run = await self._run_of_proxy()
        if run and run != self._run:
            self.log.warning("The proxy started again, and gets its routes")
            await self.check_routes(self.app.users, self.app._service_map)  # noqa: SLF001 - the hub has no public way

    async def _run_of_proxy(self) -> str:
        """Return what the proxy calls its run; empty while it is away."""
        try:
            answer = await AsyncHTTPClient().fetch(
                f"{self.api_url}/health", connect_timeout=ANSWER_S, request_timeout=ANSWER_S
            )
        except (HTTPError, OSError):
            return ""
        return str(answer.headers.get("X-Proxy-Run", ""))

    @validate("extra_routes")
    def _validate_extra_routes(self, proposal: dict[str, Any]) -> dict[str, str]:
        by_host = bool(getattr(self.app, "subdomain_host", ""))
        for path, target in proposal["value"].items():
            if path.startswith("/") == by_host or not path.endswith("/"):
                begin = "a host name" if by_host else "'/'"
                raise TraitError(f"extra_routes has {path!r}; it starts with {begin} and ends with '/'")
            url = urlsplit(target)
            if url.scheme not in {"http", "https", "http+unix"} or not url.netloc:
                raise TraitError(
                    f"extra_routes leads {path} to {target!r}; it must be an http, https or http+unix URL"
                )
        return dict(proposal["value"])
