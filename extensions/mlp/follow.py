"""Following a job: one stream with replay that heals by itself; where streams cannot pass, asking again and again."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

from mlp.client import Client, quote
from mlp.errors import MLPError, Refused, Unauthorized, Unreachable
from mlp.history import FINAL
from mlp.websocket import HandshakeRefused, WebSocket

Json = dict[str, Any]
SILENCE = 45.0
"""Seconds without a frame or a ping after which a stream counts as dead."""
FIRST_WAIT = 0.3
LONGEST_WAIT = 10.0


def frames(
    client: Client,
    name: str,
    user: str,
    *,
    since: int = 0,
    patience: float = 3600.0,
    sleep: Callable[[float], object] = time.sleep,
) -> Iterator[Json]:
    """Yield the frames of a job's stream until its end; `{"type": "lost", "message"}` and `{"type": "live"}` tell of outages.

    Raises what the client raises (`Refused` for a job that is not there, ...), and `Unreachable` when the
    service was away for longer than `patience` seconds.
    """
    wait = FIRST_WAIT
    away_since: float | None = None
    refusals = 0
    while True:
        try:
            for frame in _stream(client, name, user, since):
                if away_since is not None or wait > FIRST_WAIT:
                    away_since, wait = None, FIRST_WAIT
                if frame.get("type") == "metrics":
                    since = max([since, *(int(p.get("seq", 0)) for p in frame.get("points", ()))])
                yield frame
                if frame.get("type") == "end":
                    return
            problem = "the stream was closed"
        except HandshakeRefused as error:
            job = client.job(name, user)  # raises the real reason: no such job, no right, no service
            refusals += 1
            if refusals >= 3 and error.status not in {502, 503}:
                yield {"type": "job", "job": job}
                yield from _asking(client, name, user, sleep)
                return
            problem = str(error)
        except (OSError, http.client.HTTPException, ValueError) as error:
            problem = str(error) or type(error).__name__
        now = time.monotonic()
        if away_since is None:
            away_since = now
            yield {"type": "lost", "message": problem}
        if now - away_since > patience:
            raise Unreachable(
                f"MLP Hub does not answer at {client.address.shown} ({problem}). The job goes on."
            )
        sleep(wait)
        wait = min(wait * 2, LONGEST_WAIT)


def _stream(client: Client, name: str, user: str, since: int) -> Iterator[Json]:
    target = f"{client.address.base}/users/{quote(user)}/jobs/{quote(name)}:stream?since={since}"
    socket = WebSocket(client.address, target, {"Authorization": f"Bearer {client.token}"}, client.timeout)
    try:
        yield {"type": "live"}
        while (text := socket.receive(SILENCE)) is not None:
            frame = json.loads(text)
            if isinstance(frame, dict):
                yield frame
    finally:
        socket.close()


def _asking(client: Client, name: str, user: str, sleep: Callable[[float], object]) -> Iterator[Json]:
    """Make the same frames from plain requests; metrics come by the stream alone."""
    version = None
    wait = 0.3
    while True:
        try:
            job = client.job(name, user)
            events = client.events(name, user)
        except (Refused, Unauthorized):
            raise
        except MLPError as error:
            yield {"type": "lost", "message": str(error)}
            sleep(LONGEST_WAIT)
            continue
        if job.get("version") != version:
            version = job.get("version")
            wait = 0.3
            yield {"type": "job", "job": job}
            yield {"type": "events", "events": events}
        if job.get("phase") in FINAL:
            yield {"type": "synced"}
            yield {"type": "end"}
            return
        sleep(wait)
        wait = min(wait * 1.3, 3.0)


def replay(client: Client, name: str, user: str, *, since: int = 0) -> Iterator[Json]:
    """Yield what there is up to now: the stream's frames up to its `synced`."""
    for frame in frames(client, name, user, since=since, patience=client.patience):
        yield frame
        if frame.get("type") in {"synced", "end"}:
            return
