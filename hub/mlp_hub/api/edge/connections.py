"""Limits on one tenant's connections to a socket that all tenants reach, and the peer of a connection.

Each connection costs a descriptor of a process that serves everybody. So one user's programs get a
limited number. All tenants together get at most a quarter of the process's limit. The platform's
own socket always has room.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import resource
import socket
import struct
import time
from collections.abc import Callable, Collection
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, Protocol
from weakref import WeakSet

import msgspec
from tornado.httpserver import HTTPServer
from tornado.httputil import HTTPConnection, HTTPMessageDelegate, HTTPServerRequest
from tornado.iostream import IOStream

from mlp_hub.api.edge.patience import Patience
from mlp_language.message import msg, to_data

log = logging.getLogger(__name__)
PLATFORM = "platform"
DESCRIPTORS_MAX = 65_536
"""Safety: open files that the process asks the system for, at most: bounds the memory that connections take."""
_PEER = struct.Struct("3i")
_LOG_EVERY_S = 60.0
"""Safety: seconds between two lines about refused connections: keeps a flood of them out of the log."""
_FULL = msg("too many connections are open; close some, or try again in a moment")
# sent before anything is read, so that nobody's language is known
_BODY = msgspec.json.encode({"msg": str(_FULL), "detail": to_data(_FULL)})
_REFUSAL = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 2\r\n"
    b"Connection: close\r\nContent-Length: %d\r\n\r\n%b" % (len(_BODY), _BODY)
)


def peer_of(link: socket.socket | None) -> str:
    """Tell who made a connection to a UNIX socket by the system's word; empty where it says nothing.

    `platform` for the hub's own processes, `uid:N` for a user of the machine; where sandboxes run with the hub's
    own uid, the sandbox.
    """
    if link is None or link.family != socket.AF_UNIX:
        return ""
    try:
        pid, uid, _ = _PEER.unpack(link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
    except OSError:
        return ""
    if uid != os.geteuid():
        return f"uid:{uid}"
    try:
        inside = os.readlink(f"/proc/{pid}/ns/pid")  # noqa: PTH115 - a link to nothing that has a path
    except OSError:  # it has ended since, as a process that hides would
        return f"uid:{uid}"
    return PLATFORM if inside == _own_namespace() else inside


@functools.cache
def _own_namespace() -> str:
    return os.readlink("/proc/self/ns/pid")  # noqa: PTH115


def sender_of(link: socket.socket | None) -> str:
    """Tell who made a connection, of one over TCP by its address; of IPv6 by its /64 network, which is one customer's."""
    found = address_over_tcp(link)
    return peer_of(link) if found is None else network_of(str(found))


def network_of(sender: str) -> str:
    """Return what counts as one sender: an address, or of IPv6 its /64 network, in which one customer has any number of them."""
    try:
        found = ip_address(sender)
    except ValueError:  # a tenant's user, the platform itself, or a network already
        return sender
    if isinstance(found, IPv4Address):
        return sender
    return str(found.ipv4_mapped or ip_network((found, 64), strict=False))


def address_over_tcp(link: socket.socket | None) -> IPv4Address | IPv6Address | None:
    """Return the address at the other end; None where there is none, as of a UNIX socket."""
    if link is None or link.family not in (socket.AF_INET, socket.AF_INET6):
        return None
    try:
        found = ip_address(link.getpeername()[0])
    except (OSError, ValueError):
        return None
    return (found.ipv4_mapped or found) if isinstance(found, IPv6Address) else found


def address_of(request: HTTPServerRequest) -> str:
    """Tell where a request to a socket comes from that the proxy and sandboxes share.

    What the proxy brings has the browser's address at the end of its X-Forwarded-For; it is told as what counts as one sender.
    All else is told by its peer, whatever its headers say.
    """
    peer = peer_of(getattr(getattr(request.connection, "stream", None), "socket", None))
    if peer not in ("", PLATFORM):
        return peer
    forwarded = request.headers.get("X-Forwarded-For", "").rpartition(",")[2].strip()[:64]
    return network_of(forwarded) or peer or str(request.remote_ip)


