"""A connection to a database that a test can freeze: no byte passes in either direction, and nobody learns of an end."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from pathlib import Path


class FreezingLine:
    """Forwards TCP connections to PostgreSQL's socket; of one process it takes what comes, and passes nothing on."""

    def __init__(self, to: Path) -> None:
        self._to = str(to)
        self.frozen: int | None = None
        self._listens = socket.create_server(("127.0.0.1", 0), backlog=200)
        self.port: int = self._listens.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listens.close()

    def _accept(self) -> None:
        while True:
            try:
                near, (_, port) = self._listens.accept()
            except OSError:
                return
            threading.Thread(target=self._pass_on, args=(near, port), daemon=True).start()

    def _pass_on(self, near: socket.socket, port: int) -> None:
        far = socket.socket(socket.AF_UNIX)
        try:
            far.connect(self._to)
        except OSError:
            near.close()
            return
        pid = _owner(port)
        for one, other in ((near, far), (far, near)):
            threading.Thread(target=self._copy, args=(one, other, pid), daemon=True).start()

    def _copy(self, one: socket.socket, other: socket.socket, pid: int | None) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(1 << 16):
                while pid is not None and pid == self.frozen:
                    time.sleep(0.05)
                other.sendall(data)
        while pid is not None and pid == self.frozen:  # nobody hears of an end either
            time.sleep(0.05)
        with one, contextlib.suppress(OSError):
            other.shutdown(socket.SHUT_RDWR)


def _owner(port: int) -> int | None:
    """Return the process that has a local TCP connection of this port."""
    wanted = f":{port:04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    inodes = {f"socket:[{row[9]}]" for row in rows if row[1].endswith(wanted)}
    for place in Path("/proc").glob("[1-9]*/fd"):
        with contextlib.suppress(OSError):
            for fd in place.iterdir():
                with contextlib.suppress(OSError):
                    if os.readlink(fd) in inodes:
                        return int(place.parent.name)
    return None
