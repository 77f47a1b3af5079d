"""Ports for tests: each belongs to one test process as long as that lives, even if nobody listens on it."""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from pathlib import Path

# below those that the kernel gives to whoever connects somewhere: one of them may be taken at any moment
HUBS = range(10_000, 25_000)
PAGES = range(25_000, 29_000)
"""Of a stand-in service: a page of another run that has lost its service must find no hub in its place."""


def free_port(among: range = HUBS) -> int:
    """Return a TCP port of the loopback that nobody listens on, and that no other test takes before this process ends."""
    locks = Path(tempfile.gettempdir()) / f"mlp-test-ports-{os.getuid()}"
    locks.mkdir(exist_ok=True)
    # any of them: who still looks for one that has ended must not find the next one in its place
    for port in random.sample(among, len(among)):
        lock = os.open(locks / str(port), os.O_RDWR | os.O_CREAT)  # open for as long as this process lives
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(("127.0.0.1", port))
        except OSError:
            os.close(lock)
            continue
        return port
    raise RuntimeError(f"no free port in {among}")
