"""WebDAV on UNIX sockets, and for pods on TCP; requests that a crash interrupts leave the old files."""

from __future__ import annotations

import logging
import signal
import socket
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cheroot import wsgi
from cheroot.makefile import MakeFile
from cheroot.server import ChunkedRFile
from wsgidav.request_resolver import RequestResolver
from wsgidav.wsgidav_app import WsgiDAVApp

from mlp_hub.dav.access_client import AccessClient
from mlp_hub.dav.authorization import AuthorizingApp
from mlp_hub.dav.connections.chunks import ChunkedBody
from mlp_hub.dav.connections.first_request import FirstClients
from mlp_hub.dav.connections.socket_server import SocketServer
from mlp_hub.dav.connections.tenant_server import THREADS as TENANT_THREADS
from mlp_hub.dav.connections.tenant_server import TenantServer
from mlp_hub.dav.files.locks import BoundedLocks
from mlp_hub.dav.files.properties import Properties
from mlp_hub.dav.files.resources import Files, reference
from mlp_hub.dav.files.tree import Parts, Tree, UploadPlaces
from mlp_hub.isolation import TenantRoots, roots_of
from mlp_hub.settings import Settings
from mlp_hub.unix_sockets import Place, listen_at

log = logging.getLogger("mlp_hub.dav")
THREADS = 96
"""Safety: requests that are served at a time: `door.MOST`, refused bodies that are read (`draining.MOST_DRAINED`), and what is answered at once."""
HEADERS_MAX = 1 << 16
"""Safety: bytes of a request before its body: the proxy has less, a sandbox may send what it likes."""
SILENT_S = 60
"""Safety: seconds for which a client may say nothing in the middle of a request."""
BLOCK = 1 << 18
"""Tuning: bytes that are read and written at a time."""
DRAIN_S = 3.0
"""Safety: seconds that requests in progress get to end when this process has to end."""
PATHS = ("/data", "/services/mlp/data")
"""Where the files are on the public port."""


class _Gateway(wsgi.Gateway_10):
    """Tells the application of the request itself, so that a refused body can end its connection, and bounds what is read of it."""

    def get_environ(self) -> Any:
        if isinstance(self.req.rfile, ChunkedRFile):
            self.req.rfile = ChunkedBody(self.req.rfile.rfile)
        environ: Any = super().get_environ()  # type: ignore[no-untyped-call]
        environ["mlp.request"] = self.req
        return environ


def make_door(
    root: Path,
    service: AccessClient,
    base: str = "",
    roots: TenantRoots | None = None,
    endpoints: Sequence[str] = (),
) -> AuthorizingApp:
    """Make the application over a storage tree; `roots` are those of tenants that have their own, `endpoints` as the door has them."""
    root.mkdir(parents=True, exist_ok=True, mode=0o711)
    files = {f"{base}{path}": Files(service) for path in PATHS}
    app = WsgiDAVApp(
        {
            "provider_mapping": files,
            "lock_storage": BoundedLocks(),
            "property_manager": Properties(next(iter(files.values()))),
            "middleware_stack": [RequestResolver],
            "hotfixes": {"re_encode_path_info": True},
            "block_size": BLOCK,
            "verbose": 1,
            "logging": {"enable": False},
            "suppress_version_info": True,
        }
    )

    def is_locked(tree: Tree, parts: Parts, environ: dict[str, Any]) -> bool:
        del environ
        manager = next(iter(files.values())).lock_manager
        return bool(manager is not None and manager.get_indirect_url_lock_list(reference(tree, parts)))

    return AuthorizingApp(
        app,
        service,
        roots or TenantRoots(root),
        UploadPlaces(root),
        files,
        is_locked=is_locked,
        endpoints=endpoints,
    )


def run(settings: Settings, service: AccessClient, tenants: Sequence[Place], asked: FirstClients) -> None:
    """Serve by the settings, beginning with the clients that already wait."""
    logging.getLogger("wsgidav").setLevel(logging.CRITICAL)
    door = make_door(settings.data_dir, service, settings.base, roots_of(settings), settings.data_endpoints)
    parts = settings.data_own_listens
    serve(settings.data_socket, door, service, parts=[parts] if parts else [], tenants=tenants, asked=asked)


def serve(
    where: Place,
    door: AuthorizingApp,
    service: AccessClient,
    *,
    parts: Sequence[Place] = (),
    tenants: Sequence[Place] = (),
    asked: FirstClients | None = None,
) -> None:
    """Listen on a UNIX socket, or at (host, port), until SIGTERM; `parts` are for the platform too, `tenants` for sandboxes and pods.

    `asked` has the sockets that listen already, and the connections that came by them.
    """
    asked = asked or FirstClients()
    servers: list[SocketServer] = []
    for own in (where, *parts):
        servers.append(
            SocketServer(
                _bound(own), door, numthreads=8, max=THREADS, timeout=SILENT_S, request_queue_size=512
            )
        )
        _listen(servers[-1], own, 0o600, THREADS - 8, asked.listening.get(str(own)))
    for place in tenants:
        servers.append(TenantServer(_bound(place), door, timeout=SILENT_S))
        _listen(servers[-1], place, 0o666, TENANT_THREADS - 8, asked.listening.get(str(place)))
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())

    def begin() -> None:
        while not ended.is_set() and not asked.begun and not service.begun():
            ended.wait(0.2)
        door.ready.set()

    threading.Thread(target=begin, name="begin", daemon=True).start()
    door.slow.start()
    for server in servers:
        threading.Thread(target=server.serve, name="serve", daemon=True).start()
        log.info("listening on %s", server.bind_addr)
    for client in asked.clients:
        _take(servers[0], client)
    ended.wait()
    door.drain(DRAIN_S)
    log.info("stopped")


def _bound(where: Place) -> str | tuple[str, int]:
    return where if isinstance(where, tuple) else str(where)


def _take(server: SocketServer, client: socket.socket) -> None:
    """Serve a connection that was accepted before the server was there."""
    client.settimeout(server.timeout)
    connection = server.ConnectionClass(server, client, MakeFile)
    connection.ssl_env = {}
    server.process_conn(connection)


def _listen(
    server: SocketServer,
    where: Place,
    mode: int,
    more: int,
    listening: socket.socket | None = None,
) -> None:
    server.gateway = _Gateway
    server.max_request_header_size = HEADERS_MAX
    if isinstance(where, Path):
        server.listening = listening or listen_at(where, mode)
    server.prepare()
    server.requests.grow(more)
