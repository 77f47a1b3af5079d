"""HubParts of a hub that share no directory: each as `mlp-hub pod` starts it, with its own secrets, and all ways between them by TCP."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.hubs.hub_parts import ALLOWED, HubParts
from support.stores.postgres import PostgresServer, postgres_server
from support.waiting import wait_for

STRANGE = "127.0.0.8"


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        for name in ("platform_one", "hub_one"):
            server.run("CREATE DATABASE {}", name)
        yield server


@pytest.fixture(scope="module")
def parts(server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubParts]:
    made = HubParts(tmp_path_factory.mktemp("parts"), server)
    # the others wait for the databases and for their secrets, in whichever order they are started
    for part in ("proxy", "data"):
        made.start(part)
    done = made.setup()
    assert done.returncode == 0, done.stderr
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
def token(parts: HubParts) -> str:
    """A token of the administrator, made by the operator's command in the hub's directory."""
    made = parts.command("hub", "token", "--user", "admin")
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


def test_the_hub_answers_at_the_proxys_port_and_a_token_reaches_the_service(
    parts: HubParts, token: str
) -> None:
    answer = parts.get("/services/mlp/api/v1/session", Authorization=f"Bearer {token}")
    assert answer is not None
    assert answer.status_code == 200
    assert answer.json()["username"] == "admin"


def test_the_data_process_asks_the_service(parts: HubParts, token: str) -> None:
    assert parts.status("/data/admin/none/file", Authorization=f"Bearer {token}") == 404
    assert parts.status("/data/admin/none/file", Authorization="Bearer wrong") == 401
    health = parts.get("/services/mlp/api/v1/health")
    assert health is not None
    assert health.json()["status"] == "ok", health.text


def test_the_service_and_the_spawner_know_each_other(parts: HubParts) -> None:
    made = parts.command("hub", "user", "add", "ann")
    assert made.returncode == 0, made.stderr
    assert "ann can log in" in made.stdout


def test_a_hub_that_starts_again_is_found_again(parts: HubParts, token: str) -> None:
    parts.end("hub")
    # routes stay, and the service answers meanwhile
    assert parts.status("/services/mlp/api/v1/ready") == 200
    parts.start("hub")
    wait_for(lambda: parts.status("/hub/api/user", Authorization=f"token {token}") == 200)


def test_a_proxy_that_starts_again_gets_its_routes_from_the_hub(parts: HubParts, token: str) -> None:
    parts.end("proxy")
    (parts.root / "proxy" / "run" / "private" / "routes.json").unlink(missing_ok=True)  # a new pod has none
    parts.start("proxy")
    wait_for(lambda: parts.status("/services/mlp/api/v1/session", Authorization=f"Bearer {token}") == 200)


@pytest.mark.parametrize(("source", "served"), [(ALLOWED, True), (STRANGE, False)])
def test_the_hubs_own_port_serves_the_named_networks_only(
    parts: HubParts, source: str, *, served: bool
) -> None:
    with socket.create_connection(("127.0.0.1", parts.own), 10, (source, 0)) as link:
        link.sendall(b"GET /hub/health HTTP/1.0\r\nHost: localhost\r\n\r\n")
        try:
            answer = link.recv(4096)
        except ConnectionResetError:
            answer = b""
    assert (b" 200 " in answer.split(b"\r\n", 1)[0]) is served


def test_setup_is_repeated_without_effect(parts: HubParts) -> None:
    again = parts.setup()
    assert again.returncode == 0, again.stderr


def test_another_installation_does_not_get_these_databases(
    parts: HubParts, server: PostgresServer, tmp_path: Path
) -> None:
    other = HubParts(tmp_path, server)
    refused = other.setup()
    assert refused.returncode == 1
    assert "belongs to another installation" in refused.stderr
    assert parts.status("/services/mlp/api/v1/ready") == 200


def test_a_secret_that_lacks_keys_is_refused_with_their_names(server: PostgresServer, tmp_path: Path) -> None:
    lacking = HubParts(tmp_path, server)
    folder = lacking.mounted("hub")
    (folder / "spawner_token").unlink()
    refused = lacking.command("hub", "pod", "setup", "--secrets", str(folder))
    assert refused.returncode == 1
    assert "lacks spawner_token" in refused.stderr


def test_an_empty_database_beside_files_of_people_is_refused(server: PostgresServer, tmp_path: Path) -> None:
    for name in ("platform_two", "hub_two"):
        server.run("CREATE DATABASE {}", name)
    late = HubParts(tmp_path, server, "two")
    (tmp_path / "hub" / "homes" / "ann").mkdir(parents=True)
    refused = late.setup()
    assert refused.returncode == 1
    assert "is empty, and the volume has files of people" in refused.stderr
    assert late.setup("--new-database").returncode == 0
