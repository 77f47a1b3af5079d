"""A server behind the proxy that misbehaves on request, and counts its connections."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from pathlib import Path
from typing import Self


class Behind:
    """Answers on a UNIX socket; the last part of the path says how.

    never: not at all; deaf: 101, then it neither hears nor closes; echo: 101, then what it hears; zeros: a body without
    an end; half: half of a body, then it closes; else: an ordinary answer.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.open = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)

    def __enter__(self) -> Self:
        self._thread.start()
        self._server = self._run(asyncio.start_unix_server(self._serve, self.path, backlog=1000))
        return self

    def __exit__(self, *_: object) -> None:
        async def end() -> None:
            self._server.close()
            tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        self._run(end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work):
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                await self._answer(head.split(b" ")[1].rpartition(b"/")[2], reader, writer)
        except (OSError, asyncio.IncompleteReadError, EOFError):
            pass
        finally:
            self.open -= 1
            writer.close()

    async def _answer(self, how: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if how == b"never":
            await reader.read()
            raise EOFError
        if how in (b"echo", b"deaf"):
            writer.write(
                b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
            )
            if how == b"deaf":
                # what it does not read does not tell it that the other side has gone: look whether writing works
                while True:
                    await asyncio.sleep(0.05)
                    writer.write(b"x")
                    await writer.drain()
            while data := await reader.read(65536):
                writer.write(data)
            raise EOFError
        if how == b"zeros":
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            while True:
                writer.write(b"10000\r\n" + bytes(65536) + b"\r\n")
                await writer.drain()
        if how == b"half":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
            await writer.drain()
            raise EOFError
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        with contextlib.suppress(ConnectionError):
            await writer.drain()
