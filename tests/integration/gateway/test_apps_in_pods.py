"""The gateway before replicas that it reaches over a network, as those in pods: the one that is meant answers, or nobody."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mlp.serving.knocking import is_let_in
from support.proxy.gateway_rig import PREFIX, GatewayRig, StandIn, stand_in_handler

APP = f"{PREFIX}/ann/shop"
RIGHT, WRONG = "r" * 43, "w" * 43


class Pod(socketserver.ThreadingTCPServer):
    """What listens at the address of a pod, to who knows its key."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, app: StandIn, key: str) -> None:
        self.app, self.key = app, key
        super().__init__(("127.0.0.1", 0), stand_in_handler())
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def finish_request(self, request: Any, client_address: Any) -> None:
        if is_let_in(request, self.key):
            super().finish_request(request, client_address)

    def known_as(self, key: str) -> str:
        return f"{key}@127.0.0.1:{self.server_address[1]}"


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayRig]:
    with GatewayRig(Path(tmp_path_factory.mktemp("p")), body_max=8, answer_s=30, wake_s=30) as rig:
        rig.tenant("red", "rita", members=("ann",))
        rig.stand_in("ann", "shop", "red")
        yield rig


@pytest.fixture
def pods(rig: GatewayRig) -> Iterator[list[Pod]]:
    made = [Pod(rig.stand_ins[0], RIGHT) for _ in range(2)]
    yield made
    for pod in made:
        pod.shutdown()
        pod.server_close()


def where(rig: GatewayRig, key: str, *replicas: str) -> dict[str, str]:
    """Say where the app is; return what asks it, of a key that nothing is remembered of."""
    rig.put(rig.apps["ann", "shop"]._replace(replicas=replicas))
    return {"X_API_Key": rig.key("ann", "shop", key, rig.ann)}


def test_requests_reach_who_knows_the_key(rig: GatewayRig, pods: list[Pod]) -> None:
    asks = where(rig, "plain", *(pod.known_as(RIGHT) for pod in pods))
    for _ in range(3):
        assert rig.visit(f"{APP}/a", **asks).json["path"] == "/a"
    sent = rig.visit(f"{APP}/b", method="POST", body=b"x" * 3_000_000, **asks)
    assert sent.json["size"] == 3_000_000


def test_another_at_the_address_gets_no_request_and_the_visitor_comes_to_the_one_that_is_right(
    rig: GatewayRig, pods: list[Pod]
) -> None:
    app = rig.stand_ins[0]
    before = len(app.asked)
    asks = where(rig, "foreign", pods[0].known_as(WRONG))
    answer = rig.visit(f"{APP}/secret", method="POST", body=b"secret", **asks)
    assert answer.status == 503
    assert "does not answer" in answer.json["msg"]
    assert len(app.asked) == before
    asks = where(rig, "both", pods[0].known_as(WRONG), pods[1].known_as(RIGHT))
    assert {rig.visit(f"{APP}/", **asks).status for _ in range(6)} == {200}


def test_a_websocket_passes_too(rig: GatewayRig, pods: list[Pod]) -> None:
    asks = where(rig, "socket", pods[0].known_as(RIGHT))
    with rig.connection() as connection:
        connection.putrequest("GET", f"{APP}/ws", skip_host=True)
        upgrade = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Key": "x" * 22 + "=="}
        for name, value in {
            "Host": f"localhost:{rig.proxy.port}",
            "Sec-WebSocket-Version": "13",
            "X-API-Key": asks["X_API_Key"],
            **upgrade,
        }.items():
            connection.putheader(name, value)
        connection.endheaders()
        assert connection.sock.recv(65536).startswith(b"HTTP/1.1 101")
        connection.sock.sendall(b"there and back")
        assert connection.sock.recv(65536) == b"there and back"
