"""What the gateway adds to a request to an app, beside the bare server."""

from __future__ import annotations

import http.client
import socket
import statistics
import time
from pathlib import Path

from bench_common import Context, Figure
from support.proxy.gateway_rig import PREFIX, GatewayRig

NAME = "apps"
ABOUT = (
    "3,000 GETs of some hundred bytes one after another on one connection to a small server on a UNIX socket, by its socket and through the "
    "gateway with a key: medians and 99th percentiles, and what the gateway adds"
)
ASKED, WARM = 3000, 200


def run(context: Context) -> list[Figure]:
    """Measure both."""
    root = context.tmp / "apps"
    root.mkdir(parents=True)
    with GatewayRig(root, key_rate=1e6, tenant_rate=1e6) as rig:
        rig.tenant("red", "rita", members=("ann",))
        (app,) = rig.stand_in("ann", "shop", "red")
        key = rig.key("ann", "shop", "bench", rig.ann)
        bare = _times(_Unix(app.path), "/", {})
        gateway = http.client.HTTPConnection("127.0.0.1", rig.proxy.port)
        through = _times(
            gateway, f"{PREFIX}/ann/shop/", {"X-API-Key": key, "Host": f"localhost:{rig.proxy.port}"}
        )
    figures = []
    for name, at in (("p50", 0.5), ("p99", 0.99)):
        own, with_it = _at(bare, at), _at(through, at)
        note = f"{own:.2f} ms by its socket, {with_it:.2f} ms through the gateway"
        figures.append(
            Figure(
                f"added by the gateway to apps, {name}",
                with_it - own,
                "ms",
                note=note,
                command="make bench ONLY=apps",
            )
        )
    return figures


def _times(connection: http.client.HTTPConnection, path: str, headers: dict[str, str]) -> list[float]:
    found = []
    for _ in range(WARM + ASKED):
        begun = time.perf_counter()
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        answer.read()
        found.append((time.perf_counter() - begun) * 1000)
        if answer.status != 200:
            raise RuntimeError(f"{path} answered {answer.status}")
    connection.close()
    return found[WARM:]


def _at(times: list[float], share: float) -> float:
    return statistics.quantiles(times, n=100, method="inclusive")[round(share * 100) - 1]


class _Unix(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost")
        self._path = str(path)

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(self._path)
