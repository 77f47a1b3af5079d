"""Two services whose leader is frozen or cut off from the database, and the time until a write is accepted again."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from mlp_hub.cli.http import request
from support.failover.failover_evidence import FailoverEvidence
from support.failover.failover_load import failover_load
from support.failover.freezing_line import FreezingLine
from support.failover.persistent_write import PersistentWrite
from support.failover.two_services import API, TwoServices
from support.hubs.live_hub import LiveHub, live_hub
from support.stores.postgres import PostgresServer, postgres_server
from support.waiting import PATIENCE_S, wait_for

NOTHING = "pass"
OK, MISSING = 200, 404
ANSWER_S = 60.0
"""How long one request is waited for: a slow machine that answers has answered."""


class FailoverRig:
    """A hub of two services under load."""

    def __init__(self, hub: LiveHub, line: FreezingLine, seed: int, database: str) -> None:
        self.hub, self.line, self.random = hub, line, random.Random(seed)
        self.services = TwoServices(hub)
        self.evidence = FailoverEvidence(
            f"{time.strftime('%m%d-%H%M%S')}-{hub.port}",
            database=database,
            logs=hub.home / "log",
            processes=hub.pids,
            ready=self.services.ready,
        )
        self.acknowledged: list[str] = []
        self._writes: list[PersistentWrite] = []
        self._number = 0
        self._lock = threading.Lock()

    def write(self) -> bool:
        """Have one job taken; whether it was acknowledged."""
        with self._lock:
            self._number += 1
            name = f"f{self._number}"
        body = {"name": name, "code": NOTHING, "cpu": 0.1, "ram": 100}
        answer = request(
            ("127.0.0.1", self.hub.port),
            "POST",
            f"{API}/users/ann/jobs",
            token=self.hub.token("ann"),
            body=body,
            timeout=ANSWER_S,
        )
        assert answer.status in (0, 201, 429) or answer.status >= 500, answer.message
        if answer.status == 201:
            self.acknowledged.append(name)
        return answer.status == 201

    @contextlib.contextmanager
    def load(self) -> Iterator[None]:
        """Change things all the time, so that a leader is often in the middle of a write."""
        with failover_load(self.hub, self.random):
            yield
            self.services.settled()

    def stopped(self) -> float:
        """Stop the leader at a random moment; return seconds until a write was answered. The supervisor does not help."""
        leader = self.services.settled()
        old, supervisor = self.services.pid(leader), self.hub.pid("supervisor")
        time.sleep(self.random.uniform(0.0, 4.0))  # where in its lease, and in a write, it is
        os.kill(supervisor, signal.SIGSTOP)
        try:
            os.kill(old, signal.SIGSTOP)
            return self._until_written(self.write, "stopped", leader)
        finally:
            for pid in (old, supervisor):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def cut_off(self) -> float:
        """Let nothing pass between the leader and its database; return seconds until a write was answered."""
        leader = self.services.settled()
        time.sleep(self.random.uniform(0.0, 4.0))

        def by_the_other() -> bool:  # who is cut off answers what was written right before
            return self.write() and bool(self.services.ready(3 - leader).get("ready"))

        self.line.frozen = self.services.pid(leader)
        try:
            return self._until_written(by_the_other, "cut off", leader)
        finally:
            self.line.frozen = None

    def _until_written(self, write: Callable[[], bool], what: str, leader: int) -> float:
        def keep(when: str) -> Path:
            return self.evidence.keep(
                f"{what} {when}", leader=leader, tries=[str(each) for each in tries.attempts]
            )

        tries = PersistentWrite(write, late=lambda: keep("late"))
        self._writes.append(tries)
        took = tries.until_taken()
        if took is None:
            raise AssertionError(f"nobody took a write for {PATIENCE_S} s; see {keep('never')}")
        return took

    def lost(self) -> list[str]:
        """Return the jobs that were acknowledged and are not there."""
        for tries in self._writes:
            tries.join()
        self.services.settled()
        return [name for name in self.acknowledged if wait_for(partial(self._status, name)) != OK]

    def _status(self, name: str) -> int | None:
        """Return whether a job is there, as a status; None where who stands by was asked, by a connection of before."""
        status = self.hub.call("GET", f"/users/ann/jobs/{name}", "admin").status_code
        return status if status in (OK, MISSING) else None


@contextlib.contextmanager
def failover_rig(home: Path, *, seed: int = 1, **environ: str) -> Iterator[FailoverRig]:
    """Start a hub of two services on a PostgreSQL of its own, behind a line that can freeze."""
    with postgres_server() as server:
        server.run("CREATE DATABASE {}", "platform")
        line = FreezingLine(_socket(server))
        url = f"postgresql://postgres@127.0.0.1:{line.port}/platform"
        try:
            with live_hub(home, MLP_DATABASE_URL=url, MLP_REPLICAS="2", **environ) as hub:
                hub.add_user("ann")
                for user in ("admin", "ann"):
                    hub.token(user)
                hub.ok("POST", "/tenants", body={"name": "red"})
                yield FailoverRig(hub, line, seed, server.url("platform"))
        finally:
            line.close()


def _socket(server: PostgresServer) -> Path:
    return server.sockets / ".s.PGSQL.5432"
