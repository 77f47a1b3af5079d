"""A real Alertmanager (Debian's package `prometheus-alertmanager`), and those who receive its alerts: a mail server and a webhook."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import default
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
import yaml
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult

from support.ports import free_port
from support.programs import running_program
from support.waiting import PATIENCE_S

PROGRAM = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")
needs_alertmanager = pytest.mark.skipif(
    PROGRAM is None or shutil.which("amtool") is None,
    reason="there is no alertmanager here: apt-get install prometheus-alertmanager",
)


def amtool(*words: str | Path) -> str:
    """Return what amtool prints; raise AssertionError with that where it fails."""
    done = subprocess.run(["amtool", *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


class Alertmanager:
    """One that runs, at a port of loopback."""

    def __init__(self, address: str) -> None:
        self.address = address

    def alerts(self) -> dict[str, dict[str, Any]]:
        """Return the present alerts by name, with `status`: its `state`, and `inhibitedBy`."""
        with urlopen(f"http://{self.address}/api/v2/alerts", timeout=PATIENCE_S) as answer:
            return {one["labels"]["alertname"]: one for one in json.load(answer)}


@contextmanager
def running_alertmanager(root: Path, config: dict[str, Any]) -> Iterator[Alertmanager]:
    """Run one with this configuration, which is checked first."""
    root.mkdir(parents=True, exist_ok=True)
    file = root / "alertmanager.yml"
    file.write_text(yaml.safe_dump(config))
    amtool("check-config", file)

    def words(address: str) -> list[str]:
        return [
            str(PROGRAM),
            f"--config.file={file}",
            f"--storage.path={root / 'data'}",
            f"--web.listen-address={address}",
            "--cluster.listen-address=",
        ]

    with running_program("Alertmanager", root / "log", words, Alertmanager) as found:
        yield found


class _Letters:
    def __init__(self) -> None:
        self.got: list[EmailMessage] = []

    async def handle_MAIL(  # noqa: N802 - the library's name
        self, _server: Any, session: Any, envelope: Any, address: str, options: list[str]
    ) -> str:
        if not session.authenticated:
            return "530 5.7.0 Authentication required"
        envelope.mail_from = address
        envelope.mail_options.extend(options)
        return "250 OK"

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802 - the library's name
        self.got.append(BytesParser(EmailMessage, policy=default).parsebytes(envelope.content))
        return "250 OK"


@contextmanager
def mail_server(user: str, password: str) -> Iterator[tuple[int, list[EmailMessage]]]:
    """Run one that takes mail after this login alone; yield its port and the letters that came."""
    letters, port = _Letters(), free_port()

    def check(_server: Any, _session: Any, _envelope: Any, _kind: Any, given: Any) -> AuthResult:
        return AuthResult(
            success=(given.login, given.password) == (user.encode(), password.encode()), handled=False
        )

    server = Controller(
        letters,
        hostname="127.0.0.1",
        port=port,
        authenticator=check,
        auth_require_tls=False,  # of loopback
        auth_exclude_mechanism=["LOGIN"],  # its challenges have a NUL here, which Alertmanager refuses
    )
    server.start()
    try:
        yield port, letters.got
    finally:
        server.stop()


@contextmanager
def webhook() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Run one; yield its address and the alerts that came, the earliest first. It takes other bodies too."""
    got: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            got.extend(json.loads(body).get("alerts", ()))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/alerts", got
        finally:
            server.shutdown()
            thread.join()
