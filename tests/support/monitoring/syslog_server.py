"""A syslog of its own process, which a test can kill: reads RFC 5424 with octet counting, and appends each message as a line.

`python syslog_server.py TRANSPORT PLACE FILE [CERTIFICATE]`; prints its port, or its path, once it listens.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

FRAME = re.compile(rb"([1-9][0-9]{0,6}) ")
MESSAGE = re.compile(
    rb"<(\d{1,3})>1 (\S+) (\S{1,255}) (\S{1,48}) (\S{1,128}) (\S{1,32}) (-|\[.*?\])(?: (.*))?", re.DOTALL
)
"""HEADER SP STRUCTURED-DATA [SP MSG] of RFC 5424."""


class SyslogServer:
    """The process, for a test. `messages` are those that it has written down."""

    def __init__(self, transport: str, file: Path, place: str = "0", certificate: Path | None = None) -> None:
        self.transport, self.file = transport, file
        self._certificate = certificate
        self._process: subprocess.Popen[str] | None = None
        self.place = place
        self.start()

    def start(self) -> None:
        """Start it, again at the same place."""
        if self.transport in {"unix", "unix-stream"}:
            Path(self.place).unlink(missing_ok=True)
        args = [sys.executable, __file__, self.transport, self.place, str(self.file)]
        if self._certificate is not None:
            args.append(str(self._certificate))
        self._process = subprocess.Popen(args, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.place = self._process.stdout.readline().strip()

    def signal(self, number: int) -> None:
        """Send it a signal."""
        assert self._process is not None
        self._process.send_signal(number)

    def kill(self) -> None:
        """End it without a warning."""
        if self._process is not None:
            self.signal(signal.SIGKILL)
            self._process.communicate()
            self._process = None

    @property
    def messages(self) -> list[dict[str, Any]]:
        """Return the content of all messages, as JSON."""
        if not self.file.exists():
            return []
        return [json.loads(line) for line in self.file.read_text().splitlines() if line.startswith("{")]


def parsed(message: bytes) -> bytes:
    """Return the content of a message. Raises `ValueError` where it is none of RFC 5424."""
    found = MESSAGE.fullmatch(message)
    if found is None or found[1] != b"110" or found[4] != b"mlp-hub" or found[6] != b"audit":
        raise ValueError(message)
    return found[8]


def frames(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield the messages of a connection; one that is not whole is left out."""
    while True:
        head = b""
        while not head.endswith(b" "):
            byte = stream.read(1)
            if not byte:
                return
            head += byte
        counted = FRAME.fullmatch(head)
        if counted is None:
            raise ValueError(head)
        body = stream.read(int(counted[1]))
        if len(body) < int(counted[1]):
            return
        yield body


def main(transport: str, place: str, file: str, certificate: str = "") -> None:
    """Serve one connection after the other."""
    out = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def note(message: bytes) -> None:
        os.write(out, parsed(message) + b"\n")

    if transport in ("unix", "udp"):
        family = socket.AF_UNIX if transport == "unix" else socket.AF_INET
        server = socket.socket(family, socket.SOCK_DGRAM)
        server.bind(place if transport == "unix" else ("127.0.0.1", int(place)))
        _listens(server)
        while True:
            note(server.recv(2**16))
    if transport == "unix-stream":
        server = socket.socket(socket.AF_UNIX)
        server.bind(place)
        server.listen()
    else:
        server = socket.create_server(("127.0.0.1", int(place)))
    _listens(server)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH) if certificate else None
    if context is not None:
        context.load_cert_chain(certificate)
    while True:
        connection, _ = server.accept()
        try:
            if context is not None:
                connection = context.wrap_socket(connection, server_side=True)
            with connection, connection.makefile("rb") as stream:
                for message in (
                    (line.rstrip(b"\n") for line in stream) if transport == "unix-stream" else frames(stream)
                ):
                    note(message)
                if context is not None:
                    connection.unwrap()
        except OSError:
            continue


def _listens(server: socket.socket) -> None:
    name = server.getsockname()
    print(name if isinstance(name, str) else name[1], flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
