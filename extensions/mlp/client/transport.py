"""HTTP/1.1 over TCP, TLS or a UNIX socket, from the standard library alone."""

from __future__ import annotations

import contextlib
import encodings.idna  # noqa: F401 - else the first connection takes it up, and a child forked meanwhile never has it
import http.client
import socket
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from mlp.errors import UsageError
from mlp.language import say


@dataclass(frozen=True, slots=True)
class Address:
    """A parsed base URL: `http://host:port/base`, `https://...`, or `http+unix://%2Fpath%2Fto.sock/base`."""

    scheme: str
    host: str
    port: int
    base: str

    @classmethod
    def parse(cls, url: str) -> Address:
        """Parse a URL; raise `UsageError` for one that cannot be ours."""
        parts = urlsplit(url)
        base = parts.path.rstrip("/")
        if parts.scheme == "http+unix" and parts.netloc:
            return cls("http+unix", unquote(parts.netloc), 0, base)
        try:
            port = parts.port
        except ValueError:
            port = None
        if parts.scheme in {"http", "https"} and parts.hostname:
            return cls(parts.scheme, parts.hostname, port or (443 if parts.scheme == "https" else 80), base)
        raise UsageError(
            say(
                "{url} is not the address of a service. Write http://HOST:PORT/services/mlp/api/v1 or http+unix://%2Fpath%2Fto%2Fmlp.sock/services/mlp/api/v1",
                url=repr(url),
            )
        )

    @property
    def shown(self) -> str:
        """The address for messages."""
        if self.scheme == "http+unix":
            return self.host
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def connect(self, timeout: float) -> socket.socket:
        """Open a bare connection (not for TLS)."""
        if self.scheme == "http+unix":
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            sock.settimeout(timeout)
            try:
                sock.connect(self.host)
            except OSError:
                sock.close()
                raise
            return sock
        sock = socket.create_connection((self.host, self.port), timeout)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock

    def http(self, timeout: float) -> http.client.HTTPConnection:
        """Make a connection object; it connects with its first request."""
        if self.scheme == "https":
            return http.client.HTTPSConnection(self.host, self.port, timeout=timeout)
        return _Plain(self, timeout)


class _Plain(http.client.HTTPConnection):
    """An HTTP connection whose socket comes from an `Address`."""

    def __init__(self, address: Address, timeout: float) -> None:
        super().__init__("localhost" if address.scheme == "http+unix" else address.host, timeout=timeout)
        if address.scheme != "http+unix":
            self.port = address.port
        self._address = address
        self._seconds = timeout

    def connect(self) -> None:
        self.sock = self._address.connect(self.timeout or self._seconds)

    def __del__(self) -> None:
        # a client that is simply dropped closes what it kept, without a warning
        with contextlib.suppress(Exception):
            self.close()
