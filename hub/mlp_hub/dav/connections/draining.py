"""Reading of the rest of a refused body, so that its sender reads the refusal.

A rest that can come to an end is read before the answer.
"""

from __future__ import annotations

import socket
import threading
from typing import Any

from mlp_hub.dav.files.resources import LENGTH
from mlp_hub.executors.shared_volume.fetch.patience import patience

DRAINED = 64 << 20
"""Tuning: bytes of a refused body that are still read, so that its sender reads the refusal."""
DRAINED_S = 10.0
"""Tuning: seconds for which a refused body is read."""
MOST_DRAINED = 16
"""Safety: refused bodies that are read at a time: anybody may send some that hardly come, and each has a thread. Beyond, the connection ends."""
_drains = threading.Semaphore(MOST_DRAINED)
_LEFT = "mlp.left"
"""Whether a body is left that is too long to be read before the answer."""


def drain(environ: dict[str, Any]) -> None:
    """Read what is left of a body, as far as that is worth while; the connection ends where more is left.

    It would be read all the same before the next request, and into memory. One that is announced to be longer is left to `linger`.
    """
    request = environ.get("mlp.request")
    if request is None or getattr(request, "mlp_drained", False):
        return
    request.mlp_drained = True
    length = environ.get("CONTENT_LENGTH")
    announced = environ.get(LENGTH, 0) != 0 or length not in (None, "", "0")
    if not announced and "HTTP_TRANSFER_ENCODING" not in environ:
        return
    if getattr(request.rfile, "remaining", 0) > DRAINED:
        environ[_LEFT] = request.close_connection = True
        return
    _read(environ, request)


def linger(environ: dict[str, Any]) -> None:
    """Continue to read after the answer: an early end would take the answer from a client that still sends."""
    if environ.pop(_LEFT, False):
        _read(environ, environ["mlp.request"])


def _read(environ: dict[str, Any], request: Any) -> None:
    left, body = DRAINED, environ["wsgi.input"]
    if not _drains.acquire(blocking=False):
        request.close_connection = True
        return
    try:
        with patience.within(request.conn.socket, DRAINED_S, socket.SHUT_RD):
            while left > 0 and (data := body.read(1 << 16)):
                left -= len(data)
    except Exception:  # noqa: BLE001 - whatever is wrong with it, nobody will need it
        left = 0
    finally:
        _drains.release()
    if left <= 0 or getattr(body, "remaining", False):
        request.close_connection = True
