"""The browser of a person who logs in: whether there is one on this machine, and the port it brings the code to."""

from __future__ import annotations

import contextlib
import hmac
import os
import re
import secrets
import socket
import sys
import threading
import time
import webbrowser
from html import escape
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from mlp.errors import Refused
from mlp.language import say

PATIENCE_S = 300.0
HOST = "127.0.0.1"


def machine() -> str:
    """Return this machine's name as the hub takes it."""
    found = re.sub(r"[^A-Za-z0-9._-]+", "-", socket.gethostname()).strip("._-")[:60].strip("._-")
    return found or "terminal"


def is_there() -> bool:
    """Return whether a page can be opened for the person at the terminal: not over ssh, nor without a display."""
    if os.environ.get("BROWSER"):
        return True
    if os.environ.get("SSH_CONNECTION") or os.environ.get("SSH_TTY"):
        return False
    if sys.platform.startswith("linux") and not (
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    ):
        return False  # what is found then is a browser in text, which takes the terminal
    try:
        webbrowser.get()
    except webbrowser.Error:
        return False
    return True


def open_page(page: str) -> None:
    """Open a page without waiting: some browsers end only when they are closed.

    Without a visible page, people have the address on the terminal.
    """

    def opened() -> None:
        with contextlib.suppress(webbrowser.Error, OSError):
            webbrowser.open(page)

    threading.Thread(target=opened, daemon=True).start()


class CodeListener:
    """A random port of this machine that takes one answer: the code with the state that was asked with."""

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self.state = secrets.token_urlsafe(32)
        self._patience_s = patience_s
        self._server = _Server((HOST, 0), _Answer)
        self._server.state = self.state

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.server_close()

    @property
    def url(self) -> str:
        """Where the browser is to go."""
        return f"http://{HOST}:{self._server.server_address[1]}/"

    def code(self) -> str:
        """Wait for the code; requests with another state are ignored."""
        until = time.monotonic() + self._patience_s
        while not self._server.code:
            left = until - time.monotonic()
            if left <= 0:
                raise Refused("Forbidden", say("nobody confirmed in the browser; run mlp login again"))
            self._server.timeout = left
            self._server.handle_request()
        return self._server.code


class _Server(HTTPServer):
    state = ""
    code = ""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing: connections that break off are not important to the person."""


class _Answer(BaseHTTPRequestHandler):
    server: _Server
    timeout = 2  # seconds that a connection may bring nothing, as browsers open some in advance

    def do_GET(self) -> None:
        """Take the code."""
        parts = urlsplit(self.path)
        found = parse_qs(parts.query)
        state, code = (found.get(name, [""])[0] for name in ("state", "code"))
        if (
            parts.path != "/"
            or not code
            or not hmac.compare_digest(state.encode(), self.server.state.encode())
        ):
            self._say(400, say("This is not the answer that mlp login waits for."))
            return
        self.server.code = code
        self._say(200, say("Thank you. You are logged in on the terminal, and can close this window."))

    def _say(self, status: int, text: str) -> None:
        body = f"<!doctype html><meta charset=utf-8><title>mlp login</title><p>{escape(text)}</p>".encode()
        self.send_response(status)
        for name, value in (
            ("Content-Type", "text/html; charset=utf-8"),
            ("Content-Length", str(len(body))),
            ("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"),
            ("Referrer-Policy", "no-referrer"),
            ("Cache-Control", "no-store"),
            ("Connection", "close"),
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Write nothing into the terminal."""
