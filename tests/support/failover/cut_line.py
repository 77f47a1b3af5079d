"""A connection to a server that a test can cut: for its user the server is then unreachable."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator
from typing import Self


class Line:
    """Forwards connections to an address from a port of its own, while it is whole."""

    def __init__(self, host: str, port: int) -> None:
        self._to = host, port
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0

    @classmethod
    @contextlib.asynccontextmanager
    async def to(cls, host: str, port: int) -> AsyncIterator[Self]:
        line = cls(host, port)
        await line.mend()
        try:
            yield line
        finally:
            await line.cut()

    async def mend(self) -> None:
        """Take connections, at the port that it had."""
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        """End all connections and take no more."""
        if self._server is None:
            return
        self._server.close()
        for writer in self._open:
            writer.transport.abort()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()
        self._server = None

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self._open.add(writer)
        with contextlib.suppress(OSError):
            far_reader, far = await asyncio.open_connection(*self._to)
            self._open.add(far)
            await asyncio.gather(_copy(reader, far), _copy(far_reader, writer))
            self._open.discard(far)
        self._open.discard(writer)
        writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()


class LineOfThread:
    """The same for tests without a loop: it turns in a thread of its own."""

    def __init__(self, host: str, port: int) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._line = Line(host, port)
        self.mend()
        self.port = self._line.port

    def mend(self) -> None:
        """Take connections, at the port that it had."""
        asyncio.run_coroutine_threadsafe(self._line.mend(), self._loop).result()

    def cut(self) -> None:
        """End all connections and take no more."""
        asyncio.run_coroutine_threadsafe(self._line.cut(), self._loop).result()

    def close(self) -> None:
        """Cut it for good, and end its thread."""
        self.cut()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
