"""Replicas that are reached over a network: they answer those who know their key, and show that they know it themselves."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from mlp.serving.knocking import PROTOCOL, Knock
from mlp.serving.launch import listen
from mlp.serving.loaders import LoadedModel
from mlp.serving.server import ModelServer
from mlp_hub.service.apps.connecting import connect
from mlp_hub.service.apps.probing import ReplicaProbe, answers_now
from support.ports import free_port
from support.waiting import until

KEY = "k" * 43


class Nothing(LoadedModel):
    """Serves nothing; it is only asked whether it is ready."""

    platform = "none"

    def __init__(self) -> None:
        self.inputs, self.outputs = [], []

    def predict(self, inputs: dict[str, Any]) -> dict[str, Any]:
        return inputs


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Have a model served to those who know the key."""
    monkeypatch.setenv("MLP_APP_PORT", "0")
    with listen() as listener:
        server = ModelServer(listener, Nothing(), "echo", "3", KEY)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield listener.getsockname()[1]
        server.shutdown()
        thread.join()


def probe(address: str) -> bool:
    return asyncio.run(answers_now(ReplicaProbe(address, "/v2/health/ready", any_answer=False)))


def test_a_client_that_knows_the_key_is_answered(port: int) -> None:
    assert probe(f"{KEY}@127.0.0.1:{port}")
    assert probe(f"{KEY}@[::1]:{port}") or not socket.has_dualstack_ipv6()


def test_a_client_without_the_key_is_not_answered(port: int) -> None:
    assert not probe(f"{'x' * 43}@127.0.0.1:{port}")
    assert not probe(f"127.0.0.1:{port}")


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /v2/health/ready HTTP/1.1\r\nHost: app\r\n\r\n" + b"x" * 100,
        PROTOCOL + b"0" * 64 + b"\n" + b"0" * 64 + b"\n",
        PROTOCOL + b"0" * 64 + b"x",
        PROTOCOL,
        b"",
    ],
)
def test_an_invalid_handshake_gets_no_answer(port: int, sent: bytes) -> None:
    said = b""
    with (
        socket.create_connection(("127.0.0.1", port), 30) as link,
        contextlib.suppress(OSError),  # it may be closed before all was sent
    ):
        link.sendall(sent)
        link.shutdown(socket.SHUT_WR)
        while part := link.recv(65536):
            said += part
    assert b"HTTP" not in said


def test_a_proof_is_good_for_its_own_connection_only() -> None:
    one, other = Knock(KEY), Knock(KEY)
    hello = PROTOCOL + b"0" * 64 + b"\n"
    first, second = one.answer(hello), other.answer(hello)
    assert first[:64] == second[:64]
    assert first[65:] != second[65:]


def test_another_program_at_a_replica_s_address_is_told_nothing() -> None:
    heard = b""

    def listens(server: socket.socket) -> None:
        nonlocal heard
        link, _ = server.accept()
        with link:
            link.sendall(b"f" * 64 + b" " + b"0" * 64 + b"\n")
            while part := link.recv(65536):
                heard += part

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=listens, args=(server,))
        thread.start()
        assert not probe(f"{KEY}@127.0.0.1:{server.getsockname()[1]}")
        thread.join()
    assert heard.startswith(PROTOCOL)
    assert len(heard) == len(PROTOCOL) + 65
    assert KEY.encode() not in heard


async def test_a_command_is_reached_by_the_key_too() -> None:
    outer, free = free_port(), free_port()
    command = f"exec {sys.executable} -m http.server {free} --bind 127.0.0.1"
    argv = [sys.executable, "-m", "mlp.serving", "--port", str(free), "--command", command]
    env = {**os.environ, "MLP_APP_PORT": str(outer), "MLP_APP_KEY": KEY}

    replica = await asyncio.to_thread(
        lambda: subprocess.Popen(argv, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    )
    try:

        async def answers() -> bool:
            return await answers_now(ReplicaProbe(f"{KEY}@127.0.0.1:{outer}", "/", any_answer=True))

        await until(answers, what="the command to answer", every=0.05)
        assert not await answers_now(ReplicaProbe(f"127.0.0.1:{outer}", "/", any_answer=True))
        with pytest.raises(ConnectionRefusedError, match="not the replica"):
            await connect(f"wrong@127.0.0.1:{outer}")
    finally:
        replica.terminate()
        replica.wait()
