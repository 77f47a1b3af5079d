"""Jupyter Servers as a notebook server of the hub is one, but without a hub."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx

from support.ports import free_port
from support.waiting import PATIENCE_S, wait_for

TOKEN = "of-this-server"


@dataclass
class JupyterServer:
    """One that runs: its process, its root and a client that is its user."""

    process: subprocess.Popen[bytes]
    root: Path
    url: str
    client: httpx.Client

    @property
    def peak(self) -> int:
        """Bytes of memory that its process alone has had at most, without kernels."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))


@contextmanager
def jupyter_server(directory: Path, *options: str, env: Mapping[str, str] = {}) -> Iterator[JupyterServer]:
    """Start one of user `ann` with its home and all that it writes below a directory; `env` are more variables."""
    home = directory / "home"
    home.mkdir(parents=True)
    known = {k: v for k, v in os.environ.items() if not k.startswith(("MLP_", "JUPYTER"))}
    port = free_port()
    command = [sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root", f"--port={port}"]
    traits = [
        f"--IdentityProvider.token={TOKEN}",
        "--ServerApp.base_url=/user/ann/",
        "--ServerApp.port_retries=0",
    ]
    ours = ["--ServerApp.jpserver_extensions=mlp.bridge=True", f"--ServerApp.root_dir={home}"]
    with (directory / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, *traits, *ours, *options],
            cwd=home,
            env={**known, **env, "HOME": str(home), "JUPYTER_RUNTIME_DIR": str(directory / "runtime")},
            stdout=log,
            stderr=log,
        )
    url = f"http://127.0.0.1:{port}"
    client = httpx.Client(
        base_url=f"{url}/user/ann/api", headers={"Authorization": f"token {TOKEN}"}, timeout=PATIENCE_S
    )

    def answers() -> bool:
        assert process.poll() is None, (directory / "server.log").read_text()
        with suppress(httpx.TransportError):
            return client.get("/status").status_code == 200
        return False

    try:
        wait_for(answers, message="for Jupyter Server")
        yield JupyterServer(process, home, url, client)
    finally:
        client.close()
        process.terminate()
        process.wait(PATIENCE_S)
