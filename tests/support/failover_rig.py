"""Two services whose leader is stopped in its tracks or cut off from the database, and how long nobody takes a write."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from live_hub import LiveHub, live_hub
from mlp_hub.cli.http import request
from postgres import PostgresServer, postgres_server
from waiting import PATIENCE_S, wait_for

API = "/services/mlp/api/v1"
NOTHING = "pass"
REPORTS = """
import mlp, time
for step in range(10**6):
    mlp.report(loss=step, step=step)
    time.sleep(0.02)
"""
TRY_S = 2.0
"""How long one request is waited for; the next begins then."""


class FreezingLine:
    """Forwards TCP connections to PostgreSQL's socket; of one process it takes what comes, and passes nothing on."""

    def __init__(self, to: Path) -> None:
        self._to = str(to)
        self.frozen: int | None = None
        self._listens = socket.create_server(("127.0.0.1", 0), backlog=200)
        self.port: int = self._listens.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listens.close()

    def _accept(self) -> None:
        while True:
            try:
                near, (_, port) = self._listens.accept()
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            try:
                far.connect(self._to)
            except OSError:
                near.close()
                continue
            pid = _owner(port)
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self._copy, args=(one, other, pid), daemon=True).start()

    def _copy(self, one: socket.socket, other: socket.socket, pid: int | None) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(1 << 16):
                while pid is not None and pid == self.frozen:
                    time.sleep(0.05)
                other.sendall(data)
        while pid is not None and pid == self.frozen:  # nobody hears of an end either
            time.sleep(0.05)
        with one, contextlib.suppress(OSError):
            other.shutdown(socket.SHUT_RDWR)


def _owner(port: int) -> int | None:
    """Return the process that has a local TCP connection of this port."""
    wanted = f":{port:04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    inodes = {f"socket:[{row[9]}]" for row in rows if row[1].endswith(wanted)}
    for place in Path("/proc").glob("[1-9]*/fd"):
        with contextlib.suppress(OSError):
            for fd in place.iterdir():
                with contextlib.suppress(OSError):
                    if os.readlink(fd) in inodes:
                        return int(place.parent.name)
    return None


class FailoverRig:
    """A hub of two services under load."""

    def __init__(self, hub: LiveHub, line: FreezingLine, seed: int) -> None:
        self.hub, self.line, self.random = hub, line, random.Random(seed)
        self.acknowledged: list[str] = []
        self._number = 0
        self._lock = threading.Lock()

    def pid(self, number: int) -> int:
        return self.hub.pid("service" if number == 1 else f"service-{number}")

    def _ready(self, number: int) -> dict[str, Any]:
        own = self.hub.home / "run" / "private" / f"mlp-{number}.sock"
        answer = request(own, "GET", f"{API}/ready", timeout=5)
        found: dict[str, Any] = answer.json() if answer.status in (200, 503) else {}
        return found

    def settled(self) -> int:
        """Wait until one leads and the other stands by, and knows for whom; return who leads."""

        def leader() -> int | None:
            told = [self._ready(number) for number in (1, 2)]
            leading = [number for number, each in enumerate(told, 1) if each.get("ready")]
            if len(leading) != 1 or len({each.get("leader") for each in told}) != 1:
                return None
            return leading[0] if self.pid(3 - leading[0]) else None

        return wait_for(leader)  # type: ignore[no-any-return]

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
            timeout=TRY_S,
        )
        assert answer.status in (0, 201, 429) or answer.status >= 500, answer.message
        if answer.status == 201:
            self.acknowledged.append(name)
        return answer.status == 201

    @contextlib.contextmanager
    def load(self, writers: int = 3) -> Iterator[None]:
        """Change things all the time, so that a leader is often in the middle of a write."""
        over = threading.Event()

        def change() -> None:
            while not over.is_set():
                request(
                    ("127.0.0.1", self.hub.port),
                    "PUT",
                    f"{API}/tenants/red",
                    token=self.hub.token("admin"),
                    body={"network": self.random.choice(("none", "outbound"))},
                    timeout=TRY_S,
                )

        for number in range(2):
            self.hub.submit("ann", f"reports{number}", REPORTS, cpu=0.1, ram=256)
        threads = [threading.Thread(target=change, daemon=True) for _ in range(writers)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            over.set()
            for thread in threads:
                thread.join()
            self.settled()
            for number in range(2):
                self.hub.call("PUT", f"/users/ann/jobs/reports{number}:cancel", "ann")

    def stopped(self) -> float:
        """Stop the leader at a random moment; return seconds until a write was answered. The supervisor does not help."""
        leader = self.settled()
        old, supervisor = self.pid(leader), self.hub.pid("supervisor")
        time.sleep(self.random.uniform(0.0, 4.0))  # where in its lease, and in a write, it is
        os.kill(supervisor, signal.SIGSTOP)
        try:
            os.kill(old, signal.SIGSTOP)
            return self._until_written()
        finally:
            for pid in (old, supervisor):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def cut_off(self) -> float:
        """Let nothing pass between the leader and its database; return seconds until a write was answered."""
        leader = self.settled()
        time.sleep(self.random.uniform(0.0, 4.0))
        self.line.frozen = self.pid(leader)
        try:
            return self._until_written(but=leader)
        finally:
            self.line.frozen = None

    def _until_written(self, but: int = 0) -> float:
        """Try until a write was taken, `but` by one that is cut off and does not know it."""
        began = time.monotonic()
        while not self.write() or (but and not self._ready(3 - but).get("ready")):
            if time.monotonic() - began > PATIENCE_S:
                raise AssertionError(f"nobody took a write for {PATIENCE_S} s")
            time.sleep(0.02)
        return time.monotonic() - began

    def lost(self) -> list[str]:
        """Return the jobs that were acknowledged and are not there."""
        self.settled()
        return [
            name
            for name in self.acknowledged
            if self.hub.call("GET", f"/users/ann/jobs/{name}", "admin").status_code != 200
        ]


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
                yield FailoverRig(hub, line, seed)
        finally:
            line.close()


def _socket(server: PostgresServer) -> Path:
    return server.sockets / ".s.PGSQL.5432"
