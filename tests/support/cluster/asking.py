"""Clients that ask a hub in pods all the time, and count what is refused and how long an answer takes."""

from __future__ import annotations

import contextlib
import itertools
import secrets
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

import httpx

from support.cluster.release import NAME, START_S, Release
from support.waiting import PATIENCE_S, wait_for

EVERY_S = 0.2
"""Seconds between an answer and the next request."""
SERVICE = "/services/mlp/api/v1"


@dataclass
class Asked:
    """What came of the requests of one client."""

    answers: int = 0
    longest: float = 0.0
    refused: list[str] = field(default_factory=list)


class Asking:
    """Clients of one hub, each of one kind of request, on connections that are kept as browsers keep them.

    They go to the proxy's Service, and not through kubectl, whose forwarding ends with the pod that it leads to.
    """

    def __init__(self, hub: Release) -> None:
        self.hub = hub
        self.at = hub.at.get("service", f"{NAME}-proxy")["spec"]["clusterIP"]
        self.host = httpx.URL(hub.url).netloc.decode()
        self.asked: dict[str, Asked] = {}
        self.over = threading.Event()
        self.run = secrets.token_hex(3)
        self.names: list[str] = []
        """Jobs that were acknowledged."""
        self._numbers = itertools.count(1)
        self._threads: list[threading.Thread] = []

    def client(self, user: str | None = "ann") -> httpx.Client:
        """Return a client of the proxy's Service, with a token of this user."""
        headers = {
            "Host": self.host,
            **({} if user is None else {"Authorization": f"Bearer {self.hub.token(user)}"}),
        }
        return httpx.Client(
            base_url=f"http://{self.at}", headers=headers, timeout=PATIENCE_S, trust_env=False
        )

    def reads(self, client: httpx.Client) -> httpx.Response:
        return client.get(f"{SERVICE}/session")

    def writes(self, client: httpx.Client) -> httpx.Response:
        """Submit a job that waits for quota, so that it costs nothing."""
        name = f"asked-{self.run}-{next(self._numbers)}"
        body = {"name": name, "code": "pass", "tenant": "narrow", "cpu": 0.1, "ram": 200}
        answer = client.post(f"{SERVICE}/users/ann/jobs", json=body)
        if answer.is_success:
            self.names.append(name)
        return answer

    def login(self, client: httpx.Client) -> httpx.Response:
        return client.get("/hub/login")

    def lab(self, client: httpx.Client) -> httpx.Response:
        """Ask a running notebook server, which asks the hub for whom that is."""
        host = httpx.URL(self.hub.notebooks("ann")).netloc.decode()
        return client.get("/user/ann/api/status", headers={"Host": host})

    def start_lab(self) -> None:
        """Start ann's notebook server, and return once it answers."""
        self.hub.ok("POST", "/tenants", body={"name": "labs", "cpu": 1, "ram": 2000})
        self.hub.ok("PUT", "/tenants/labs/members/ann", body={"role": "member"})
        with self.client() as client:
            answer = client.post("/hub/api/users/ann/server", json={"tenant": "labs", "cpu": 0.1, "ram": 600})
            assert answer.status_code in (201, 202), answer.text
            wait_for(lambda: self.lab(client).is_success, START_S, message="for the notebook server")

    @contextlib.contextmanager
    def all_the_time(self, *kinds: str) -> Iterator[Mapping[str, Asked]]:
        """Ask from before to after; fail where nothing was answered at the end."""
        self.over.clear()
        self.asked = {kind: Asked() for kind in kinds}
        self._threads = [threading.Thread(target=partial(self._ask, kind), daemon=True) for kind in kinds]
        for thread in self._threads:
            thread.start()
        try:
            self._more()
            yield self.asked
            self._more()
        finally:
            self.over.set()
            for thread in self._threads:
                thread.join()

    def report(self, during: str) -> None:
        """Print the figures, which are kept with the results of the test."""
        for kind, found in self.asked.items():
            sys.stdout.write(
                f"{during}: {kind}: {found.answers} answered, {len(found.refused)} refused, longest {found.longest:.2f} s\n"
            )
            for each in found.refused[:5]:
                sys.stdout.write(f"    {each}\n")

    def lost(self) -> list[str]:
        """Return the jobs that were acknowledged and are not listed once."""
        listed = [
            job["name"] for job in self.hub.ok("GET", "/users/ann/jobs?limit=1000&tenant=narrow", "ann")
        ]
        return [name for name in self.names if listed.count(name) != 1]

    def _more(self) -> None:
        before = {kind: found.answers for kind, found in self.asked.items()}
        wait_for(
            lambda: all(found.answers > before[kind] + 3 for kind, found in self.asked.items()),
            message="for each client to be answered",
        )

    def _ask(self, kind: str) -> None:
        ask: Callable[[httpx.Client], httpx.Response] = getattr(self, kind)
        with self.client(None if kind == "login" else "ann") as client:
            while not self.over.is_set():
                self._once(ask, client, self.asked[kind])
                self.over.wait(EVERY_S)

    def _once(
        self, ask: Callable[[httpx.Client], httpx.Response], client: httpx.Client, found: Asked
    ) -> None:
        began = time.monotonic()
        try:
            answer = ask(client)
        except httpx.TransportError as error:
            found.refused.append(f"{error!r} after {time.monotonic() - began:.2f} s")
            return
        took = time.monotonic() - began
        if answer.is_success:
            found.answers += 1
            found.longest = max(found.longest, took)
        else:
            found.refused.append(f"{answer.status_code} after {took:.2f} s: {answer.text[:200]}")
