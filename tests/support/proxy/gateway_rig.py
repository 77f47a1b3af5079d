"""The gateway to apps: a real proxy and a real service, and apps that are stand-ins on UNIX sockets."""

from __future__ import annotations

import contextlib
import http.client
import http.server
import json
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from mlp_hub import proxy
from mlp_hub.api.figures import ProxyFigures
from mlp_hub.domain.apps.app import App, AppPhase, AppSpec
from mlp_hub.domain.apps.app_gate import label_of
from mlp_hub.domain.resources import Resources
from mlp_hub.service.apps.endpoints import Endpoint
from mlp_hub.unix_sockets import url_of
from support.proxy.running_proxy import TOKEN, RunningProxy
from support.rigs.api_rig import Answer, ApiRig
from support.waiting import PATIENCE_S

PREFIX = "/services/mlp/apps"


class StandIn:
    """An app's replica on a UNIX socket, which tells what it was sent; a test gives it `paths` of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.asked: list[str] = []
        self.paths: dict[str, Callable[[Any], None]] = {}
        self.over = threading.Event()
        self._server = _Server(str(path), self)
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        """End it, as a process that is killed does."""
        self.over.set()
        self._server.shutdown()
        self._server.server_close()
        self._server.cut()
        self.path.unlink(missing_ok=True)


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def _any(self) -> None:
        app = self.server.app
        app.asked.append(f"{self.command} {self.path}")
        own = app.paths.get(urlsplit(self.path).path)
        if own is not None:
            own(self)
        elif self.headers.get("Upgrade") == "websocket":
            self.wfile.write(
                b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                b"Set-Cookie: planted=1\r\n\r\n"
            )
            while data := self.connection.recv(65536):
                self.wfile.write(data)
            self.close_connection = True
        else:
            self.tell()

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = do_OPTIONS = do_PATCH = _any  # noqa: N815 - the library's names

    def body(self) -> bytes:
        """Read what was sent."""
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        found = b""
        while size := int(self.rfile.readline(), 16):
            found += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return found

    def tell(self, headers: Mapping[str, str] | None = None, status: int = 200) -> None:
        """Answer with what was sent."""
        said = {name.lower(): ", ".join(self.headers.get_all(name) or []) for name in self.headers}
        what = {
            "method": self.command,
            "path": self.path,
            "headers": said,
            "size": len(self.body()),
            "by": self.server.app.path.name,
        }
        data = json.dumps(what).encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def address_string(self) -> str:
        return "socket"

    def log_message(self, *args: object) -> None:
        """Say nothing."""


def stand_in_handler() -> type[http.server.BaseHTTPRequestHandler]:
    """Return what answers as a stand-in does; its server's `app` is told."""
    return _Handler


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, path: str, app: StandIn) -> None:
        self.app = app
        self._open: set[socket.socket] = set()
        super().__init__(path, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def cut(self) -> None:
        """End what is open."""
        for one in list(self._open):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def handle_error(self, *args: object) -> None:
        """A visitor who goes away is no fault."""


class GatewayRig(ApiRig):
    """Start with `with GatewayRig(directory) as rig:`; `limits` are those of the gateway."""

    def __init__(self, root: Path, **limits: Any) -> None:
        super().__init__(root)
        gateway = proxy.Gateway(self.sockets[True], **limits)
        self.proxy = RunningProxy(
            root, hosts=(), users="localhost", apps=gateway, env={"MLP_GATEWAY_TOKEN": self.gateway}
        )
        self.platform_url = f"http://localhost:{self.proxy.port}"
        self.proxy.limits["platform"] = self.platform_url
        self.config = {
            "app_origin": f"http://{{label}}.localhost:{self.proxy.port}",
            "secure_cookies": True,
            "host_cookies": True,
        }
        self.figures = ProxyFigures(self.proxy.api, TOKEN)
        self.apps: dict[tuple[str, str], Endpoint] = {}
        self.stand_ins: list[StandIn] = []

    def __enter__(self) -> Self:
        super().__enter__()
        self.proxy.start()
        self.lead_to_the_service()
        return self

    def lead_to_the_service(self) -> None:
        """Give the proxy the way to the service's pages, as the hub does."""
        self.proxy.routes("POST", "/localhost/services/mlp", {"target": url_of(self.sockets[True])})

    async def _start(self) -> None:
        await super()._start()
        # stand-ins are no jobs: who looked at them would find none
        self.platform.app_usage._busy = lambda *_: None

    def __exit__(self, *error: object) -> None:
        for app in self.stand_ins:
            with contextlib.suppress(OSError):
                app.close()
        self.proxy.stop(kill=True)
        super().__exit__(*error)

    def stand_in(
        self, user: str, name: str, tenant: str, *, replicas: int = 1, least: int = 1, command: str = "serve"
    ) -> list[StandIn]:
        """Have an app that runs, with so many replicas."""
        uid = f"{user}-{name}".ljust(26, "0")
        spec = AppSpec(Resources(), model="" if command else "net", command=command, least=least)
        with self.rig.db.begin() as tx:
            port = tx.apps.free_port()
            tx.apps.put(App(uid, user, name, tenant, spec, port, AppPhase.RUNNING, time.time()))
        made = [StandIn(self.root / f"{user}-{name}-{n}.sock") for n in range(replicas)]
        self.stand_ins += made
        self.put(Endpoint(uid, user, name, tenant, "running", 0, tuple(str(one.path) for one in made)))
        return made

    def put(self, endpoint: Endpoint) -> None:
        """Say how an app stands."""
        self.apps[endpoint.user, endpoint.name] = endpoint

        async def say() -> None:
            self.platform.apps.endpoints.store_endpoint(endpoint)

        self.run(say())

    def host(self, user: str, name: str) -> str:
        """Return the host of an app's own origin, with its port."""
        return f"{label_of(user, name)}.localhost:{self.proxy.port}"

    @contextlib.contextmanager
    def connection(self) -> Iterator[http.client.HTTPConnection]:
        """Open a connection to the public port."""
        connection = http.client.HTTPConnection("127.0.0.1", self.proxy.port, timeout=PATIENCE_S)
        try:
            yield connection
        finally:
            connection.close()

    def visit(
        self, path: str, *, method: str = "GET", host: str = "", body: bytes | None = None, **headers: str
    ) -> Answer:
        """Send a request to the public port, by default to the hub's own name; `_` in names of headers is `-`."""
        sent = {"Host": host or f"localhost:{self.proxy.port}"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        with self.connection() as connection:
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            found: dict[str, str] = {}
            for name, value in answer.getheaders():
                found[name.lower()] = f"{found[name.lower()]}\n{value}" if name.lower() in found else value
            return Answer(answer.status, found, answer.read())

    def raw(self, data: bytes) -> bytes:
        """Send bytes; return all that comes back until the end."""
        with socket.create_connection(("127.0.0.1", self.proxy.port), PATIENCE_S) as plain:
            plain.sendall(data)
            found = b""
            while part := plain.recv(65536):
                found += part
            return found

    def enter(self, user: str, token: str, owner: str, name: str) -> str:
        """Open an app as a browser does that is logged in; return the cookie of the app's own origin."""
        _, headers = self.session(user, token)
        path, way = self.way(headers["Cookie"], owner, name)
        entered = self.visit(path, host=self.host(owner, name), Cookie=way, Accept="text/html")
        assert entered.status == 302, entered.body
        return entered.headers["set-cookie"].partition(";")[0]

    def way(self, session: str, owner: str, name: str, rest: str = "/", way: str = "") -> tuple[str, str]:
        """Go as a browser with a session does until it has a code.

        Return the path at the app's origin to which it is led with that, and the cookie that it has there; `way` is one from before.
        """
        led = self.visit(rest, host=self.host(owner, name), Accept="text/html", Cookie=way or "a=b")
        assert led.status == 302, led.body
        back = self.visit(
            led.headers["location"].removeprefix(self.platform_url), Accept="text/html", Cookie=session
        )
        assert back.status == 302, back.body
        to = urlsplit(back.headers["location"])
        assert to.netloc == self.host(owner, name)
        return f"{to.path}?{to.query}", led.headers["set-cookie"].partition(";")[0]
