"""Parts of a hub that share no directory: each as `mlp-hub pod` starts it, with its own secrets, and all ways between them by TCP."""

from __future__ import annotations

import base64
import json
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from support.hubs.live_hub import BIN
from support.ports import free_port
from support.stores.postgres import PostgresServer, postgres_server
from support.waiting import PATIENCE_S, wait_for

SECRETS = {
    "hub": ("cookie_secret", "crypt_key", "proxy_token", "service_token", "spawner_token", "data_token", "gateway_token", "operator_token", "admin-password"),
    "service": ("cookie_secret", "secrets_key", "proxy_token", "service_token"),
    "data": ("data_token",),
    "proxy": ("proxy_token", "gateway_token"),
}  # fmt: skip
"""Secrets of each part, as the chart mounts them."""
ALLOWED, STRANGE = "127.0.0.7", "127.0.0.8"


class Parts:
    """A hub in four state directories."""

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


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        for name in ("platform_one", "hub_one"):
            server.run("CREATE DATABASE {}", name)
        yield server


@pytest.fixture(scope="module")
def parts(server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parts]:
    made = Parts(tmp_path_factory.mktemp("parts"), server)
    # the others wait for the databases and for their secrets, in whichever order they are started
    for part in ("proxy", "data"):
        made.start(part)
    done = made.setup()
    assert done.returncode == 0, done.stderr
    waited = made.command("service", "pod", "wait", "--secrets", str(made.mounted("service")))
    assert waited.returncode == 0, waited.stderr
    for part in ("service", "hub"):
        made.start(part)
    try:
        wait_for(
            lambda: made.status("/hub/login") == 200 and made.status("/services/mlp/api/v1/ready") == 200
        )
        wait_for(lambda: b"administrator account made" in (made.root / "hub.log").read_bytes())
        yield made
    finally:
        made.end()


@pytest.fixture(scope="module")
def token(parts: Parts) -> str:
    """A token of the administrator, made by the operator's command in the hub's directory."""
    made = parts.command("hub", "token", "--user", "admin")
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


def test_the_hub_answers_at_the_proxys_port_and_a_token_reaches_the_service(parts: Parts, token: str) -> None:
    answer = parts.get("/services/mlp/api/v1/session", Authorization=f"Bearer {token}")
    assert answer is not None
    assert answer.status_code == 200
    assert answer.json()["username"] == "admin"


def test_the_data_process_asks_the_service(parts: Parts, token: str) -> None:
    assert parts.status("/data/admin/none/file", Authorization=f"Bearer {token}") == 404
    assert parts.status("/data/admin/none/file", Authorization="Bearer wrong") == 401
    health = parts.get("/services/mlp/api/v1/health")
    assert health is not None
    assert health.json()["status"] == "ok", health.text


def test_the_service_and_the_spawner_know_each_other(parts: Parts) -> None:
    made = parts.command("hub", "user", "add", "ann")
    assert made.returncode == 0, made.stderr
    assert "ann can log in" in made.stdout


def test_a_hub_that_starts_again_is_found_again(parts: Parts, token: str) -> None:
    parts.end("hub")
    # routes stay, and the service answers meanwhile
    assert parts.status("/services/mlp/api/v1/ready") == 200
    parts.start("hub")
    wait_for(lambda: parts.status("/hub/api/user", Authorization=f"token {token}") == 200)


def test_a_proxy_that_starts_again_gets_its_routes_from_the_hub(parts: Parts, token: str) -> None:
    parts.end("proxy")
    (parts.root / "proxy" / "run" / "private" / "routes.json").unlink(missing_ok=True)  # a new pod has none
    parts.start("proxy")
    wait_for(lambda: parts.status("/services/mlp/api/v1/session", Authorization=f"Bearer {token}") == 200)


@pytest.mark.parametrize(("source", "served"), [(ALLOWED, True), (STRANGE, False)])
def test_the_hubs_own_port_serves_the_named_networks_only(parts: Parts, source: str, *, served: bool) -> None:
    with socket.create_connection(("127.0.0.1", parts.own), 10, (source, 0)) as link:
        link.sendall(b"GET /hub/health HTTP/1.0\r\nHost: localhost\r\n\r\n")
        try:
            answer = link.recv(4096)
        except ConnectionResetError:
            answer = b""
    assert (b" 200 " in answer.split(b"\r\n", 1)[0]) is served


def test_setup_is_repeated_without_effect(parts: Parts) -> None:
    again = parts.setup()
    assert again.returncode == 0, again.stderr


def test_another_installation_does_not_get_these_databases(
    parts: Parts, server: PostgresServer, tmp_path: Path
) -> None:
    other = Parts(tmp_path, server)
    refused = other.setup()
    assert refused.returncode == 1
    assert "belongs to another installation" in refused.stderr
    assert parts.status("/services/mlp/api/v1/ready") == 200


def test_a_secret_that_lacks_keys_is_refused_with_their_names(server: PostgresServer, tmp_path: Path) -> None:
    lacking = Parts(tmp_path, server)
    folder = lacking.mounted("hub")
    (folder / "spawner_token").unlink()
    refused = lacking.command("hub", "pod", "setup", "--secrets", str(folder))
    assert refused.returncode == 1
    assert "lacks spawner_token" in refused.stderr


def test_an_empty_database_beside_files_of_people_is_refused(server: PostgresServer, tmp_path: Path) -> None:
    for name in ("platform_two", "hub_two"):
        server.run("CREATE DATABASE {}", name)
    late = Parts(tmp_path, server, "two")
    (tmp_path / "hub" / "homes" / "ann").mkdir(parents=True)
    refused = late.setup()
    assert refused.returncode == 1
    assert "is empty, and the volume has files of people" in refused.stderr
    assert late.setup("--new-database").returncode == 0
