"""The hub's HTTP server: the hub's own socket, and one for sandboxes with a bound on what a tenant may hold."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from typing import Any

from tornado.httpserver import HTTPServer
from tornado.netutil import bind_unix_socket

from mlp_hub.api.connections import Gate, GuardedServer, raise_descriptors
from mlp_hub.settings import Settings

IDLE_S = 300.0
BODY_TIMEOUT_S = 120.0
BODY_BYTES = 4 * 1024 * 1024
BACKLOG = 1024


class HubServer(GuardedServer):
    """What JupyterHub gets as its HTTP server. Every tenant may connect; the hub asks each request for its token."""

    def initialize(self, *args: Any, tenant_socket: str = "", **options: Any) -> None:
        """Take the path of the sandboxes' socket and what a guarded server takes."""
        self._tenant_socket = tenant_socket
        super().initialize(*args, **options)

    def add_sockets(self, sockets: Iterable[socket.socket]) -> None:
        """Listen on the hub's socket, and from then on for sandboxes too."""
        super().add_sockets(sockets)
        path, self._tenant_socket = self._tenant_socket, ""
        if path:
            super().add_sockets([bind_unix_socket(path, mode=0o666, backlog=BACKLOG)])


def install(settings: Settings) -> None:
    """Have every HTTP server of this process be one of ours; there is one."""
    HTTPServer.configure(
        HubServer,
        tenant_socket=str(settings.tenant_hub_socket),
        gate=Gate(settings.connections_per_user, raise_descriptors() // 4),
        idle_connection_timeout=IDLE_S,
        body_timeout=BODY_TIMEOUT_S,
        max_body_size=BODY_BYTES,
    )
