"""Runs inside the sandbox: the single-user server on a listening socket that was made outside.

The server's own way would be to make the socket in a directory that it can write to, which its user could then
replace by a link to another server's. The socket's number comes in MLP_LISTEN_FD.
"""

from __future__ import annotations

import os
import socket
import sys
from typing import Any


def main() -> None:
    """Hand the socket to Jupyter Server and start it as JupyterHub wants it."""
    fd = int(os.environ.pop("MLP_LISTEN_FD"))
    # kernels and terminals must not get it
    os.set_inheritable(fd, False)

    # a grammar for a format that no schema of the server uses; building it is a second of every start, and 16 MB
    sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]  # means: not installed

    from jupyter_server import serverapp  # noqa: PLC0415

    def bind(*_args: Any, **_more: Any) -> socket.socket:
        listening = socket.socket(fileno=fd)
        listening.setblocking(False)
        return listening

    def in_use(_path: str) -> bool:
        return False

    patched: Any = serverapp
    patched.bind_unix_socket = bind
    patched.unix_socket_in_use = in_use

    from jupyterhub.singleuser import main as run  # noqa: PLC0415

    run()


if __name__ == "__main__":
    main()
