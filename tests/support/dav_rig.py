"""The process that serves datasets' files, around a real service; killed and started again as tests like."""

from __future__ import annotations

import http.client
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from api_rig import Answer, ApiRig
from waiting import PATIENCE_S, wait_for

_PROGRAM = """
import logging, os, sys
from pathlib import Path
from mlp_hub.dav.__main__ import make_door, serve
from mlp_hub.dav.service import ServiceDoor
logging.basicConfig(stream=sys.stderr, level="INFO", format="%(message)s")
root, service, token, *path = sys.argv[1:]
where = Path(path[0]) if path else ("127.0.0.1", 0)
known = ServiceDoor(Path(service), token)
serve(where, make_door(Path(root), known), known)
os._exit(0)
"""
_LISTENS = re.compile(r"listening on \('127\.0\.0\.1', (\d+)\)")


class DavRig:
    """Files of the datasets of an `ApiRig`."""

    def __init__(self, rig: ApiRig, log: Path, root: Path | None = None) -> None:
        self.rig = rig
        self.root = rig.root if root is None else root
        self._log = log
        self.process: subprocess.Popen[bytes] | None = None
        self.port = 0

    def start(self) -> None:
        """Start the process, and wait until it serves."""
        argv = [
            sys.executable,
            "-c",
            _PROGRAM,
            str(self.root),
            str(self.rig.sockets[True]),
            self.rig.spawner,
        ]
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(argv, stderr=log, stdout=log, env={**os.environ})
        found = wait_for(
            lambda: _LISTENS.search(self._log.read_text()), message=f"for {self._log} to name a port"
        )
        self.port = int(found[1])
        wait_for(
            lambda: self.ask("OPTIONS", "/data/ann/pets/").status != 503, message="for files to be served"
        )

    def kill(self) -> None:
        """Kill it as the kernel would."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        """End it."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(PATIENCE_S)
            finally:
                self.process.kill()

    def connect(self) -> http.client.HTTPConnection:
        """Open a connection."""
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str | None = "ann-token",  # noqa: S107 - of a test
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send one request."""
        sent = {**({"Authorization": f"Bearer {token}"} if token else {}), **(headers or {})}
        connection = self.connect()
        try:
            connection.putrequest(method, path, skip_accept_encoding=True)
            for name, value in sent.items():
                connection.putheader(name, value)
            if body is not None and "Transfer-Encoding" not in sent:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            connection.close()


@contextmanager
def serving(rig: ApiRig, directory: Path, root: Path | None = None) -> Iterator[DavRig]:
    """Give the files of a rig's datasets, served."""
    dav = DavRig(rig, directory / "dav.log", root)
    dav.start()
    try:
        yield dav
    finally:
        dav.stop()
