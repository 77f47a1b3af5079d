"""Waiting for the first request: the sockets listen, and only health checks are answered.

The server of files takes much more memory, and most hubs are idle most of the time.
"""

from __future__ import annotations

import contextlib
import json
import logging
import selectors
import signal
import socket
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path

from mlp_hub.dav.access_client import AccessClient
from mlp_hub.unix_sockets import listen_at

log = logging.getLogger("mlp_hub.dav")
BACKLOG = 512
"""Safety: connections that the system keeps for us while what serves them is loaded."""
AGAIN_S = 0.2
"""Tuning: seconds until the next report to the service that nothing is in progress here."""
HEALTH = b"GET /health "
"""Given: how the supervisor and the service ask."""
MOST = 1 << 16
"""Safety: bytes of such a question that are read."""


@dataclass(slots=True)
class FirstClients:
    """First clients, and the sockets that listen already, by path.

    `begun`: the service received the report that nothing is in progress here.
    """

    listening: dict[str, socket.socket] = field(default_factory=dict)
    clients: list[socket.socket] = field(default_factory=list)
    begun: bool = False


def until_asked(where: Path, sandboxes: Path, service: AccessClient) -> FirstClients:
    """Listen on both sockets; return once a client asks for files.

    SIGTERM ends the process, because nothing is in progress.
    """
    started = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    public = listen_at(where, 0o600, backlog=BACKLOG)
    tenants = listen_at(sandboxes, 0o666, backlog=BACKLOG)
    threading.Thread(target=_begin, args=(service, started), name="begin", daemon=True).start()
    log.info("waiting for who asks for files on %s and %s", where, sandboxes)
    clients: list[socket.socket] = []
    with selectors.DefaultSelector() as selector:
        selector.register(public, selectors.EVENT_READ)
        selector.register(tenants, selectors.EVENT_READ)
        while True:
            ready = [key.fileobj for key, _ in selector.select()]
            for client in [one for one in clients if one in ready]:
                if _asks_for_files(client, service, ready=started.is_set()):
                    return FirstClients(
                        {str(where): public, str(sandboxes): tenants}, clients, begun=started.is_set()
                    )
                selector.unregister(client)
                clients.remove(client)
                client.close()
            if public in ready:
                with contextlib.suppress(OSError):
                    client = public.accept()[0]
                    clients.append(client)
                    selector.register(client, selectors.EVENT_READ)
            if tenants in ready:  # who is there asks for files: they are let in by what serves them
                return FirstClients(
                    {str(where): public, str(sandboxes): tenants}, clients, begun=started.is_set()
                )


def _begin(service: AccessClient, started: threading.Event) -> None:
    while not service.begun():
        started.wait(AGAIN_S)
    started.set()


def _asks_for_files(client: socket.socket, service: AccessClient, *, ready: bool) -> bool:
    """Whether who has sent something asks for more than whether this lives, which is answered; nothing is taken of a request for files."""
    with contextlib.suppress(OSError):
        start = client.recv(len(HEALTH), socket.MSG_PEEK)
        if start and start != HEALTH:
            return True
        if start:
            client.recv(MOST)
            body = json.dumps({"ready": ready, "token": service.token_state}).encode()
            head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
            client.settimeout(1.0)
            client.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    return False
