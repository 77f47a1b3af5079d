"""The parts of a hub as `mlp-hub pod` starts them: each with its own directory and secrets, and all ways between them by TCP."""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path

import httpx

from support.hubs.live_hub import BIN
from support.ports import free_port
from support.stores.postgres import PostgresServer
from support.waiting import PATIENCE_S

SECRETS = {
    "hub": ("cookie_secret", "crypt_key", "proxy_token", "service_token", "spawner_token", "data_token", "gateway_token", "operator_token", "admin-password"),
    "service": ("cookie_secret", "secrets_key", "proxy_token", "service_token"),
    "data": ("data_token",),
    "proxy": ("proxy_token", "gateway_token"),
}  # fmt: skip
"""Secrets of each part, as the chart mounts them."""
ALLOWED = "127.0.0.7"
"""Address whose connections the hub's and the service's own ports take too."""


class HubParts:
    """A hub in four state directories, on databases of this name."""

    def __init__(self, root: Path, server: PostgresServer, name: str = "one") -> None:
        self.root, self.secrets = root, json.loads(self._secrets(root))
        names = (
            "PORT", "PROXY_LISTEN", "HUB_LISTEN", "SERVICE_LISTEN", "DATA_LISTEN",
            "HUB_LISTEN_TENANTS", "SERVICE_LISTEN_TENANTS", "DATA_LISTEN_TENANTS",
        )  # fmt: skip
        ports = {each: free_port() for each in names}
        addresses = {f"MLP_{each}": f"127.0.0.1:{port}" for each, port in ports.items() if each != "PORT"}
        for part in ("PROXY", "HUB", "SERVICE", "DATA"):
            addresses[f"MLP_{part}_ADDRESS"] = addresses[f"MLP_{part}_LISTEN"]
        self.port, self.own = ports["PORT"], ports["HUB_LISTEN"]
        self.env = {
            "PATH": f"{BIN}:/usr/bin:/bin",
            "HOME": str(root),
            "MLP_PORT": str(self.port),
            "MLP_EXECUTOR": "simulated",
            "MLP_ALLOW_NO_SANDBOX": "1",
            "MLP_DATABASE_URL": server.url(f"platform_{name}"),
            "MLP_HUB_DATABASE_URL": server.url(f"hub_{name}"),
            "MLP_SERVICE_PROXIES": f"127.0.0.1,{ALLOWED}",
            **addresses,
        }
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    @staticmethod
    def _secrets(root: Path) -> str:
        made = subprocess.run(
            [BIN / "mlp-hub", "pod", "secrets"],
            capture_output=True,
            text=True,
            check=True,
            env={"HOME": str(root)},
        )
        return made.stdout

    def command(self, part: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command of the operator in a part's directory."""
        env = {**self.env, "MLP_HOME": str(self.root / part)}
        return subprocess.run(
            [BIN / "mlp-hub", *words],
            env=env,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    def mounted(self, part: str) -> Path:
        """Lay a part's secrets where the cluster would mount them, and return the directory."""
        folder = self.root / f"secrets-{part}"
        folder.mkdir(exist_ok=True)
        for name in SECRETS[part]:
            (folder / name).write_bytes(base64.b64decode(self.secrets["data"][name]))
        return folder

    def setup(self, *more: str) -> subprocess.CompletedProcess[str]:
        return self.command("hub", "pod", "setup", "--secrets", str(self.mounted("hub")), *more)

    def start(self, part: str) -> None:
        env = {**self.env, "MLP_HOME": str(self.root / part)}
        with (self.root / f"{part}.log").open("ab") as log:
            self.running[part] = subprocess.Popen(
                [BIN / "mlp-hub", "pod", part, "--secrets", str(self.mounted(part))],
                env=env,
                stdout=log,
                stderr=log,
            )

    def end(self, *parts: str) -> None:
        for part in parts or tuple(self.running):
            self.running[part].terminate()
        for part in parts or tuple(self.running):
            self.running.pop(part).wait(PATIENCE_S)

    def get(self, path: str, **headers: str) -> httpx.Response | None:
        try:
            return httpx.get(f"http://localhost:{self.port}{path}", headers=headers, timeout=10)
        except httpx.TransportError:
            return None

    def status(self, path: str, **headers: str) -> int:
        answer = self.get(path, **headers)
        return 0 if answer is None else answer.status_code
