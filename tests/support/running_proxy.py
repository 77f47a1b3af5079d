"""The bundled proxy as a process of its own, for tests."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

from live_hub import free_port
from mlp_hub import proxy
from mlp_hub.cli.http import Answer, request

TOKEN = "proxy-token"


class RunningProxy:
    """A proxy on a free port with its files in one directory; `limits` are those of its command line."""

    def __init__(self, directory: Path, *, open_files: int | None = None, **limits: int) -> None:
        self.directory = directory
        self.open_files = open_files
        self.limits = limits
        self.port = free_port()
        self.api = directory / "api.sock"
        self.child: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.launch()
        assert self.child is not None
        deadline = time.monotonic() + 30
        while self.get("/_chp_healthz").status != 200:
            assert self.child.poll() is None, (self.directory / "log").read_text()
            assert time.monotonic() < deadline, "the proxy does not answer"
            time.sleep(0.02)

    def launch(self) -> None:
        command = proxy.launch_command(
            bind="127.0.0.1",
            port=self.port,
            api_socket=self.api,
            routes=self.directory / "routes.json",
            hub_socket=self.directory / "hub.sock",
            hosts=["my.example"],
            **self.limits,
        )
        if self.open_files is not None:
            command = ["prlimit", f"--nofile={self.open_files}:{self.open_files}", *command]
        env = {"PATH": os.environ["PATH"], "CONFIGPROXY_AUTH_TOKEN": TOKEN}
        with (self.directory / "log").open("ab") as log:
            self.child = subprocess.Popen(command, env=env, stdout=log, stderr=log)

    def stop(self, *, kill: bool) -> None:
        assert self.child is not None
        (self.child.kill if kill else self.child.terminate)()
        self.child.wait(30)

    def get(self, path: str, **headers: str) -> Answer:
        return request(("127.0.0.1", self.port), "GET", path, headers=headers)

    def routes(self, method: str = "GET", path: str = "", body: object = None, token: str = TOKEN) -> Answer:
        return request(
            self.api, method, f"/api/routes{path}", body=body, headers={"Authorization": f"token {token}"}
        )
