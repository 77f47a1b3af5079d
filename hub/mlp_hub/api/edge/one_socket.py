"""The hub's UNIX socket for an HTTP client of Tornado's; small, since the process that ends idle servers needs nothing else."""

from __future__ import annotations

import socket
from typing import Any

from tornado.netutil import Resolver


class OneSocket(Resolver):
    """Resolves every host name to one UNIX socket."""

    def initialize(self, path: str) -> None:
        self._path = path

    async def resolve(self, host: str, port: int, family: int = 0) -> list[tuple[int, Any]]:
        del host, port, family
        return [(socket.AF_UNIX, self._path)]
