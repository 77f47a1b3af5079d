"""The service's side of the process from which shims are forked."""

from __future__ import annotations

import array
import socket
import subprocess
import sys
import threading
from pathlib import Path

from mlp_hub.sandbox import shim

_MAIN = str(
    Path(shim.__file__).resolve().parent / "__main__.py"
)  # of this version, whatever is installed later


class ForkServer:
    """Process (some 12 MB) that forks shims in 1 ms each; started at the first request, and again if it died.

    It ends by itself when its owner ends, or by `close`; the shims continue.
    """

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.RLock()

    def ask(self, run_dir: str, ready: int) -> None:
        """Have a shim forked for this run directory; it reports to the descriptor `ready`."""
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [ready]))]
        for last in (False, True):
            with self._lock:
                asker = self._open()
                try:
                    asker.sendmsg([run_dir.encode()], rights)
                except OSError:  # it was killed
                    self.close()
                    if last:
                        raise
                else:
                    return

    def start(self) -> None:
        """Start the process now, so that the first one who asks need not wait for it."""
        with self._lock:
            self._open()

    def _open(self) -> socket.socket:
        if self._socket is None:
            mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self._process = subprocess.Popen(
                [sys.executable, "-IS", _MAIN, "--serve", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"},
                cwd="/",
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
            theirs.close()
            self._socket = mine
        return self._socket

    def close(self) -> None:
        """End the process; shims are not touched."""
        with self._lock:
            if self._socket is not None:
                self._socket.close()
                self._socket = None
            if self._process is not None:
                self._process.wait()
                self._process = None
