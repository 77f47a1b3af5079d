"""A real Alertmanager is asked by the process that sends: what it could not deliver is counted, and nothing else of it gets in."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from mlp_hub.service.alerts.deliveries import AlertDeliveries
from mlp_hub.service.config import AlertmanagerPolicy, NoticePolicy
from mlp_hub.service.notices.sender import Sender
from support.monitoring.alertmanager import Alertmanager, needs_alertmanager, running_alertmanager
from support.ports import free_port
from support.waiting import PATIENCE_S, until


class Answering(BaseHTTPRequestHandler):
    """Answers each request with the body of the server; a POST with 400, after which nobody tries again."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(400)
        self.end_headers()

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(getattr(self.server, "body", b""))

    def log_message(self, *args: object) -> None:
        """Print nothing."""


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    made = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


def watch(address: str) -> AlertDeliveries:
    made = AlertDeliveries(
        AlertmanagerPolicy(address),
        lambda: Sender(NoticePolicy(), None, only="alertmanager"),
        clock=time.time,
        steady=time.monotonic,
    )
    made._sender = made._make_sender()
    return made


def fire(at: Alertmanager) -> None:
    body = json.dumps([{"labels": {"alertname": "Test", "severity": "critical"}}]).encode()
    request = Request(f"http://{at.address}/api/v2/alerts", body, {"Content-Type": "application/json"})
    with urlopen(request, timeout=PATIENCE_S):  # noqa: S310 - of this test
        pass


@needs_alertmanager
async def test_a_notification_that_nobody_took_is_shown_with_its_way(
    tmp_path: Path, server: ThreadingHTTPServer
) -> None:
    config = {
        "route": {"receiver": "all", "group_wait": "0s", "group_interval": "1s"},
        "receivers": [
            {"name": "all", "webhook_configs": [{"url": f"http://127.0.0.1:{server.server_port}/"}]}
        ],
    }
    with running_alertmanager(tmp_path, config) as alertmanager:
        deliveries = watch(f"http://{alertmanager.address}/")
        try:
            await deliveries.look()
            shown = deliveries.shown()
            assert shown is not None
            assert (shown.state, shown.failed) == ("ok", {})
            fire(alertmanager)

            async def failed() -> bool:
                await deliveries.look()
                now = deliveries.shown()
                return now is not None and now.failed.get("webhook", 0) >= 1

            await until(failed, what="a notification that failed")
        finally:
            await deliveries.stop()


async def test_another_program_and_none_at_all_are_unknown(server: ThreadingHTTPServer) -> None:
    server.body = b'alertmanager_notifications_failed_total{integration="' + b"e" * (8 << 20)  # type: ignore[attr-defined]
    for address in (f"http://127.0.0.1:{server.server_port}", f"http://127.0.0.1:{free_port()}"):
        deliveries = watch(address)
        try:
            await deliveries.look()
            shown = deliveries.shown()
            assert shown is not None
            assert (shown.state, shown.failed) == ("unknown", {})
        finally:
            await deliveries.stop()
