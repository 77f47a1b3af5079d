"""Which addresses a process may connect to, held by the interpreter itself.

Each connection that any library makes passes here with the very address it goes to, so it does not matter what a name meant a
moment before, nor where an answer pointed to. An audit hook cannot be taken away again.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Sequence
from typing import Any

from mlp_hub.domain.public_addresses import is_admitted, is_allowed, is_number_public

_REFUSED_ACTS = frozenset(
    {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "socket.bind", "socket.sendto"}
)


class Forbidden(OSError):  # noqa: N818 - what became of it
    """An address that is not to be spoken to."""


class Guard:
    """Guard that lets connections pass to addresses of the internet, and to the operator's `allowed` ones.

    Those are HOST or HOST:PORT.
    """

    def __init__(self, allowed: Sequence[str]) -> None:
        self._allowed = tuple(allowed)
        self._named: set[tuple[str, int]] = set()  # what allowed names mean
        self.refused = False

    def hold(self) -> None:
        """Hold from now on, to the end of the process."""
        find = socket.getaddrinfo

        def noted(host: Any, port: Any, *more: Any, **kw: Any) -> Any:
            found = find(host, port, *more, **kw)
            if isinstance(host, str) and is_allowed(host, int(port or 0), self._allowed):
                self._named.update((str(one[4][0]), int(one[4][1])) for one in found)
            return found

        socket.getaddrinfo = noted
        sys.addaudithook(self._hear)

    def admits(self, host: str, port: int) -> bool:
        """Tell whether any address of a host may be connected to. Raises `OSError` if the host has no address now."""
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return is_admitted(host, port, (one[4][0] for one in found), self._allowed)

    def _hear(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "socket.connect":
            self._check(args[1])
        elif event in _REFUSED_ACTS:
            self.refused = True
            raise Forbidden(event)

    def _check(self, where: Any) -> None:
        if not self._may(where):
            self.refused = True
            raise Forbidden("an address that is not to be spoken to")

    def _may(self, where: Any) -> bool:
        # a path or bytes are other kinds of sockets
        return (
            isinstance(where, tuple)
            and len(where) >= 2
            and ((where[0], where[1]) in self._named or is_number_public(where[0]))
        )
