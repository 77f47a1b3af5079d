"""Receivers of the audit log outside of the platform: a syslog, and a file that only grows. All of it blocks, so it runs in a thread.

No handler of a library is used. `logging.handlers.SysLogHandler` writes neither RFC 5424 nor octet counting nor TLS. That one and
rfc5424-logging-handler confirm nothing: the last messages are lost if the receiver dies. Here a delivery over a stream ends the
connection, and counts once the receiver has ended it too: it has read everything before that. If it dies with unread bytes, the
kernel resets the connection, and the delivery fails.
"""

from __future__ import annotations

import errno
import os
import socket
import ssl
import stat
import struct
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from fcntl import ioctl
from pathlib import Path
from termios import TIOCOUTQ
from typing import Any

from mlp_hub import durable
from mlp_hub.service.config import SyslogReceiver

PATIENCE_S = 5.0
"""Safety: seconds that a receiver may take to accept a connection, to take what is sent, and to end the connection."""
PRIORITY = 13 * 8 + 6
"""Given: facility "log audit", severity "informational" of RFC 5424."""
_APPENDS = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
UNACKNOWLEDGED_S = 0.01
"""Tuning: seconds between two looks whether the receiver's machine has all bytes: latency, for load."""


def time_text(at: float) -> str:
    """Return a time, in seconds since the epoch, as RFC 5424 writes it, in UTC."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def syslog_message(at: float, kind: str, text: bytes) -> bytes:
    """Return a text as a message of RFC 5424; `kind` is its MSGID. A text of ASCII alone needs no mark of its encoding."""
    host = "".join(c for c in socket.gethostname() if "!" <= c <= "~")[:255] or "-"
    return f"<{PRIORITY}>1 {time_text(at)} {host} mlp-hub - {kind} - ".encode() + text


def send_to_syslog(receiver: SyslogReceiver, messages: Sequence[bytes]) -> None:
    """Send messages in their order. Raises OSError where a part of them may not have arrived; then send all of them again.

    Over UDP, and to a socket of datagrams, nothing is confirmed.
    """
    if receiver.transport == "udp":
        _send_udp(receiver, messages)
    elif receiver.transport == "unix":
        _send_unix(receiver.host, messages)
    else:
        _send_stream(receiver, messages)


def append_lines(path: Path, lines: Sequence[bytes]) -> None:
    """Append lines; they are on disk when this returns. A torn line before them gets an end first. Raises OSError.

    The file is opened to append alone, so that it can have the kernel's append-only attribute, and never through a link.
    """
    fd = os.open(path, _APPENDS | os.O_CREAT, 0o600)
    try:
        size = os.fstat(fd).st_size
        torn = size > 0 and os.pread(fd, 1, size - 1) != b"\n"
        durable.write_all(fd, (b"\n" if torn else b"") + b"".join(line + b"\n" for line in lines))
        os.fsync(fd)
    finally:
        os.close(fd)
    if not size:
        durable.sync_directory(path.parent)


def check_syslog(receiver: SyslogReceiver) -> None:
    """Connect to a receiver, of `tls` with its certificate and ours, and send nothing. Raises OSError."""
    if receiver.transport == "udp":
        _connected_udp(receiver).close()
    elif receiver.transport == "unix":
        _connected_unix(receiver.host)[0].close()
    else:
        with socket.create_connection((receiver.host, receiver.port), PATIENCE_S) as to:
            if receiver.transport == "tls":
                _context(receiver).wrap_socket(to, server_hostname=receiver.host).close()


def check_lines(path: Path) -> None:
    """Open the file of `append_lines` as that does, and write nothing; a file that is not there yet is not made. Raises OSError."""
    try:
        fd = os.open(path, _APPENDS)
    except FileNotFoundError:
        if os.path.lexists(path) or not path.parent.is_dir() or not os.access(path.parent, os.W_OK | os.X_OK):
            raise
        return
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    finally:
        os.close(fd)


def _send_udp(receiver: SyslogReceiver, messages: Sequence[bytes]) -> None:
    with _connected_udp(receiver) as to:
        for message in messages:
            to.send(message)


def _connected_udp(receiver: SyslogReceiver) -> socket.socket:
    found = socket.getaddrinfo(receiver.host, receiver.port, type=socket.SOCK_DGRAM)
    family, kind, proto, _, address = found[0]
    # connected, so that a port where nobody listens fails
    return _connected(socket.socket(family, kind, proto), address)


def _send_unix(path: str, messages: Sequence[bytes]) -> None:
    to, datagrams = _connected_unix(path)
    with to:
        if datagrams:
            for message in messages:
                to.send(message)
        else:
            to.sendall(b"".join(message + b"\n" for message in messages))
            _end(to)


def _connected_unix(path: str) -> tuple[socket.socket, bool]:
    """Return a connection to a socket, and whether it is one of datagrams."""
    try:
        return _connected(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM), path), True
    except OSError as error:
        if error.errno != errno.EPROTOTYPE:
            raise
    return _connected(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM), path), False


def _connected(to: socket.socket, address: Any) -> socket.socket:
    try:
        to.settimeout(PATIENCE_S)
        to.connect(address)
    except BaseException:
        to.close()
        raise
    return to


def _send_stream(receiver: SyslogReceiver, messages: Sequence[bytes]) -> None:
    framed = b"".join(b"%d " % len(message) + message for message in messages)
    with socket.create_connection((receiver.host, receiver.port), PATIENCE_S) as to:
        if receiver.transport == "tcp":
            to.sendall(framed)
            _end(to)
            return
        with _context(receiver).wrap_socket(to, server_hostname=receiver.host) as secured:
            secured.sendall(framed)
            with suppress(
                ssl.SSLEOFError, ssl.SSLZeroReturnError
            ):  # some end the connection without a farewell
                secured.unwrap()
            _end(secured)


def _context(receiver: SyslogReceiver) -> ssl.SSLContext:
    made = ssl.create_default_context(cafile=receiver.ca)
    if receiver.certificate is not None:
        made.load_cert_chain(receiver.certificate, receiver.key)
    return made


def _end(to: socket.socket) -> None:
    """End a connection, and wait until the receiver has ended it too, with all bytes. Raises OSError."""
    until = time.monotonic() + PATIENCE_S
    with suppress(OSError):
        socket.socket.shutdown(to, socket.SHUT_WR)
    with socket.socket(fileno=os.dup(to.fileno())) as raw:  # without the layer of TLS, which has ended
        raw.settimeout(PATIENCE_S)
        try:
            while raw.recv(4096):
                _check_time(until)
        except TimeoutError:
            raise _unended() from None
        # one that was gone before the bytes came ends the connection as well, and acknowledges none of them
        while struct.unpack("i", ioctl(raw, TIOCOUTQ, bytes(4)))[0]:
            if failed := raw.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                raise OSError(failed, os.strerror(failed))
            _check_time(until)
            time.sleep(UNACKNOWLEDGED_S)


def _check_time(until: float) -> None:
    if time.monotonic() > until:
        raise _unended()


def _unended() -> TimeoutError:
    return TimeoutError(errno.ETIMEDOUT, f"the receiver did not end the connection within {PATIENCE_S:g} s")
