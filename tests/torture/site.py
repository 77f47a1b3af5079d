"""The hub that is tortured: its disk, its database, its people, and short ways to look into it."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import psutil
import sqlalchemy as sa

from mlp_hub import sandbox
from mlp_hub.cli.supervisor import processes
from mlp_hub.settings import Settings
from support.hubs.live_hub import LiveHub
from support.ports import free_port
from support.stores.postgres import PostgresServer
from torture.disk import Disk
from torture.findings import Findings, Violation
from torture.toll import Toll

TENANTS = {"red": 2.5, "blue": 2.0, "aimed": 1.0}
"""Their quotas in cores; those of the node are left to the machine."""
USERS = {"ann": "red", "bob": "red", "cat": "blue", "dan": "blue"}
AIMED = "eve"
"""Alone in her tenant, so that what she submits starts at once."""
READER = "nat"
"""Has a notebook server, and a tenant for it."""
UPLOADER = "ulf"
"""Uploads, and has a tenant for it."""
SERVER = "server"
"""What stands for an attempt's name where that server's processes are hit."""
COMPONENTS = ("service", "hub", "data", "proxy", "supervisor")
_ATTEMPT = re.compile(r"[0-9a-z]{26}\.\d+")


class Site:
    """One hub on a disk of its own. `toll` and `findings` outlive it."""

    def __init__(self, database: str, toll: Toll, findings: Findings) -> None:
        self.database = database
        self.toll = toll
        self.findings = findings
        self.statuses: dict[str, int] = {}
        self.disk = Disk()
        port = free_port()
        self.first_uid = 10_000_000 + port * 1000  # so that its processes are told from others'
        environ = {
            "MLP_GRACE_S": "2",
            "MLP_SCHEDULING_MIN_RUN_S": "2",
            "MLP_LOG_MAX": "4",
            "MLP_FIRST_UID": str(self.first_uid),
            "MLP_NODE_CPU": "3",
            "MLP_NODE_CPU_OVERCOMMIT": "2",
        }
        self.postgres: PostgresServer | None = None
        if database == "postgresql":
            directory = self.disk.root / "pg"
            directory.mkdir()
            self.postgres = PostgresServer(directory)
            self.postgres.start()
            for name in ("platform", "jupyterhub"):
                self.postgres.run("CREATE DATABASE {}", name)
            environ["MLP_DATABASE_URL"] = self.postgres.url("platform")
            environ["MLP_HUB_DATABASE_URL"] = self.postgres.url("jupyterhub")
        self.hub = LiveHub(self.disk.home, port, **environ)
        self.settings = Settings.load(self.hub.env)
        self.closing = threading.Event()
        """Set when the run is given up: nobody asks any more."""
        self._engine: sa.Engine | None = None
        self._lock = threading.Lock()

    def up(self) -> None:
        """Start it with its tenants and people."""
        self.hub.up()
        for name, cpu in TENANTS.items():
            self.hub.ok("POST", "/tenants", body={"name": name, "cpu": cpu})
        for user, tenant in {**USERS, AIMED: "aimed"}.items():
            self.hub.add_user(user, tenant=tenant)
            self.hub.token(user)
        self.hub.ok("POST", "/tenants", body={"name": "books", "cpu": 0.5})
        self.hub.add_user(READER, tenant="books")
        self.hub.ok("POST", "/tenants", body={"name": "files", "cpu": 0.5})
        self.hub.add_user(UPLOADER, tenant="files")
        self.hub.token(UPLOADER)
        self.hub.token("admin")

    def stop(self) -> None:
        """Stop the hub and all that runs in it."""
        if self._engine is not None:
            self._engine.dispose()
        self.hub.destroy()

    def remove(self) -> str:
        """Remove database and disk; return what kept the disk from being unmounted, empty when nothing did."""
        if self.postgres is not None:
            self.postgres.take_away()
        return self.disk.remove()

    # ------------------------------------------------------------------- asking

    def ask(self, method: str, path: str, user: str, patience: float, body: Any = None, **more: Any) -> Any:
        """Call until there is an answer that is one; None when the patience (seconds) is over.

        Refused connections, time-outs, 429 and 502 to 504 are what clients repeat. A valid token that is refused, and an
        error that nobody foresaw, are violations.
        """
        until = time.monotonic() + patience
        wait = 0.1
        while True:
            answer: httpx.Response | None = None
            with contextlib.suppress(httpx.HTTPError):
                answer = self.hub.call(method, path, user, body, timeout=6, **more)
            status = "no answer" if answer is None else str(answer.status_code)
            with self._lock:
                self.statuses[status] = self.statuses.get(status, 0) + 1
            if answer is not None and answer.status_code not in (401, 429, 500, 502, 503, 504):
                return answer
            if answer is not None and answer.status_code in (401, 500):
                kind = "valid-token-refused" if answer.status_code == 401 else "internal-error"
                text = f"{method} {path} as {user}: {answer.status_code} {answer.text[:300]}"
                self.findings.add(Violation(kind, text), None, self.settings.log_dir)
            if time.monotonic() > until or self.closing.wait(wait):
                return None
            wait = min(wait * 1.5, 1.0)

    def rows(self, query: str) -> list[Any] | None:
        """Read from the platform's database beside it; None while that cannot be read."""
        if self._engine is None:
            if self.postgres is not None:
                url = self.postgres.url("platform").replace("postgresql:", "postgresql+psycopg:")
                self._engine = sa.create_engine(url, poolclass=sa.NullPool)
            else:
                path = f"file:{self.settings.service_db_file}?mode=ro&uri=true"
                self._engine = sa.create_engine(f"sqlite:///{path}", poolclass=sa.NullPool)
        with contextlib.suppress(sa.exc.SQLAlchemyError), self._engine.connect() as connection:
            return list(connection.execute(sa.text(query)))
        return None

    def held(self) -> list[Any] | None:
        """Return (id, applier, tenant, cpu) of all that is held in the ledger but storage."""
        return self.rows(
            "SELECT id, applier, tenant, cpu FROM resource_request "
            "WHERE kind = 'request' AND applier <> 'st' AND phase IN ('tried', 'confirmed', 'releasing')"
        )

    # ---------------------------------------------------------------- processes

    def component(self, name: str) -> psutil.Process | None:
        """Return a component's process."""
        found = processes.find(self.settings, name)
        with contextlib.suppress(psutil.Error):
            return None if found is None else psutil.Process(found.pid)
        return None

    def fork_server(self) -> psutil.Process | None:
        """Return the process that forks shims."""
        service = self.component("service")
        with contextlib.suppress(psutil.Error):
            for child in service.children() if service else ():
                if child.name().startswith("mlp-fork"):
                    return child
        return None

    def attempts(self) -> list[str]:
        """List the attempts that have a run directory."""
        with contextlib.suppress(OSError):
            return sorted(p.name for p in self.settings.jobs_run_dir.iterdir() if _ATTEMPT.fullmatch(p.name))
        return []

    def shims(self) -> dict[str, psutil.Process]:
        """Return the living shim of each attempt."""
        found = {}
        for attempt in self.attempts():
            with contextlib.suppress(psutil.Error, OSError, ValueError, KeyError):
                state = sandbox.inspect(str(self.settings.jobs_run_dir / attempt))
                if state.phase.value in ("starting", "running") and state.shim_pid:
                    found[attempt] = psutil.Process(state.shim_pid)
        return found

    def servers(self) -> list[psutil.Process]:
        """Return the living shims of notebook servers."""
        found = []
        for run_dir in sorted(self.settings.servers_run_dir.glob("*/*/")):
            with contextlib.suppress(psutil.Error, OSError, ValueError, KeyError):
                state = sandbox.inspect(str(run_dir))
                if state.phase.value in ("starting", "running") and state.shim_pid:
                    found.append(psutil.Process(state.shim_pid))
        return found

    def workspace(self, user: str, job: str) -> Path:
        """Return a job's directory."""
        return self.settings.jobs_dir / user / job
