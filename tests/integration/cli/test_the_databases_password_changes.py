"""The password of the databases is changed at their server: a part that starts says so, and works again with the new one."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.hubs.live_hub import BIN
from support.ports import free_port
from support.stores.postgres import PostgresServer, postgres_server
from support.waiting import PATIENCE_S, wait_for

WAIT = """import os
from mlp_hub.cli.lifecycle.pod_tables import wait_for_tables
from mlp_hub.settings import Settings
wait_for_tables(Settings.load(os.environ))
"""
"""First act of a service in a pod."""
SAID = "The platform's database does not answer: "
REMEDY = (
    "The server knows another password. In a cluster put the new one into the Secret of database.existingSecret, and start the pods again; "
    "on a machine set it in the URL of the database."
)


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        server.asks_password_of("keeper")
        server.run("CREATE ROLE {} LOGIN PASSWORD 'first'", "keeper")
        for name in ("platform", "hub"):
            server.run("CREATE DATABASE {}", name)
            server.run("ALTER DATABASE {} OWNER TO keeper", name)
        yield server


def environ(root: Path, server: PostgresServer, password: str) -> dict[str, str]:
    urls = {
        f"MLP_{of}DATABASE_URL": server.url(name).replace("//postgres@", f"//keeper:{password}@")
        for of, name in (("", "platform"), ("HUB_", "hub"))
    }
    return {
        "PATH": f"{BIN}:/usr/bin:/bin",
        "HOME": str(root),
        "MLP_HOME": str(root / "home"),
        "MLP_PORT": str(free_port()),
        "MLP_EXECUTOR": "simulated",
        "MLP_ALLOW_NO_SANDBOX": "1",
        **urls,
    }


def test_a_part_names_the_changed_password_and_works_again_with_the_new_one(
    server: PostgresServer, tmp_path: Path
) -> None:
    made = subprocess.run([BIN / "mlp-hub", "pod", "secrets"], capture_output=True, text=True, check=True)
    mounted = tmp_path / "mounted"
    mounted.mkdir()
    for name, value in json.loads(made.stdout)["data"].items():
        (mounted / name).write_bytes(base64.b64decode(value))

    def wait(password: str, **more: object) -> subprocess.Popen[str]:
        command = [BIN / "python", "-c", WAIT]
        return subprocess.Popen(command, env=environ(tmp_path, server, password), text=True, **more)  # type: ignore[call-overload]

    upgrade = [BIN / "mlp-hub", "pod", "setup", "--secrets", str(mounted)]
    made = subprocess.run(
        upgrade, env=environ(tmp_path, server, "first"), capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stdout + made.stderr
    server.run("ALTER ROLE {} PASSWORD 'second'", "keeper")
    log = tmp_path / "log"
    with log.open("w") as to:
        waiting = wait("first", stdout=to, stderr=to)
        try:
            wait_for(lambda: SAID in log.read_text() and REMEDY in log.read_text())
        finally:
            waiting.kill()
            waiting.wait(PATIENCE_S)
    assert "password authentication failed" in log.read_text()
    assert "first" not in log.read_text()
    assert wait("second").wait(PATIENCE_S) == 0