def raise_descriptors() -> int:
    """Allow this process as many descriptors as it may have, and return how many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    top = DESCRIPTORS_MAX if hard == resource.RLIM_INFINITY else min(hard, DESCRIPTORS_MAX)
    if soft == resource.RLIM_INFINITY or soft >= top:
        return DESCRIPTORS_MAX if soft == resource.RLIM_INFINITY else soft
    resource.setrlimit(resource.RLIMIT_NOFILE, (top, hard))
    return top


class ConnectionGate(Protocol):
    """Says whether a new connection is served; `refusal` is sent over one that is not."""

    refusal: bytes

    def admit(self, stream: IOStream) -> bool:
        """Tell whether it is."""
        ...


class OnlyFrom:
    """Gate that admits connections from these networks only, and sends nothing to others."""

    refusal = b""

    def __init__(self, networks: Collection[IPv4Network | IPv6Network]) -> None:
        self._networks = tuple(networks)

    def admit(self, stream: IOStream) -> bool:
        """Tell whether it comes from there."""
        found = address_over_tcp(stream.socket)
        return found is not None and any(found in network for network in self._networks)


class Gate:
    """Counts the open connections of each peer, `per_peer` at most, and of all tenants, `total` at most."""

    refusal = _REFUSAL

    def __init__(self, per_peer: int, total: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_peer = per_peer
        self._total = total
        self._clock = clock
        self._open: dict[str, WeakSet[IOStream]] = {}
        self._all: WeakSet[IOStream] = WeakSet()
        self._logged = float("-inf")

    def admit(self, stream: IOStream) -> bool:
        """Count a new connection, or tell that it is one too many. The platform's own are not counted."""
        peer = sender_of(stream.socket)
        if peer == PLATFORM:
            return True
        mine = self._open.setdefault(peer, WeakSet())
        if _full(mine, self._per_peer):
            self._complain("%s holds %d connections; it gets no more", peer, self._per_peer)
            return False
        if _full(self._all, self._total):
            self._complain("all tenants hold %d connections; they get no more", self._total)
            return False
        mine.add(stream)
        self._all.add(stream)
        if len(self._open) > self._total:
            self._open = {one: streams for one, streams in self._open.items() if streams}
        return True

    def _complain(self, text: str, *values: object) -> None:
        if self._clock() - self._logged >= _LOG_EVERY_S:
            self._logged = self._clock()
            log.warning(text, *values)


def _full(streams: WeakSet[IOStream], most: int) -> bool:
    """Return whether `most` connections are open.

    Closed ones are removed only then: most have left the set long before.
    """
    if len(streams) < most:
        return False
    for stream in [one for one in streams if one.closed()]:
        streams.discard(stream)
    return len(streams) >= most


class GuardedServer(HTTPServer):
    """An HTTP server that refuses connections beyond its gate's limits at once, before anything is read.

    With `patience` it is this that ends connections which bring no request for `idle_connection_timeout` seconds; then
    who takes the headers has to tell it that they came.
    """

    def initialize(
        self, *args: Any, gate: ConnectionGate | None = None, patience: Patience | None = None, **options: Any
    ) -> None:
        """Take the gate, the patience and what every HTTP server takes."""
        self._gate = gate
        self._patience = patience
        super().initialize(*args, **options)
        if patience is not None:
            self._idle_s: float = options["idle_connection_timeout"]
            self.conn_params.header_timeout = None

    def start_request(self, server_conn: Any, request_conn: HTTPConnection) -> HTTPMessageDelegate:
        """Await a request."""
        if self._patience is not None:
            self._patience.until(server_conn.stream, self._idle_s)
        return super().start_request(server_conn, request_conn)

    def on_close(self, server_conn: Any) -> None:
        """Forget a connection."""
        if self._patience is not None:
            self._patience.over(server_conn.stream)
        super().on_close(server_conn)

    def handle_stream(self, stream: IOStream, address: tuple[Any, ...]) -> None:
        """Serve a new connection, or refuse it."""
        if self._gate is None or self._gate.admit(stream):
            super().handle_stream(stream, address)
            return
        with contextlib.suppress(OSError, AttributeError):
            stream.socket.send(self._gate.refusal)
        stream.close()
