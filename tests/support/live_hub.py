"""A real hub for tests: the installed `mlp-hub` with a state directory and a port of its own."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx

BIN = Path(sys.executable).parent
LOGS = Path(__file__).resolve().parents[2] / "build" / "hub-logs"
PASSWORD = "correct horse battery"


def free_port() -> int:
    """Return a TCP port of the loopback that nobody listens on now."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def wait_for(what: Callable[[], Any], timeout: float = 60.0, every: float = 0.1, message: str = "") -> Any:
    """Call until something true comes back; the timeout only bounds a failing test."""
    deadline = time.monotonic() + timeout
    while True:
        value = what()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout:g} s in vain {message}; last answer: {value!r}")
        time.sleep(every)


class LiveHub:
    """A hub that was started with `mlp-hub up`, and short words to talk to it as any user."""

    def __init__(self, home: Path, port: int | None = None, **environ: str) -> None:
        self.home = home
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.env = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("MLP_", "JUPYTERHUB_"))},
            "MLP_HOME": str(home),
            "MLP_PORT": str(self.port),
            **environ,
        }
        self._tokens: dict[str, str] = {}
        self.http = httpx.Client(base_url=self.url, timeout=30, trust_env=False)

    # ------------------------------------------------------------------ command

    def run(self, *args: str, check: bool = True, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run `mlp-hub ARGS` against this hub."""
        done = subprocess.run(
            [str(BIN / "mlp-hub"), *args],
            env=self.env,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        if check and done.returncode:
            raise AssertionError(
                f"mlp-hub {' '.join(args)} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
            )
        return done

    def up(self) -> str:
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
        self.http.close()
        with contextlib.suppress(AssertionError, subprocess.TimeoutExpired):
            self.down(jobs="stop")
        with contextlib.suppress(OSError):
            shutil.copytree(
                self.home / "log", LOGS / f"{time.strftime('%H%M%S')}-{self.port}", dirs_exist_ok=True
            )
        shutil.rmtree(self.home, ignore_errors=True)

    # -------------------------------------------------------------------- people

    @property
    def admin_password(self) -> str:
        return (self.home / "secrets" / "admin-password").read_text().strip()

    def add_user(self, name: str, tenant: str | None = None, admin: bool = False) -> None:
        args = ["user", "add", name, "--password-stdin"]
        args += ["--tenant", tenant] if tenant else []
        args += ["--admin"] if admin else []
        self.run(*args, stdin=PASSWORD + "\n")

    def token(self, user: str) -> str:
        if user not in self._tokens:
            self._tokens[user] = self.run("token", "--user", user).stdout.strip()
        return self._tokens[user]

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

    def wait_phase(self, user: str, name: str, *phases: str, timeout: float = 120.0) -> dict[str, Any]:
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

        path = f"/services/mlp/api/v1/users/{user}/jobs/{name}:stream?since=0"
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
        return int(self.status()["components"][component]["pid"])

    def kill(self, component: str) -> int:
        """SIGKILL a component and return the pid that it had."""
        pid = self.pid(component)
        os.kill(pid, signal.SIGKILL)
        return pid

    def wait_back(self, component: str, old_pid: int, timeout: float = 60.0) -> None:
        """Wait until the component runs again as another process and answers."""

        def back() -> bool:
            with contextlib.suppress(KeyError, TypeError, ValueError, json.JSONDecodeError):
                if self.pid(component) != old_pid:
                    with contextlib.suppress(httpx.TransportError):
                        return self.call("GET", "/session", "admin").status_code == 200
            return False

        wait_for(back, timeout, 0.3, f"for {component} to come back")


def tenant_use(hub: LiveHub, tenant: str = "default") -> dict[str, float]:
    """Return what is in use of a tenant's quota."""
    t = hub.ok("GET", f"/tenants/{tenant}")
    return {k: t[f"{k}_inuse"] for k in ("cpu", "gpu", "ram")}


@contextlib.contextmanager
def live_hub(home: Path, **environ: str) -> Iterator[LiveHub]:
    """Start a hub, hand it out, destroy it."""
    hub = LiveHub(home, **environ)
    try:
        hub.up()
        yield hub
    finally:
        hub.destroy()
