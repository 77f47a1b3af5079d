"""Following a job: one stream with replay that heals by itself; where streams cannot pass, asking again and again."""

from __future__ import annotations

import contextlib
import http.client
import json
import math
import time
from collections.abc import Callable, Iterator
from typing import Any

from mlp.client.connection import quote
from mlp.client.rest import Client
from mlp.errors import MLPError, NoHub, Refused, Unauthorized, Unreachable
from mlp.language import headers, say
from mlp.rendering.history import FINAL

Json = dict[str, Any]
SILENCE = 45.0
"""Seconds without a frame or a ping after which a stream counts as dead."""
FIRST_WAIT = 0.3
LONGEST_WAIT = 10.0


class _StreamRefused(OSError):  # noqa: N818 - what happened
    """The upgrade to a stream was answered with another status than 101; None: it could not be asked for."""

    def __init__(self, status: int | None) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status


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

    def hopeless(self, status: int | None) -> bool:
        """Whether streams cannot pass here: they were refused again and again, or there is nothing here to open one with."""
        self.refusals += status not in {502, 503}
        return status is None or self.refusals >= 3

    def pause(self, problem: str, client: Client) -> bool:
        """Wait; tell whether this is the outage's first pause."""
        now = time.monotonic()
        first = self.since is None
        self.since = now if self.since is None else self.since
        if now - self.since > self.patience:
            raise Unreachable(
                say(
                    "MLP Hub does not answer at {address} ({why}). The job continues.",
                    address=client.address.shown,
                    why=problem,
                )
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
    patience: float = math.inf,
    sleep: Callable[[float], object] = time.sleep,
) -> Iterator[Json]:
    """Yield the frames of a job's stream until its end.

    `{"type": "lost", "message"}` and `{"type": "live"}` report outages. Raises the errors of the client
    (`Refused` for a missing job, ...), and `Unreachable` when the service was away for longer than
    `patience` seconds; without a limit it continues for ever.
    """
    outage = _Outage(patience, sleep)
    while True:
        problem = say("the stream was closed")
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
        except _StreamRefused as error:
            away = _away(client, name, user)
            if not away and outage.hopeless(error.status):
                yield from _asking(client, name, user, sleep)
                return
            problem = away or str(error)
        except (OSError, http.client.HTTPException, ValueError) as error:
            problem = str(error) or type(error).__name__
        if outage.pause(problem, client):
            yield {"type": "lost", "message": problem}


def _away(client: Client, name: str, user: str) -> str:
    """Return why nobody answers, nothing where somebody does; raises the real reason of a refusal: no such job, no right."""
    try:
        client.job(name, user)
    except NoHub:
        raise
    except Unreachable as error:
        return str(error)
    return ""


def _stream(client: Client, name: str, user: str, since: int) -> Iterator[Json]:
    try:
        import websocket  # noqa: PLC0415 - most that import this never follow
    except ImportError:  # a bare installation: it comes with notebooks
        raise _StreamRefused(None) from None

    address, secure = client.address, client.address.scheme == "https"
    host = "localhost" if address.scheme == "http+unix" else address.shown
    target = f"{address.base}/users/{quote(user)}/jobs/{quote(name)}:stream?since={since}"
    socket = websocket.WebSocket(skip_utf8_validation=True)
    try:
        socket.settimeout(client.timeout)
        socket.connect(
            f"{'wss' if secure else 'ws'}://{host}{target}",
            socket=None if secure else address.connect(client.timeout),
            header=[
                f"Authorization: Bearer {client.token}",
                *(f"{name}: {value}" for name, value in headers().items()),
            ],
            suppress_origin=True,
            redirect_limit=0,  # the token is for this address alone
        )
        yield {"type": "live"}
        socket.settimeout(SILENCE)
        while True:
            opcode, data = socket.recv_data()
            if opcode == websocket.ABNF.OPCODE_CLOSE:
                _check_goodbye(data)
                return
            frame = json.loads(data)
            if isinstance(frame, dict):
                yield frame
    except websocket.WebSocketException as error:
        status = getattr(error, "status_code", socket.getstatus())
        if status not in {None, 101}:
            raise _StreamRefused(status) from error
        raise OSError(str(error)) from error
    finally:
        socket.shutdown()


def _check_goodbye(data: bytes) -> None:
    code = int.from_bytes(data[:2], "big") if len(data) >= 2 else 1000
    if code not in {1000, 1001, 1005}:
        raise OSError(f"closed with {code} {data[2:].decode('utf-8', 'replace')}".rstrip())


def _asking(client: Client, name: str, user: str, sleep: Callable[[float], object]) -> Iterator[Json]:
    """Make the same frames from plain requests; metrics come by the stream alone."""
    version = None
    wait = 0.3
    away = False
    while True:
        try:
            job = client.job(name, user)
            events = client.events(name, user)
        except (Refused, Unauthorized, NoHub):
            raise
        except MLPError as error:
            if not away:
                yield {"type": "lost", "message": str(error)}
            away = True
            sleep(LONGEST_WAIT)
            continue
        away = False
        if job.get("version") != version:
            version = job.get("version")
            wait = 0.3
            yield {"type": "job", "job": job}
            yield {"type": "events", "events": events}
            with contextlib.suppress(
                MLPError
            ):  # a hub that is older has none, and the rest is shown all the same
                yield {"type": "attempts", "attempts": client.attempts(name, user)}
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
