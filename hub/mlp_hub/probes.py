"""Answers to a cluster's probes, for a part that waits before it serves."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer


@contextmanager
def answering(address: tuple[str, int] | None, path: str) -> Iterator[Callable[[bool], None]]:
    """Answer GET `path` at an address, if there is one; hand out the function that says whether the part is ready, which it is not at first."""
    state = {"ready": False}

    def say(ready: bool) -> None:
        state["ready"] = ready

    if address is None:  # nobody probes it
        yield say
        return

    class _ProbeHandler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == path and state["ready"] else 503)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with _Probes(address, _ProbeHandler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield say
        finally:
            server.shutdown()
            thread.join()


class _Probes(ThreadingHTTPServer):
    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, handler)

    def server_bind(self) -> None:
        """Bind, and ask nobody for the name of the address."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = "", 0
