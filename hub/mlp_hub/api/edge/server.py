"""Puts requests where they belong: the API, its WebSockets, or the pages. One router a listening socket."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Any

from tornado.httputil import HTTPMessageDelegate, HTTPServerRequest, split_host_and_port
from tornado.routing import Router
from tornado.web import Application

from mlp_hub.api.auth.gatekeeper import Gatekeeper
from mlp_hub.api.edge.call import API_BASES, Service
from mlp_hub.api.edge.connections import sender_of
from mlp_hub.api.edge.decode import clip
from mlp_hub.api.edge.exchange import Exchange, Rejected
from mlp_hub.api.edge.patience import Patience
from mlp_hub.api.edge.sockets import StreamSocket
from mlp_hub.domain.errors import Reason, Refused, Unavailable
from mlp_hub.logs.concern import HEADER, accepted, concerns, new_id
from mlp_hub.service.state.leadership import LeaseLost
from mlp_language.message import msg

log = logging.getLogger(__name__)


METRICS = "/metrics"
ALWAYS = ("/health", "/ready", METRICS)
"""Paths that a service answers even if it does not lead."""


class Front(Router):
    """Router of one listening socket.

    `behind_proxy`: the proxy alone reaches this socket. Then the last address of X-Forwarded-For is the
    proxy's own, and browsers come this way, so that the Host is checked. On the other socket the system
    tells callers apart by their connections. Such a header never identifies a caller.

    With `only`, it serves only these paths, without the API's base before them.

    A service that is on standby, or is taking over, answers only the paths that show its state, and
    refuses all others.
    """

    def __init__(
        self,
        service: Service,
        gatekeeper: Gatekeeper,
        application: Application,
        patience: Patience,
        *,
        behind_proxy: bool,
        only: Collection[str] = (),
    ) -> None:
        self._service = service
        self._only = only
        self._gatekeeper = gatekeeper
        self._application = application
        self._patience = patience
        self._behind_proxy = behind_proxy

    def find_handler(self, request: HTTPServerRequest, **kwargs: Any) -> HTTPMessageDelegate | None:
        """Find who answers a request."""
        del kwargs
        self._patience.over(request.connection.stream)  # type: ignore[union-attr] # a server's own
        # sandboxes and pods give no ids: one of them could give that of another's request
        request_id = accepted(request.headers.get(HEADER)) if self._behind_proxy else new_id()
        concerns(request_id)
        if self._behind_proxy and not self._host_is_ours(request):
            text = msg(
                "this hub is not called {name}; its operator can add the name to allowed_hosts",
                name=clip(request.host_name),
            )
            return self._rejected(request, Refused(Reason.FORBIDDEN, text), request_id)
        if self._behind_proxy:
            _strip(request, self._service.config.base)
        path = _below_base(request.path)
        if self._only:
            path = request.path if path is None else path
            if path not in self._only:
                text = msg("{path} does not exist here", path=clip(request.path))
                return self._rejected(request, Refused(Reason.NOT_FOUND, text), request_id)
        platform = self._service.platform
        if not platform.leads and path not in ALWAYS:
            full = platform.reads_because
            if full is None or request.method not in ("GET", "HEAD"):
                # not kept: the next connection may find the one that leads
                return self._rejected(request, full or LeaseLost(), request_id, keep=False)
        if path is not None:
            return self._api(request, path, request_id)
        return self._application.find_handler(request)

    def _rejected(
        self, request: HTTPServerRequest, error: Refused | Unavailable, request_id: str, *, keep: bool = True
    ) -> HTTPMessageDelegate:
        return Rejected(
            request,
            error,
            refusals=self._service.refusals,
            address=self._address(request),
            request_id=request_id,
            keep=keep,
        )

    def _api(self, request: HTTPServerRequest, path: str, request_id: str) -> HTTPMessageDelegate:
        address = self._address(request)
        if request.headers.get("Upgrade", "").lower() == "websocket":
            given = {
                "service": self._service,
                "gatekeeper": self._gatekeeper,
                "path": path,
                "address": address,
            }
            return self._application.get_handler_delegate(request, StreamSocket, given)
        return Exchange(
            self._service,
            self._gatekeeper,
            request,
            path,
            address,
            patience=self._patience,
            request_id=request_id,
        )

    def _host_is_ours(self, request: HTTPServerRequest) -> bool:
        allowed = self._service.config.allowed_hosts
        return allowed is None or split_host_and_port(request.host.lower())[0].strip("[]") in allowed

    def _address(self, request: HTTPServerRequest) -> str:
        if self._behind_proxy:
            return request.headers.get("X-Forwarded-For", "").rpartition(",")[2].strip()[:64]
        return sender_of(getattr(getattr(request.connection, "stream", None), "socket", None))


def _strip(request: HTTPServerRequest, base: str) -> None:
    """Take from a browser's address what all of the hub is below. The operator's commands come without it."""
    if base and request.path.startswith(f"{base}/"):
        request.path = request.path[len(base) :]
        request.uri = (request.uri or "")[len(base) :]


def _below_base(path: str) -> str | None:
    """Return the path below the API's; None for a page's."""
    for base in API_BASES:
        if path.startswith(base) and path[len(base) : len(base) + 1] in ("/", ""):
            return path[len(base) :] or "/"
    return None
