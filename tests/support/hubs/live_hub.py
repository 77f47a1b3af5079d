"""A real hub for tests: the installed `mlp-hub` with a state directory and a port of its own."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import shutil
import signal
import sqlite3
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from mlp_hub.cli.commands import accounts
from mlp_hub.cli.errors import CommandFailed
from mlp_hub.cli.supervisor import processes
from mlp_hub.settings import Settings
from mlp_hub.settings.origins import label
from support.local_names import trusted
from support.ports import free_port
from support.waiting import PATIENCE_S, wait_for

BIN = Path(sys.executable).parent
LOGS = Path(__file__).resolve().parents[3] / "build" / "hub-logs"
PASSWORD = "correct horse battery"


class LiveHub:
    """A hub that was started with `mlp-hub up`, and short words to talk to it as any user."""

    def __init__(self, home: Path, port: int | None = None, **environ: str) -> None:
        self.home = home
        self.port = port or int(environ.get("MLP_PORT", 0)) or free_port()
        self.env = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("MLP_", "JUPYTERHUB_"))},
            "MLP_HOME": str(home),
            "MLP_PORT": str(self.port),
            **environ,
        }
        origin = urlsplit(self.env.get("MLP_PUBLIC_URL") or f"http://localhost:{self.port}")
        self.base = self.env.get("MLP_BASE_PATH", "").rstrip("/")
        self.url = f"{origin.scheme}://{origin.netloc}{self.base}"
        """Where browsers go."""
        self.inner_port = self.port
        """Where its proxy listens, whatever leads there."""
        self._tokens: dict[str, str] = {}
        pem = self.env.get("MLP_TLS_CERT")
        self.http = httpx.Client(
            base_url=f"{'https' if pem else 'http'}://127.0.0.1:{self.port}{self.base}",
            verify=ssl.create_default_context(cafile=pem) if pem else trusted(),
            timeout=PATIENCE_S,
            trust_env=False,
        )
        self.clients = [self.http]

    # ------------------------------------------------------------------ command

    def run(self, *args: str, check: bool = True, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run `mlp-hub ARGS` against this hub."""
        done = subprocess.run(
            [str(BIN / "mlp-hub"), *args],
            env=self.env,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=2 * PATIENCE_S,
            check=False,
        )
        if check and done.returncode:
            raise AssertionError(
                f"mlp-hub {' '.join(args)} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
            )
        return done

    def up(self) -> str:
        settings = Settings.load(self.env)
        file = settings.service_db_file
        if not settings.db_dir.exists() and settings.service_db_url == f"sqlite:///{file}":
            settings.db_dir.mkdir(parents=True, mode=0o700)
            file.touch(mode=0o600)
            file.write_bytes(made_tables())
        return self.run("up").stdout

    def down(self, jobs: str = "") -> None:
        if jobs:
            self.env["JOBS"] = jobs
        try:
            self.run("down")
        finally:
            self.env.pop("JOBS", None)

    def status(self) -> dict[str, Any]:
        return json.loads(self.run("status", "--json", check=False).stdout)

    def destroy(self) -> None:
        """Stop all of it, jobs and servers included, and remove its state."""
        for client in self.clients:
            client.close()
        with contextlib.suppress(AssertionError, subprocess.TimeoutExpired):
            self.down(jobs="stop")
        with contextlib.suppress(OSError):
            shutil.copytree(
                self.home / "log", LOGS / f"{time.strftime('%H%M%S')}-{self.port}", dirs_exist_ok=True
            )
        shutil.rmtree(self.home, ignore_errors=True)

    def notebooks(self, user: str) -> str:
        """Where a user's notebook servers are."""
        mine, users = urlsplit(self.url), self.env.get("MLP_USERS_DOMAIN") or "localhost"
        port = f":{mine.port}" if mine.port else ""
        return f"{mine.scheme}://{label(user)}.{users}{port}{self.base}"

    @property
    def homes(self) -> Path:
        """Where users' homes are on this machine."""
        return Settings.load(self.env).homes_dir

    # -------------------------------------------------------------------- people

    @property
    def admin_password(self) -> str:
        return (self.home / "secrets" / "admin-password").read_text().strip()

    def add_user(self, name: str, tenant: str | None = None, admin: bool = False) -> None:
        """Do what `mlp-hub user add` does, without a process of its own (`test_hub.py` has the command)."""
        with self._as_operator() as settings:
            accounts.add(settings, name, PASSWORD, tenant=tenant, admin=admin)

    def token(self, user: str) -> str:
        """Do what `mlp-hub token` does, without a process of its own (`test_hub.py` has the command)."""
        if user not in self._tokens:
            with self._as_operator() as settings:
                self._tokens[user] = accounts.token(settings, user, [], note="", expires_in=None)
        return self._tokens[user]

    @contextlib.contextmanager
    def _as_operator(self) -> Iterator[Settings]:
        try:
            yield Settings.load(self.env)
        except CommandFailed as failure:
            raise AssertionError(failure.text()) from failure

    # ---------------------------------------------------------------------- REST

    def call(
        self, method: str, path: str, user: str = "admin", body: Any = None, **more: Any
    ) -> httpx.Response:
        """Call the REST API as a user; 401 and 503 while something restarts are the caller's to handle."""
        headers = {"Authorization": f"Bearer {self.token(user)}", **more.pop("headers", {})}
        return self.http.request(method, f"/services/mlp/api/v1{path}", json=body, headers=headers, **more)

    def ok(self, method: str, path: str, user: str = "admin", body: Any = None, **more: Any) -> Any:
        """Call and return the JSON answer; anything but success fails the test with the answer's text."""
        answer = self.call(method, path, user, body, **more)
        assert answer.is_success, f"{method} {path} as {user}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content else None

    def submit(self, user: str, name: str, code: str, **options: Any) -> dict[str, Any]:
        return self.ok("POST", f"/users/{user}/jobs", user, {"name": name, "code": code, **options})

    def job(self, user: str, name: str) -> dict[str, Any]:
        return self.ok("GET", f"/users/{user}/jobs/{name}", user)

    def wait_phase(self, user: str, name: str, *phases: str, timeout: float = PATIENCE_S) -> dict[str, Any]:
        """Wait until the job is in one of the phases; ending in another final one fails at once."""
        final = {"finished", "failed", "cancelled"}

        def look() -> dict[str, Any] | None:
            try:
                answer = self.call("GET", f"/users/{user}/jobs/{name}", user)
            except httpx.TransportError:
                return None
            if answer.status_code != 200:
                return None
            job = answer.json()
            if job["phase"] not in phases and job["phase"] in final:
                raise AssertionError(
                    f"{name} ended as {job['phase']}: {job['failure']} {self.log(user, name)}"
                )
            return job if job["phase"] in phases else None

        return wait_for(look, timeout, message=f"for {name} to become {' or '.join(phases)}")

    def log(self, user: str, name: str, rank: int = 0) -> str:
        answer = self.call("GET", f"/users/{user}/jobs/{name}/logs", user, params={"rank": rank})
        return answer.text

    def points(self, user: str, name: str) -> list[dict[str, Any]]:
        """Replay all metric points of a job over its WebSocket until the stream says that it is complete."""
        from websockets.sync.client import connect

        path = f"{self.base}/services/mlp/api/v1/users/{user}/jobs/{name}:stream?since=0"
        points: list[dict[str, Any]] = []
        with connect(
            f"ws://127.0.0.1:{self.port}{path}",
            additional_headers={"Authorization": f"Bearer {self.token(user)}"},
            max_size=None,
            proxy=None,
        ) as ws:
            for message in ws:
                frame = json.loads(message)
                if frame["type"] == "metrics":
                    points += frame["points"]
                if frame["type"] == "synced":
                    break
        return points

    # ------------------------------------------------------------------ processes

    def pid(self, component: str) -> int:
        """Return the pid of `supervisor`, `hub`, `service` or `proxy`."""
        found = self.pids()[component]
        assert found is not None, f"no {component} runs"
        return found

    def pids(self) -> dict[str, int | None]:
        """Return the pids of all of them, as `status` finds them; of a process of its own each look would cost too much."""
        settings = Settings.load(self.env)
        running = {name: processes.find(settings, name) for name in processes.names(settings)}
        return {name: found and found.pid for name, found in running.items()}

    def kill(self, component: str) -> int:
        """SIGKILL a component and return the pid that it had."""
        self.token("admin")  # made while all of it lives: `wait_back` asks with it
        pid = self.pid(component)
        os.kill(pid, signal.SIGKILL)
        return pid

    def wait_back(self, component: str, old_pid: int) -> None:
        """Wait until the component runs again as another process and answers."""

        def back() -> bool:
            if self.pids()[component] in (None, old_pid):
                return False
            with contextlib.suppress(httpx.TransportError):
                return self.call("GET", "/session", "admin").status_code == 200
            return False

        wait_for(back, every=0.3, message=f"for {component} to come back")


