"""A command as an app: starts it with PORT set, and relays each connection to where it listens, inside the replica's own network."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys

from mlp.serving.knocking import is_let_into

HOST = "127.0.0.1"
CHUNK = 1 << 16
AT_ONCE = 1000
"""Limit of apps: connections to one replica at a time; further ones wait."""
END_S = 10.0
"""Safety: seconds between SIGTERM and SIGKILL, and for requests in progress."""


def run_command(command: str, port: int, listener: socket.socket, key: str = "") -> int:
    """Run a command by the shell until it ends, or this is told to stop; return its exit status.

    With a `key` it is reached by those alone who know that.
    """
    return asyncio.run(_run(command, port, listener, key))


async def _run(command: str, port: int, listener: socket.socket, key: str) -> int:
    env = {**os.environ, "PORT": str(port), "HOST": HOST}
    child = await asyncio.create_subprocess_exec(
        "/bin/sh", "-c", command, env=env, start_new_session=True, stdin=asyncio.subprocess.DEVNULL
    )
    told = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told.set)
    listener.setblocking(False)
    turns = asyncio.Semaphore(AT_ONCE)

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with turns:
            if key and not await is_let_into(reader, writer, key):
                writer.transport.abort()
                return
            await _relay(reader, writer, port)

    if listener.family == socket.AF_UNIX:
        server: asyncio.Server = await asyncio.start_unix_server(relay, sock=listener)
    else:
        server = await asyncio.start_server(relay, sock=listener)
    ended, stopped = asyncio.ensure_future(child.wait()), asyncio.ensure_future(told.wait())
    await asyncio.wait((ended, stopped), return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    server.close()
    if not ended.done():
        _kill(child.pid, signal.SIGTERM)
        await asyncio.wait((ended,), timeout=END_S)
        if not ended.done():
            _kill(child.pid, signal.SIGKILL)
        await ended
        return 0
    status = ended.result()
    sys.stderr.write(f"the command ended with {f'signal {-status}' if status < 0 else f'status {status}'}\n")
    return 128 - status if status < 0 else status


def _kill(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, number)


async def _relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int) -> None:
    """Pass on both ways until both are done; where nothing listens the connection is closed without a word."""
    try:
        inner_reader, inner_writer = await asyncio.open_connection(HOST, port)
    except OSError:
        writer.transport.abort()
        return
    try:
        await asyncio.gather(_pass(reader, inner_writer), _pass(inner_reader, writer))
    finally:
        writer.close()
        inner_writer.close()


async def _pass(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(CHUNK):
            target.write(data)
            await target.drain()
        if target.can_write_eof():
            target.write_eof()
    except OSError:
        target.transport.abort()
