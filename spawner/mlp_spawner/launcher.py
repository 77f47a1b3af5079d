"""Runs inside the sandbox or the pod: the single-user server.

In a sandbox on a listening socket that was made outside, whose number comes in MLP_LISTEN_FD. The server's own way would
be to make the socket in a directory that it can write to, which its user could then replace by a link to another server's.
In a pod on a port of its own; there the text of this file is the program, so that an image needs no path of ours.
"""

from __future__ import annotations

import gc
import os
import socket
import sys
from importlib.util import find_spec
from typing import Any

NEEDED = ("jupyterhub", "jupyterlab")
"""Given: packages without which an image starts no server; `pod_states` has the same."""
LACKS = 78
"""Given: exit status of an image that lacks one of them, which it names in its last word to the cluster; `pod_states` has the same."""
_LAST_WORD = "/dev/termination-log"
# where the kernel counts what it killed for lack of memory, as a pod sees it
_MEMORY_EVENTS = ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")


def main() -> None:
    """Start the server as JupyterHub wants it."""
    # a grammar for a format that no schema of the server uses; building it is a second of every start, and 16 MB
    sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]  # means: not installed
    # modules make no garbage; looking for it among them is a third of the start
    gc.disable()
    if "MLP_LISTEN_FD" in os.environ:
        _take_socket(int(os.environ.pop("MLP_LISTEN_FD")))
    else:
        _check_image()
        _settle_in_pod()

    from jupyterhub.singleuser import main as run  # noqa: PLC0415

    gc.freeze()
    gc.enable()
    run()


def _check_image() -> None:
    """End at once where the image is none for a server: what is missing is told in words."""
    missing = " ".join(name for name in NEEDED if find_spec(name) is None)
    if missing:
        with open(_LAST_WORD, "w") as file:  # noqa: PTH123 - a path of the cluster's
            file.write(missing)
        sys.exit(LACKS)


def _settle_in_pod() -> None:
    """Complete the environment by what only the image knows."""
    own = os.path.expanduser("~/.local/bin")  # noqa: PTH111 - as a text
    os.environ["PATH"] = f"{own}:{os.environ.get('PATH', '/usr/local/bin:/usr/bin:/bin')}"
    found = [path for path in _MEMORY_EVENTS if os.path.exists(path)]  # noqa: PTH110
    if found:
        os.environ["MLP_MEMORY_EVENTS"] = found[0]


def _take_socket(fd: int) -> None:
    """Hand the socket to Jupyter Server."""
    # kernels and terminals must not get it
    os.set_inheritable(fd, False)

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


if __name__ == "__main__":
    main()