@functools.cache
def made_tables() -> bytes:
    """Return the file of a platform's database as `up` makes it (`test_hub.py`): made once, not by each hub."""
    from mlp_hub.store import migrate  # a second of imports

    with tempfile.TemporaryDirectory() as place:
        file = Path(place, "mlp.sqlite")
        migrate.upgrade(f"sqlite:///{file}")
        with contextlib.closing(sqlite3.connect(file)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # the file alone is the database
        return file.read_bytes()


def tenant_use(hub: LiveHub, tenant: str = "default") -> dict[str, float]:
    """Return what is in use of a tenant's quota."""
    t = hub.ok("GET", f"/tenants/{tenant}")
    return {k: t[f"{k}_inuse"] for k in ("cpu", "gpu", "ram")}


def make_endless(hub: LiveHub, user: str, sample: str) -> None:
    """Let the job of the sample in the user's home go on until it is cancelled, however slow who watches it is."""
    set_epochs(hub, user, sample, 60_000)


def set_epochs(hub: LiveHub, user: str, sample: str, epochs: int) -> None:
    """Let the jobs of the sample in the user's home train for so long."""
    path = hub.homes / user / sample
    text, found = re.subn(r"(epochs, batch, [a-z, ]+ = )\d+,", rf"\g<1>{epochs},", path.read_text())
    assert found
    path.write_text(text)


@contextlib.contextmanager
def live_hub(home: Path, **environ: str) -> Iterator[LiveHub]:
    """Start a hub, hand it out, destroy it."""
    hub = LiveHub(home, **environ)
    try:
        hub.up()
        yield hub
    finally:
        hub.destroy()
