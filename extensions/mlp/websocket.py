"""The part of RFC 6455 that a client needs to read a stream of text frames, on a bare socket."""

from __future__ import annotations

import base64
import hashlib
import os
import socket
import ssl
from collections.abc import Mapping

from mlp.transport import Address

MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
MESSAGE_LIMIT = 64 * 1024 * 1024
CLOSE, PING, PONG = 8, 9, 10


class ConnectionLost(OSError):  # noqa: N818 - what happened
    """The stream ended without a proper close."""


class HandshakeRefused(OSError):  # noqa: N818 - what happened
    """The server answered the upgrade with another status than 101."""

    def __init__(self, status: int) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status


class WebSocket:
    """One connection: `receive()` returns messages until None, the server's close."""

    def __init__(self, address: Address, target: str, headers: Mapping[str, str], timeout: float) -> None:
        sock = address.connect(timeout)
        try:
            if address.scheme == "https":
                sock = ssl.create_default_context().wrap_socket(sock, server_hostname=address.host)
            self._sock = sock
            self._buffer = b""
            self._handshake(address, target, headers)
        except BaseException:
            sock.close()
            raise

    def _handshake(self, address: Address, target: str, headers: Mapping[str, str]) -> None:
        key = base64.b64encode(os.urandom(16))
        host = "localhost" if address.scheme == "http+unix" else f"{address.host}:{address.port}"
        lines = [
            f"GET {target} HTTP/1.1",
            f"Host: {host}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            f"Sec-WebSocket-Key: {key.decode()}",
            "Sec-WebSocket-Version: 13",
            *(f"{name}: {value}" for name, value in headers.items()),
        ]
        self._sock.sendall("\r\n".join([*lines, "", ""]).encode("latin-1"))
        while b"\r\n\r\n" not in self._buffer:
            if len(self._buffer) > 65_536:
                raise ConnectionLost("the answer's head is too long")
            self._fill()
        head, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
        first, *rest = head.decode("latin-1").split("\r\n")
        words = first.split(None, 2)
        if len(words) < 2 or words[1] != "101":
            raise HandshakeRefused(int(words[1]) if len(words) > 1 and words[1].isdecimal() else 0)
        found = {k.strip().lower(): v.strip() for k, _, v in (line.partition(":") for line in rest)}
        right = base64.b64encode(hashlib.sha1(key + MAGIC).digest()).decode()  # noqa: S324 - the protocol's
        if found.get("sec-websocket-accept") != right:
            raise ConnectionLost("the answer is not a WebSocket's")

    def _fill(self) -> None:
        data = self._sock.recv(65_536)
        if not data:
            raise ConnectionLost("the connection was closed")
        self._buffer += data

    def _take(self, count: int) -> bytes:
        if len(self._buffer) < count:
            parts, have = [self._buffer], len(self._buffer)
            while have < count:
                data = self._sock.recv(max(65_536, min(count - have, 1 << 20)))
                if not data:
                    raise ConnectionLost("the connection was closed")
                parts.append(data)
                have += len(data)
            self._buffer = b"".join(parts)
        taken, self._buffer = self._buffer[:count], self._buffer[count:]
        return taken

    def _frame(self) -> tuple[bool, int, bytes]:
        first, second = self._take(2)
        size = second & 0x7F
        if size == 126:
            size = int.from_bytes(self._take(2), "big")
        elif size == 127:
            size = int.from_bytes(self._take(8), "big")
        if size > MESSAGE_LIMIT or second & 0x80:
            raise ConnectionLost("a frame breaks the protocol")
        return bool(first & 0x80), first & 0x0F, self._take(size)

    def _send(self, opcode: int, data: bytes) -> None:
        mask = os.urandom(4)
        masked = bytes(b ^ mask[i % 4] for i, b in enumerate(data))
        self._sock.sendall(bytes([0x80 | opcode, 0x80 | len(data)]) + mask + masked)

    def receive(self, timeout: float) -> str | None:
        """Return the next message, None after the server's close.

        Raises TimeoutError when nothing at all came for `timeout` seconds, `ConnectionLost` when the other side vanished.
        """
        self._sock.settimeout(timeout)
        message = b""
        while True:
            final, opcode, data = self._frame()
            if opcode == PING:
                self._send(PONG, data[:125])
            elif opcode == CLOSE:
                self._goodbye(data)
                return None
            elif opcode != PONG:
                message += data
                if len(message) > MESSAGE_LIMIT:
                    raise ConnectionLost("a message is too long")
                if final:
                    return message.decode("utf-8", "replace")

    def _goodbye(self, data: bytes) -> None:
        code = int.from_bytes(data[:2], "big") if len(data) >= 2 else 1000
        if code not in {1000, 1001, 1005}:
            raise ConnectionLost(f"closed with {code} {data[2:].decode('utf-8', 'replace')}".rstrip())
        try:
            self._send(CLOSE, data[:2])
        except OSError:
            return

    def close(self) -> None:
        """Drop the connection."""
        try:
            self._sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            return
        finally:
            self._sock.close()
