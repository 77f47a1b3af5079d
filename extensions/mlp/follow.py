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


class _Outage:
    """How long the service has been away, and how long to wait before the next try."""

    def __init__(self, patience: float, sleep: Callable[[float], object]) -> None:
        self.patience = patience
        self.sleep = sleep
        self.refusals = 0
        self.over()

    def over(self) -> None:
        self.since: float | None = None
        self.wait = FIRST_WAIT

    def pause(self, problem: str, client: Client) -> bool:
        """Wait; tell whether this is the outage's first pause."""
        now = time.monotonic()
        first = self.since is None
        self.since = now if self.since is None else self.since
        if now - self.since > self.patience:
            raise Unreachable(
                f"MLP Hub does not answer at {client.address.shown} ({problem}). The job goes on."
            )
        self.sleep(self.wait)
        self.wait = min(self.wait * 2, LONGEST_WAIT)
        return first


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
    outage = _Outage(patience, sleep)
    while True:
        problem = "the stream was closed"
        try:
            for frame in _stream(client, name, user, since):
                kind = frame.get("type")
                if kind != "live":
                    outage.over()
                if kind == "metrics":
                    since = max([since, *(int(p.get("seq", 0)) for p in frame.get("points", ()))])
                yield frame
                if kind == "end":
                    return
        except HandshakeRefused as error:
            client.job(name, user)  # raises the real reason: no such job, no right, no service
            outage.refusals += error.status not in {502, 503}
            if outage.refusals >= 3:
                yield from _asking(client, name, user, sleep)
                return
            problem = str(error)
        except (OSError, http.client.HTTPException, ValueError) as error:
            problem = str(error) or type(error).__name__
        if outage.pause(problem, client):
            yield {"type": "lost", "message": problem}


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
