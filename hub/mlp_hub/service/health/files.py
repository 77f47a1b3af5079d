"""Whether the process that holds datasets' files answers, and whether the service knows its token."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mlp_hub.service.health.problems import Problem
from mlp_hub.unix_sockets import Place
from mlp_language.message import msg

ANSWER_S = 5.0
"""Safety: seconds for which its answer is waited for."""
FRESH_S = 5.0
"""Tuning: seconds for which an answer counts: fewer questions, for how late a change is seen."""
MOST = 1 << 16
"""Safety: bytes of its answer that are read."""


class FilesWatch:
    """Asks at a UNIX socket, or at (host, port), once for all who want to know."""

    def __init__(self, where: Place) -> None:
        self._where = where
        self._asked_at = float("-inf")
        self._found: list[Problem] = []
        self._lock = asyncio.Lock()

    async def problems(self) -> Sequence[Problem]:
        """Say what does not work of it; nothing where it was never started, as where the service runs alone."""
        async with self._lock:
            if time.monotonic() - self._asked_at > FRESH_S:
                self._found = await self._look()
                self._asked_at = time.monotonic()
        return self._found

    async def _look(self) -> list[Problem]:
        try:
            async with asyncio.timeout(ANSWER_S):
                said = await self._ask()
        except FileNotFoundError:
            return []
        except (OSError, TimeoutError, ValueError):
            message = msg(
                "files of datasets can be neither read nor written: the data component does not answer; it restarts by itself"
            )
            return [Problem("data", "DataUnavailable", message)]
        if said.get("token") == "refused":
            message = msg(
                "files of datasets can be neither read nor written: the service does not recognize the token of the data component; its operator starts the hub again"
            )
            return [Problem("data", "DataRefused", message)]
        return []

    async def _ask(self) -> dict[str, Any]:
        if isinstance(self._where, Path):
            reader, writer = await asyncio.open_unix_connection(str(self._where))
        else:
            reader, writer = await asyncio.open_connection(*self._where)
        try:
            writer.write(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            await writer.drain()
            head, _, body = (await reader.read(MOST)).partition(b"\r\n\r\n")
            while not body and (more := await reader.read(MOST)):
                body += more
        finally:
            writer.close()
        if b" 200 " not in head.split(b"\r\n", 1)[0]:
            raise ValueError("it does not say that it is well")
        found = json.loads(body or b"{}")
        return found if isinstance(found, dict) else {}
