"""Proofs of both sides for a replica on a network, before a byte of a request is read.

At the address of a pod that has gone another one can listen. Any pod can reach the port if the
network does not prevent it. So each side proves that it knows the key, by the other's random value
for this connection: PROTOCOL and a nonce come in, a proof and a nonce go out, a proof comes in. All
of it has a fixed length; the bytes after it are the request's.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import secrets
import socket

PROTOCOL = b"MLP-APP/1 "
"""Contract: first bytes of a gateway; a nonce of 64 hexadecimal digits and a line's end follow."""
DIGITS = 64
"""Contract: digits of a nonce and of a proof."""
PATIENCE_S = 5.0
"""Safety: seconds that who comes may take: silent ones hold a thread no longer."""
_HELLO = len(PROTOCOL) + DIGITS + 1


def proof(key: str, who: str, nonce: bytes) -> bytes:
    """Return what shows that `who`, the replica or the gateway, knows the key."""
    return hmac.digest(key.encode(), who.encode() + b":" + nonce, hashlib.sha256).hex().encode()


class Knock:
    """The replica's half, of one connection, as bytes."""

    def __init__(self, key: str) -> None:
        self._key, self._nonce = key, secrets.token_hex(DIGITS // 2).encode()

    def answer(self, hello: bytes) -> bytes:
        """Return the answer to a hello; empty for an invalid one."""
        if not hello.startswith(PROTOCOL) or not hello.endswith(b"\n"):
            return b""
        return proof(self._key, "replica", hello[len(PROTOCOL) : -1]) + b" " + self._nonce + b"\n"

    def is_known(self, shown: bytes) -> bool:
        """Whether who came knows the key."""
        return hmac.compare_digest(shown, proof(self._key, "gateway", self._nonce) + b"\n")


def is_let_in(connection: socket.socket, key: str) -> bool:
    """Take the knock of a connection; whether it is the gateway's."""
    knock, before = Knock(key), connection.gettimeout()
    connection.settimeout(PATIENCE_S)
    with contextlib.suppress(OSError):
        if answer := knock.answer(_exactly(connection, _HELLO)):
            connection.sendall(answer)
            if knock.is_known(_exactly(connection, DIGITS + 1)):
                connection.settimeout(before)
                return True
    return False


def _exactly(connection: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size and (part := connection.recv(size - len(found))):
        found += part
    return found


async def is_let_into(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, key: str) -> bool:
    """Do the same of streams."""
    knock = Knock(key)
    with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
        async with asyncio.timeout(PATIENCE_S):
            if answer := knock.answer(await reader.readexactly(_HELLO)):
                writer.write(answer)
                await writer.drain()
                return knock.is_known(await reader.readexactly(DIGITS + 1))
    return False
