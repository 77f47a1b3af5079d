"""The bundled proxy as a process of its own, for tests."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mlp_hub import proxy
from mlp_hub.cli.http import HttpAnswer, request
from support.ports import free_port
from support.waiting import wait_for

TOKEN = "proxy-token"


class RunningProxy:
    """A proxy on a free port with its files in one directory; `hosts` and `limits` are those of its command line."""

    def __init__(
        self,
        directory: Path,
        *,
        open_files: int | None = None,
        hosts: Sequence[str] = ("my.example",),
        bind: str = "127.0.0.1",
        env: Mapping[str, str] | None = None,
        **limits: Any,
    ) -> None:
        self.env = dict(env or {})
        self.directory = directory
        self.open_files = open_files
        self.hosts = hosts
        self.bind = bind
        self.limits = limits
        self.port = free_port()
        self.api = directory / "api.sock"
        self.child: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.launch()
        assert self.child is not None

        def answers() -> bool:
            assert self.child is not None
            assert self.child.poll() is None, (self.directory / "log").read_text()
            # one that speaks TLS tells so
            return self.get("/_chp_healthz").status == (400 if "tls" in self.limits else 200)

        wait_for(answers, message="for the proxy to answer")

    def launch(self) -> None:
        command = proxy.launch_command(
            bind=self.bind,
            port=self.port,
            api_socket=self.api,
            routes=self.directory / "routes.json",
            hub=self.directory / "hub.sock",
            hosts=self.hosts,
            **self.limits,
        )
        if self.open_files is not None:
            command = ["prlimit", f"--nofile={self.open_files}:{self.open_files}", *command]
        env = {"PATH": os.environ["PATH"], "CONFIGPROXY_AUTH_TOKEN": TOKEN, **self.env}
        with (self.directory / "log").open("ab") as log:
            self.child = subprocess.Popen(command, env=env, stdout=log, stderr=log)

    def descriptors(self) -> int:
        """Count what it has open now."""
        assert self.child is not None
        return len(list(Path(f"/proc/{self.child.pid}/fd").iterdir()))

    def memory(self) -> int:
        """Return its resident memory in bytes."""
        assert self.child is not None
        pages = Path(f"/proc/{self.child.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def stop(self, *, kill: bool) -> None:
        assert self.child is not None
        (self.child.kill if kill else self.child.terminate)()
        self.child.wait(30)

    def get(self, path: str, **headers: str) -> HttpAnswer:
        return request(("127.0.0.1", self.port), "GET", path, headers=headers)

    def routes(
        self, method: str = "GET", path: str = "", body: object = None, token: str = TOKEN
    ) -> HttpAnswer:
        return request(
            self.api, method, f"/api/routes{path}", body=body, headers={"Authorization": f"token {token}"}
        )
