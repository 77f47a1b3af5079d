"""Listeners of the service in one table: on UNIX sockets and, where configured, on TCP.

They are for the proxy and for sandboxes. A request's listener shows a fact that a header cannot
show: only the proxy reaches it, or sandboxes do. On a UNIX socket the directory and mode of its
path ensure that. On TCP these are two ports. Only the proxy may connect to the proxy's port.
Requests to the other port are from strangers, which are identified by their address.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path

from tornado.netutil import bind_sockets

from mlp_hub.api.edge.connections import ConnectionGate, Gate, OnlyFrom
from mlp_hub.unix_sockets import beside, listen_at

Network = IPv4Network | IPv6Network
PLATFORM_MODE, TENANTS_MODE = 0o600, 0o666


@dataclass(frozen=True, slots=True)
class Listener:
    """A row of the table. `where` is the path of a socket, or (host, port).

    `behind_proxy`: the proxy alone reaches it. `path` is the name under which a socket is found once its service leads, `proxies` who
    may connect to the proxy's port. `only` are the paths that it serves; empty: all.
    """

    where: Path | tuple[str, int]
    behind_proxy: bool
    path: Path | None = None
    proxies: tuple[Network, ...] = ()
    only: tuple[str, ...] = ()

    def open(self) -> Sequence[socket.socket]:
        """Listen; raise OSError where somebody else does."""
        if isinstance(self.where, Path):
            return [bind_socket(self.where, PLATFORM_MODE if self.behind_proxy else TENANTS_MODE)]
        host, port = self.where
        return bind_sockets(port, host, backlog=1024)

    def admission(self, gate: Gate) -> ConnectionGate | None:
        """Say who may connect, and how often: `gate` counts the connections of strangers."""
        if not self.behind_proxy:
            return gate
        return None if isinstance(self.where, Path) else OnlyFrom(self.proxies)

    def publish(self) -> None:
        """Be found under the name by which others know the service, whoever was before."""
        if self.path is None or not isinstance(self.where, Path) or _inode(self.path) == _inode(self.where):
            return
        self.path.parent.mkdir(mode=0o711, parents=True, exist_ok=True)
        temporary = beside(self.path)
        temporary.hardlink_to(self.where)
        temporary.replace(self.path)

    def close(self) -> None:
        """Take the names away that lead here."""
        if not isinstance(self.where, Path):
            return
        own = _inode(self.where)
        for path in (self.path, self.where):
            if path is not None and own is not None and _inode(path) == own:
                path.unlink(missing_ok=True)


def bind_socket(path: Path, mode: int) -> socket.socket:
    """Listen on a UNIX socket. A file that a dead service left is replaced; one that answers is not touched."""
    path.parent.mkdir(mode=0o700 if mode == PLATFORM_MODE else 0o711, parents=True, exist_ok=True)
    if path.exists():
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.settimeout(1)
            try:
                probe.connect(str(path))
            except OSError:
                pass
            else:
                raise OSError(
                    errno.EADDRINUSE,
                    f"another service listens on {path}; stop it first, or use another MLP_HOME",
                )
    listener = listen_at(path, mode)
    listener.setblocking(False)
    return listener


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:
        return None
