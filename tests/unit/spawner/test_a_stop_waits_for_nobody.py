"""A server is stopped whatever the service says, or does not say, of why."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from urllib.parse import quote

import pytest

from mlp_spawner.quota import service_client
from mlp_spawner.quota.service_client import ServiceClient

ANSWERS = {
    "tells": ("200 OK", json.dumps({"why": "the disk is full", "at_once": True}), "the disk is full"),
    "tells of one that has time": ("200 OK", json.dumps({"why": "unused", "at_once": False}), "unused"),
    "is of the version before": ("200 OK", json.dumps({"why": "the disk is full"}), "the disk is full"),
    "does not": ("200 OK", json.dumps({"why": ""}), ""),
    "is of another version": ("200 OK", "{}", ""),
    "has no such route": ("404 Not Found", "{}", ""),
    "talks nonsense": ("200 OK", "<html>", ""),
    "refuses in nonsense": ("403 Forbidden", "no", ""),
    "hangs": (None, "", ""),
}


@pytest.mark.parametrize("how", ANSWERS)
def test_why_it_is_stopped_is_asked_for_once_and_never_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    status, body, why = ANSWERS[how]
    asked: list[str] = []
    answering: list[asyncio.Task[None] | None] = []
    monkeypatch.setattr(service_client, "_WHY_S", 0.2 if status is None else 20.0)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answering.append(asyncio.current_task())
        asked.append((await reader.readuntil(b"\r\n\r\n")).decode().split()[1])
        if status is None:
            await reader.read()  # until who asked has gone
        else:
            head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            writer.write((head + body).encode())
            await writer.drain()
        writer.close()
        await writer.wait_closed()

    async def go() -> tuple[str, bool]:
        server = await asyncio.start_unix_server(answer, tmp_path / "s")
        async with server:
            said = await ServiceClient(
                f"http+unix://{quote(str(tmp_path / 's'), safe='')}", "token"
            ).stopped_for("ann")
            await asyncio.gather(*filter(None, answering))
            return said

    assert asyncio.run(go()) == (why, why == "the disk is full")
    assert len(asked) == 1
    assert not asked[0].endswith(":spawn")  # which costs the service a look at all that is held
