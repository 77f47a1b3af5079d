"""Connections to replicas: by a UNIX socket, or over TCP.

Over TCP, both sides first prove that they know the replica's key. The other half is
`mlp.serving.knocking`, which a replica runs. The gateway's own half is in
`proxy/src/apps/handshake.mjs`.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import os
import secrets

from mlp_hub.pools import WorkKind, run_in
from mlp_hub.service.apps.endpoints import Address

PROTOCOL = b"MLP-APP/1 "
DIGITS = 64
"""Given: hexadecimal digits of each side's random value, and of a proof."""

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def connect(address: Address) -> Streams:
    """Connect to a replica; a path of a socket may be longer than the kernel takes. Raises `OSError` where another one is there."""
    if address.startswith("/"):
        directory, _, name = address.rpartition("/")
        fd = await run_in(WorkKind.REPLICAS, os.open, directory, os.O_PATH | os.O_CLOEXEC)
        try:
            return await asyncio.open_unix_connection(f"/proc/self/fd/{fd}/{name}")
        finally:
            os.close(fd)
    key, _, place = address.rpartition("@")
    host, _, port = place.rpartition(":")
    streams = await asyncio.open_connection(host.strip("[]"), int(port))
    if key:
        try:
            await _knock(*streams, key)
        except BaseException:
            streams[1].transport.abort()
            raise
    return streams


async def _knock(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, key: str) -> None:
    nonce = secrets.token_hex(DIGITS // 2).encode()
    writer.write(PROTOCOL + nonce + b"\n")
    try:
        said = await reader.readexactly(2 * DIGITS + 2)
    except asyncio.IncompleteReadError as error:
        raise ConnectionRefusedError("it is not the replica that was meant") from error
    shown, _, theirs = said[:-1].partition(b" ")
    if not hmac.compare_digest(shown, _proof(key, "replica", nonce)):
        raise ConnectionRefusedError("it is not the replica that was meant")
    writer.write(_proof(key, "gateway", theirs) + b"\n")


def _proof(key: str, who: str, nonce: bytes) -> bytes:
    return hmac.digest(key.encode(), who.encode() + b":" + nonce, hashlib.sha256).hex().encode()
