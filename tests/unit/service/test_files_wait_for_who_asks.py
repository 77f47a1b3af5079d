"""What serves datasets' files is loaded when somebody asks for any; who asks whether it lives is answered before that."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mlp_hub.dav.connections.first_request import FirstClients, until_asked

HEAVY = ("cheroot", "wsgidav", "mlp_hub.dav.serving", "asyncio", "sqlalchemy")


class Service:
    """A service that hears at once that nothing is under way."""

    token_state = "accepted"

    def __init__(self) -> None:
        self.heard = threading.Event()

    def begun(self) -> bool:
        self.heard.set()
        return True


@pytest.fixture
def opened() -> Iterator[list[socket.socket]]:
    """Sockets that are closed in the end, when signals do again what they did."""
    kept = {n: signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT)}
    made: list[socket.socket] = []
    yield made
    for each in made:
        each.close()
    for number, handler in kept.items():
        signal.signal(number, handler)


def connected(path: Path, sent: bytes) -> socket.socket:
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    while True:
        try:
            client.connect(str(path))
        except (FileNotFoundError, ConnectionRefusedError):
            continue
        client.sendall(sent)
        return client


def waited(tmp_path: Path, asks: Any) -> tuple[FirstClients, list[Any]]:
    """Return what comes of waiting while `asks` goes on in a thread, and what that found."""
    service, found = Service(), []
    thread = threading.Thread(
        target=lambda: found.append((service.heard.wait(30), asks(tmp_path / "public", tmp_path / "tenants")))
    )
    thread.start()
    asked = until_asked(tmp_path / "public", tmp_path / "tenants", service)  # type: ignore[arg-type]
    thread.join()
    return asked, found


def test_health_checks_are_answered_and_requests_for_files_are_kept(
    tmp_path: Path, opened: list[socket.socket]
) -> None:
    def asks(public: Path, _: Path) -> list[Any]:
        silent = connected(public, b"")
        answers = []
        for _ in range(2):
            with connected(public, b"GET /health HTTP/1.0\r\nHost: localhost\r\n\r\n") as client:
                head, _, body = b"".join(iter(lambda: client.recv(4096), b"")).partition(b"\r\n\r\n")
                answers.append((head.split(b"\r\n")[0], json.loads(body)["token"]))
        return [answers, silent, connected(public, b"GET /data/ann/pets/ HTTP/1.1\r\n\r\n")]

    asked, [(_, (answers, *clients))] = waited(tmp_path, asks)
    opened += [*clients, *asked.clients, *asked.listening.values()]
    assert answers == [(b"HTTP/1.1 200 OK", "accepted")] * 2
    assert len(asked.clients) == 2, "the silent one too: it may be slow"
    assert asked.clients[1].recv(100).startswith(b"GET /data/ann/pets/"), "nothing of it was taken"
    assert asked.begun
    assert set(asked.listening) == {str(tmp_path / "public"), str(tmp_path / "tenants")}


def test_a_connection_from_a_sandbox_is_left_to_the_file_server(
    tmp_path: Path, opened: list[socket.socket]
) -> None:
    asked, [(_, client)] = waited(tmp_path, lambda _, tenants: connected(tenants, b""))
    opened += [client, *asked.listening.values()]
    assert asked.clients == []
    listening = asked.listening[str(tmp_path / "tenants")]
    listening.settimeout(30)
    opened.append(listening.accept()[0])  # it waits in the system's queue


def test_the_waiting_process_has_not_loaded_the_file_server() -> None:
    code = f"import sys, mlp_hub.dav.__main__; print([m for m in {HEAVY} if m in sys.modules])"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"
