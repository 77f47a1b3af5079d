"""Endpoints of apps: the addresses of the replicas that answer, for programs that pass requests on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

Address = str
"""Where a replica listens: the path of a UNIX socket, which begins with `/`, `HOST:PORT`, or `KEY@HOST:PORT` where it answers those
alone who know its key."""


class Endpoint(NamedTuple):
    """An app as who passes requests on sees it. `replicas` are those that answered when they were last asked."""

    uid: str
    user: str
    name: str
    tenant: str
    state: str
    version: int  # of the model; 0 where a command runs
    replicas: tuple[Address, ...]


Listener = Callable[[str, Endpoint | None], None]
"""Listener for an app's uid: it gets the present endpoint; None: the app is gone."""


class Endpoints:
    """Endpoints of all apps that this service runs; they are collected again when another service leads."""

    def __init__(self) -> None:
        self._now: dict[str, Endpoint] = {}
        self._listeners: list[Listener] = []

    def now(self) -> Mapping[str, Endpoint]:
        """Return all of them by the uid of the app."""
        return dict(self._now)

    def listen(self, callback: Listener) -> None:
        """Call back, on the event loop, whenever one changes; and at once with each that is there."""
        self._listeners.append(callback)
        for uid, endpoint in self._now.items():
            callback(uid, endpoint)

    def store_endpoint(self, endpoint: Endpoint) -> None:
        """Store the endpoint of an app."""
        if self._now.get(endpoint.uid) != endpoint:
            self._now[endpoint.uid] = endpoint
            self._notify(endpoint.uid, endpoint)

    def drop(self, uid: str) -> None:
        """Say that an app is gone."""
        if self._now.pop(uid, None) is not None:
            self._notify(uid, None)

    def clear(self) -> None:
        """Forget all: another service leads."""
        for uid in list(self._now):
            self.drop(uid)

    def _notify(self, uid: str, endpoint: Endpoint | None) -> None:
        for callback in self._listeners:
            callback(uid, endpoint)
