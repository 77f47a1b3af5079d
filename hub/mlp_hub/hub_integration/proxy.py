"""The proxy's client, with routes to UNIX sockets."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from jupyterhub.proxy import ConfigurableHTTPProxy
from traitlets import TraitError, validate


class SocketProxy(ConfigurableHTTPProxy):  # type: ignore[misc]  # jupyterhub is untyped
    """`ConfigurableHTTPProxy` whose `extra_routes` may lead to `http+unix://` targets.

    The base class knows only http and https there, though the proxy itself takes UNIX sockets.
    """

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
