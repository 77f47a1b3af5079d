"""UNIX sockets that are found under a path, and places at which processes listen."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from urllib.parse import quote

Place = Path | tuple[str, int]
"""Where a process listens: a UNIX socket's path, or (host, port)."""


def url_of(where: Place) -> str:
    """Write a place as hub, proxy and their clients take it: a socket's path, or a host's port."""
    if isinstance(where, Path):
        return f"http+unix://{quote(str(where), safe='')}"
    host, port = where
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def listen_at(path: Path, mode: int, *, backlog: int = 1024) -> socket.socket:
    """Listen on a UNIX socket, whoever was under this path before.

    It is bound under another name and moved: the path is never there without its mode, nor missing for a moment.
    """
    temporary = beside(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    old = os.umask(0o177)
    try:
        listener.bind(str(temporary))
    finally:
        os.umask(old)
    temporary.chmod(mode)
    listener.listen(backlog)
    temporary.replace(path)
    return listener


def beside(path: Path) -> Path:
    """Return a free name of this process in the directory of the path, short enough for a UNIX socket."""
    temporary = path.with_name(f".{path.name[:20]}{os.getpid()}")
    temporary.unlink(missing_ok=True)
    return temporary
