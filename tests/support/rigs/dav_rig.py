"""The process that serves datasets' files, around a real service; killed and started again as tests like."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from mlp.client.rest import Client
from support.rigs.api_rig import Answer, ApiRig
from support.waiting import PATIENCE_S, wait_for

MIB = 2**20
LOCK = (
    '<?xml version="1.0"?><D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope>'
    "<D:locktype><D:write/></D:locktype><D:owner>{owner}</D:owner></D:lockinfo>"
)
_PROGRAM = """
import json, logging, os, sys
from pathlib import Path
from mlp_hub.dav.connections import slow_clients as slow
from mlp_hub.dav.serving import make_door, serve
from mlp_hub.dav.access_client import AccessClient
from mlp_hub.dav.connections.first_request import until_asked
from mlp_hub.isolation import tenant_roots
logging.basicConfig(stream=sys.stderr, level="INFO", format="%(message)s")
for name, value in json.loads(os.environ.get("SLOW", "{}")).items():
    setattr(slow, name, value)
root, service, token, *path = sys.argv[1:]
where = Path(path[0]) if path else ("127.0.0.1", 0)
known = AccessClient(Path(service), token)
top = Path(root)
roots = tenant_roots(top, top / "isolation", top / "secrets" / "isolation_key")
tenants = [("127.0.0.1", 0) if each == "tcp" else Path(each) for each in path[1:]]
asked = until_asked(where, tenants[0], known) if tenants else None  # as a hub has it
door = make_door(top, known, roots=roots, endpoints=json.loads(os.environ.get("ENDPOINTS", "[]")))
serve(where, door, known, tenants=tenants, asked=asked)
os._exit(0)
"""
_LISTENS = re.compile(r"listening on \('127\.0\.0\.1', (\d+)\)")


def _environ(rig: ApiRig, slow: Mapping[str, float] | None = None) -> dict[str, str]:
    return {**os.environ, "ENDPOINTS": json.dumps(rig.endpoints), "SLOW": json.dumps(slow or {})}


class DavRig:
    """Files of the datasets of an `ApiRig`. `slow` are other numbers for what bodies have to keep to."""

    def __init__(
        self, rig: ApiRig, log: Path, root: Path | None = None, slow: Mapping[str, float] | None = None
    ) -> None:
        self._slow = slow
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
            self.rig.data,
        ]
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(argv, stderr=log, stdout=log, env=_environ(self.rig, self._slow))
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


class DavAt:
    """The same process on two UNIX sockets, as a hub has it: at the same address whenever it is started again; and at a port for pods."""

    def __init__(self, rig: ApiRig, directory: Path) -> None:
        self.rig = rig
        self.socket, self.tenants = directory / "data.sock", directory / "tenants.sock"
        self._log = directory / "dav.log"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process, and wait until it serves."""
        rig = self.rig
        places = [rig.root, rig.sockets[True], rig.data, self.socket, self.tenants, "tcp"]
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, *map(str, places)],
                stderr=log,
                stdout=log,
                env=_environ(self.rig),
            )
        wait_for(self._serves, message="for files to be served")

    def _serves(self) -> bool:
        try:
            return self.ask("OPTIONS", "/data/ann/nothing/").status not in (0, 503)
        except OSError:
            return False

    @property
    def port(self) -> int:
        """The port for pods, of the process that was started last."""
        return int(_LISTENS.findall(self._log.read_text())[-1])

    def kill(self) -> None:
        """Kill it as the kernel would."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """End it."""
        assert self.process is not None
        self.process.terminate()
        try:
            self.process.wait(PATIENCE_S)
        finally:
            self.process.kill()

    def ask(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, body: bytes | None = None
    ) -> Answer:
        """Send one request, as ann unless its headers say who asks."""
        connection = http.client.HTTPConnection("localhost", timeout=PATIENCE_S)
        connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.sock.settimeout(PATIENCE_S)
        try:
            connection.sock.connect(str(self.socket))
            connection.request(
                method,
                path,
                body,
                {"Authorization": "Bearer ann-token"} if headers is None else dict(headers),
            )
            answer = connection.getresponse()
            return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def client(self, token: str = "ann-token", user: str = "ann") -> Client:  # noqa: S107 - of a test
        """Make a client of the platform, with the address of the files beside the API's."""
        return Client(
            f"http+unix://{quote(str(self.rig.sockets[False]), safe='')}/services/mlp/api/v1",
            token,
            user,
            data_url=f"http+unix://{quote(str(self.tenants), safe='')}/data",
            timeout=PATIENCE_S,
            patience=PATIENCE_S,
        )


@contextmanager
def serving(
    rig: ApiRig, directory: Path, root: Path | None = None, slow: Mapping[str, float] | None = None
) -> Iterator[DavRig]:
    """Give the files of a rig's datasets, served."""
    dav = DavRig(rig, directory / "dav.log", root, slow)
    dav.start()
    try:
        yield dav
    finally:
        dav.stop()


def used(rig: ApiRig, data: str) -> int:
    found: int = rig.ask("GET", f"/users/ann/datasets/{data.rpartition('/')[2]}", token=rig.ann).json["used"]
    return found


def in_use(rig: ApiRig, team: str) -> int:
    found: int = rig.ask("GET", f"/tenants/{team}", token=rig.root_user).json["rom_inuse"]
    return found


def settled(rig: ApiRig, team: str, size: int) -> None:
    wait_for(lambda: in_use(rig, team) == size, message=f"for {size} bytes to be charged")


def on_disk(rig: ApiRig, data: str) -> Path:
    return rig.root / "datasets" / Path(data).relative_to("/data")


def left_over(rig: ApiRig) -> list[str]:
    return [path.name for path in (rig.root / ".uploads").iterdir()]


def sha(body: bytes) -> str:
    return f"sha-256=:{base64.b64encode(hashlib.sha256(body).digest()).decode()}:"
