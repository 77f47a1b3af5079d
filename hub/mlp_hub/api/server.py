"""Puts requests where they belong: the API, its WebSockets, or the pages. One router a listening socket."""

from __future__ import annotations

import logging
from typing import Any

from tornado.httputil import HTTPMessageDelegate, HTTPServerRequest, split_host_and_port
from tornado.routing import Router
from tornado.web import Application

from mlp_hub.api.call import API_BASES, Service
from mlp_hub.api.connections import peer_of
from mlp_hub.api.decode import clip
from mlp_hub.api.exchange import Exchange, Rejected
from mlp_hub.api.patience import Patience
from mlp_hub.api.routes import RouteTable
from mlp_hub.api.sockets import StreamSocket
from mlp_hub.domain.errors import Reason, Refused

log = logging.getLogger(__name__)


class Front(Router):
    """The router of one listening socket.

    `behind_proxy` says that the proxy alone reaches this socket: then the last address of X-Forwarded-For is the
    proxy's own word, and browsers come this way, so that the Host is checked. On the other socket callers are told
    apart by the system's word on who connected. No such header ever says who a caller is.
    """

    def __init__(
        self,
        service: Service,
        table: RouteTable,
        application: Application,
        patience: Patience,
        *,
        behind_proxy: bool,
    ) -> None:
        self._service = service
        self._table = table
        self._application = application
        self._patience = patience
        self._behind_proxy = behind_proxy

    def find_handler(self, request: HTTPServerRequest, **kwargs: Any) -> HTTPMessageDelegate | None:
        """Find who answers a request."""
        del kwargs
        self._patience.over(request.connection.stream)  # type: ignore[union-attr] # a server's own
        if self._behind_proxy and not self._host_is_ours(request):
            text = f"this hub is not called {clip(request.host_name)}; its operator can add the name to allowed_hosts"
            return Rejected(request, Refused(Reason.FORBIDDEN, text))
        for base in API_BASES:
            if request.path.startswith(base) and request.path[len(base) : len(base) + 1] in ("/", ""):
                return self._api(request, request.path[len(base) :] or "/")
        return self._application.find_handler(request)

    def _api(self, request: HTTPServerRequest, path: str) -> HTTPMessageDelegate:
        address = self._address(request)
        if request.headers.get("Upgrade", "").lower() == "websocket":
            given = {"service": self._service, "table": self._table, "path": path, "address": address}
            return self._application.get_handler_delegate(request, StreamSocket, given)
        return Exchange(self._service, self._table, request, path, address, patience=self._patience)

    def _host_is_ours(self, request: HTTPServerRequest) -> bool:
        allowed = self._service.config.allowed_hosts
        return allowed is None or split_host_and_port(request.host.lower())[0].strip("[]") in allowed

    def _address(self, request: HTTPServerRequest) -> str:
        if self._behind_proxy:
            return request.headers.get("X-Forwarded-For", "").rpartition(",")[2].strip()[:64]
        return peer_of(getattr(getattr(request.connection, "stream", None), "socket", None))
