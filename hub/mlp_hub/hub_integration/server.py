"""HTTP server of the hub: the hub's own socket, one for sandboxes, and a port for pods.

The number of each client's connections is limited.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Iterable
from typing import Any

from tornado.httpserver import HTTPServer
from tornado.httputil import HTTPConnection, HTTPHeaders, HTTPMessageDelegate
from tornado.iostream import IOStream
from tornado.netutil import bind_sockets, bind_unix_socket

from mlp_hub.api.edge.connections import (
    ConnectionGate,
    Gate,
    GuardedServer,
    OnlyFrom,
    address_over_tcp,
    raise_descriptors,
)
from mlp_hub.backends import backend_of
from mlp_hub.hub_integration.bodies import LARGE, Bodies, Receiving
from mlp_hub.logs.concern import HEADER, accepted, concerns, new_id
from mlp_hub.settings import Settings

IDLE_S = 300.0
BODY_TIMEOUT_S = 120.0
HEADER_BYTES = 24 * 1024
"""More than the proxy lets through, which adds some."""
BACKLOG = 1024
API = "/hub/api"
SAID_BY_PROXY = (
    "X-Forwarded-For",
    "X-Real-Ip",
    "X-Forwarded-Proto",
    "X-Scheme",
    "X-Forwarded-Host",
    "Forwarded",
)


class HubServer(GuardedServer):
    """HTTP server for JupyterHub; every tenant may connect, and the hub asks each request for its token."""

    def initialize(
        self,
        *args: Any,
        tenant_socket: str = "",
        pods: tuple[str, int] | None = None,
        parts: tuple[str, int] | None = None,
        base: str = "",
        **options: Any,
    ) -> None:
        """Take the path of the sandboxes' socket, addresses for pods and for parts of the platform, the begin of all paths, and a guarded server's options."""
        self._tenant_socket = self._sandboxes = tenant_socket
        self._pods, self._parts = pods, parts
        self._own_port = parts[1] if parts else None
        self._api = base + API
        self._bodies = Bodies(base=base)
        super().initialize(*args, **options)

    def start_request(self, server_conn: Any, request_conn: HTTPConnection) -> HTTPMessageDelegate:
        """Await a request, and have its body counted."""
        receiving = Receiving(self._bodies, super().start_request(server_conn, request_conn), request_conn)
        # the proxy comes by the hub's socket or by the port for parts of the platform; at the other port there are pods only
        strange = address_over_tcp(server_conn.stream.socket) is not None and not at_port(
            server_conn.stream.socket, self._own_port
        )
        receiver = FromPod(receiving, self._api) if strange else receiving
        link = server_conn.stream.socket  # None: the client is gone, and no request follows
        own = not strange and link is not None and link.getsockname() != self._sandboxes
        return Identified(receiver, trusts=own)

    def add_sockets(self, sockets: Iterable[socket.socket]) -> None:
        """Listen on the hub's socket, and from then on for sandboxes too."""
        sockets = list(sockets)
        for one in sockets:
            one.listen(BACKLOG)  # JupyterHub's own is short: a crowd would fill it
        super().add_sockets(sockets)
        path, self._tenant_socket = self._tenant_socket, ""
        if path:
            super().add_sockets([bind_unix_socket(path, mode=0o666, backlog=BACKLOG)])
        pods, self._pods = self._pods, None
        if pods:
            super().add_sockets(bind_sockets(pods[1], pods[0], backlog=BACKLOG))
        parts, self._parts = self._parts, None
        if parts:
            super().add_sockets(bind_sockets(parts[1], parts[0], backlog=BACKLOG))


class PartsGate:
    """Gate of the port for parts of the platform, which are not counted; all other connections are those of `others`."""

    def __init__(self, port: int, parts: OnlyFrom, others: Gate) -> None:
        self._port, self._parts, self._others = port, parts, others
        self.refusal = others.refusal

    def admit(self, stream: IOStream) -> bool:
        """Tell whether a connection is served."""
        return (self._parts if at_port(stream.socket, self._port) else self._others).admit(stream)


def at_port(link: socket.socket | None, port: int | None) -> bool:
    """Tell whether a connection came to a port of this process."""
    if link is None or port is None or link.family not in (socket.AF_INET, socket.AF_INET6):
        return False
    try:
        return bool(link.getsockname()[1] == port)
    except OSError:  # the client is gone
        return False


class Identified(HTTPMessageDelegate):
    """Gives each request its id before its receiver: that of the proxy, if `trusts`, else a new one.

    The id is in the request's header afterwards, and in the log lines of the task that handles the request.
    """

    def __init__(self, receiver: HTTPMessageDelegate, *, trusts: bool) -> None:
        self._receiver = receiver
        self._trusts = trusts

    def headers_received(self, start_line: Any, headers: HTTPHeaders) -> Awaitable[None] | None:
        """Set the id and pass the head on."""
        request_id = accepted(headers.get(HEADER)) if self._trusts else new_id()
        headers[HEADER] = request_id
        concerns(request_id)
        return self._receiver.headers_received(start_line, headers)

    def data_received(self, chunk: bytes) -> Awaitable[None] | None:
        """Hand it on."""
        return self._receiver.data_received(chunk)

    def finish(self) -> None:
        """Hand it on."""
        self._receiver.finish()

    def on_connection_close(self) -> None:
        """Hand it on."""
        self._receiver.on_connection_close()


class FromPod(HTTPMessageDelegate):
    """Filter before the receiver of a pod's request.

    Servers need only the API of the hub, and all pages are the proxy's. The proxy's headers about a
    request's sender are removed here.
    """

    def __init__(self, receiver: HTTPMessageDelegate, api: str) -> None:
        self._receiver = receiver
        self._api = api

    def headers_received(self, start_line: Any, headers: HTTPHeaders) -> Awaitable[None] | None:
        """Let requests to the API pass; the others find nothing."""
        for name in SAID_BY_PROXY:
            headers.pop(name, None)
        if not f"{start_line.path.partition('?')[0]}/".startswith(f"{self._api}/"):
            start_line = start_line._replace(path=f"{self._api}/none")
        return self._receiver.headers_received(start_line, headers)

    def data_received(self, chunk: bytes) -> Awaitable[None] | None:
        """Hand it on."""
        return self._receiver.data_received(chunk)

    def finish(self) -> None:
        """Hand it on."""
        self._receiver.finish()

    def on_connection_close(self) -> None:
        """Hand it on."""
        self._receiver.on_connection_close()


def install(settings: Settings) -> None:
    """Have every HTTP server of this process be one of ours; there is one."""
    others = Gate(settings.connections_per_user, raise_descriptors() // 4)
    gate: ConnectionGate = others
    parts = settings.hub_own_listens
    if parts is not None:
        gate = PartsGate(parts[1], OnlyFrom(settings.proxies), others)
    HTTPServer.configure(
        HubServer,
        tenant_socket=str(settings.tenant_hub_socket),
        pods=backend_of(settings).hub_listens(settings),
        parts=parts,
        base=settings.base,
        gate=gate,
        idle_connection_timeout=IDLE_S,
        body_timeout=BODY_TIMEOUT_S,
        max_body_size=LARGE,
        max_header_size=HEADER_BYTES,
    )
