"""Servers for sandboxes and pods, separate from the proxy's, so that many requests do not block it."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any, ClassVar

from cheroot.server import HTTPConnection

from mlp_hub.api.edge.connections import sender_of
from mlp_hub.dav.connections.socket_server import SocketServer

THREADS = 32
"""Safety: requests of sandboxes, and as many of pods, that are served at a time."""
MOST_OF_PEER = 12
"""Safety: threads that one peer's connections may hold, silent ones too: the others' find one."""
SHARED = 24
"""Safety: of these, such as a peer has that holds others: the rest is for the first one of each, so that a few do not hold all."""
WAITING = 64
"""Safety: connections that wait for a thread: bounds descriptors."""
BACKLOG = 512
"""Safety: connections that the system keeps for us: a crowd is refused by us, and not by errors of its sockets."""
_TEXT = b'{"msg": "too many connections are open; close some, or try again in a moment"}'
_REFUSAL = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\n"
    b"Connection: close\r\nContent-Length: %d\r\n\r\n%b" % (len(_TEXT), _TEXT)
)


class _Counted(HTTPConnection):
    """Connection that is served only while its peer holds few threads.

    The system identifies its peer, or a pod's address does.
    """

    lock = threading.Lock()
    busy: ClassVar[Counter[str]] = Counter()

    def communicate(self) -> Any:
        peer = sender_of(self.socket) or "nobody"
        with self.lock:
            own, all_ = self.busy[peer], sum(self.busy.values())
            if own >= MOST_OF_PEER or (own and all_ >= SHARED):
                peer = ""
            else:
                self.busy[peer] += 1
        if not peer:
            self.socket.send(_REFUSAL)
            return False
        try:
            return super().communicate()  # type: ignore[no-untyped-call]
        finally:
            with self.lock:
                self.busy[peer] -= 1
                if not self.busy[peer]:
                    del self.busy[peer]


class TenantServer(SocketServer):
    """A server for sandboxes, or for pods."""

    ConnectionClass = _Counted

    def __init__(self, address: str | tuple[str, int], app: Any, *, timeout: int) -> None:
        super().__init__(
            address,
            app,
            numthreads=8,
            max=THREADS,
            timeout=timeout,
            accepted_queue_size=WAITING,
            accepted_queue_timeout=1,
            request_queue_size=BACKLOG,
        )
