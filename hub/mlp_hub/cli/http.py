"""Short HTTP requests over a UNIX socket or to the public port; standard library only."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """Answer: the status (0 without an answer), the body, and the cursor where a list continues."""

    status: int
    body: bytes = b""
    error: str = ""
    following: str | None = None  # cursor of a list's next page

    def json(self) -> Any:
        """Return the decoded body; None where it is not JSON."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None

    @property
    def message(self) -> str:
        """Message of the error, in the answer's own words."""
        found = self.json()
        if isinstance(found, dict) and found.get("problems"):
            return "; ".join(str(problem["message"]) for problem in found["problems"])
        if isinstance(found, dict):
            return str(found.get("msg") or found.get("message") or self.status)
        return self.error or f"status {self.status}"


class _SocketConnection(http.client.HTTPConnection):
    def __init__(self, path: Path, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def _connection(where: Path | tuple[str, int], timeout: float, *, tls: bool) -> http.client.HTTPConnection:
    if isinstance(where, Path):
        return _SocketConnection(where, timeout)
    if not tls:
        return http.client.HTTPConnection(*where, timeout=timeout)
    import ssl  # noqa: PLC0415 - most never need it

    unproven = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    unproven.check_hostname, unproven.verify_mode = False, ssl.CERT_NONE
    return http.client.HTTPSConnection(*where, timeout=timeout, context=unproven)


def request(
    where: Path | tuple[str, int],
    method: str,
    path: str,
    *,
    token: str = "",
    body: object = None,
    headers: Mapping[str, str] | None = None,
    timeout: float = 30.0,
    tls: bool = False,
) -> HttpAnswer:
    """Send one request to a socket's path or to (host, port); a failure to connect is an Answer too.

    With `tls` the port speaks it; it is this machine's own, so that no name has to be proven.
    """
    connection = _connection(where, timeout, tls=tls)
    sent = {"Connection": "close", **(headers or {})}
    if token:
        sent["Authorization"] = f"Bearer {token}"
    data = None
    if body is not None:
        data = json.dumps(body).encode()
        sent["Content-Type"] = "application/json"
    try:
        connection.request(method, path, body=data, headers=sent)
        got = connection.getresponse()
        return HttpAnswer(got.status, got.read(), following=got.getheader("X-Next-Cursor"))
    except (OSError, http.client.HTTPException) as error:
        return HttpAnswer(0, error=str(error) or type(error).__name__)
    finally:
        connection.close()
