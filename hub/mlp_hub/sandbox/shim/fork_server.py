"""Server that forks shims: it has everything imported, so that a shim costs a fork, not a Python start.

It belongs to the service and ends with it (the socket's other end is gone); the shims continue
without it.
"""

from __future__ import annotations

import array
import gc
import os
import signal
import socket
from typing import NoReturn

from mlp_hub.sandbox.shim import files
from mlp_hub.sandbox.shim.main import run

MESSAGE = 8 << 10


def serve(fd: int) -> NoReturn:
    """Take run directories, each with the descriptor that its shim reports to, until the asker is gone."""
    asker = socket.socket(fileno=fd)
    asker.set_inheritable(False)
    files.name_process("mlp-forkserver")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # shims are reaped by nobody's hand
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.freeze()  # keeps the shims' pages shared with ours
    while True:
        data, ancillary, _, _ = asker.recvmsg(MESSAGE, socket.CMSG_SPACE(4))
        if not data:
            os._exit(0)
        fds = array.array("i")
        for _, _, content in ancillary:
            fds.frombytes(content[:4])
        if os.fork() == 0:
            asker.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            try:
                run(data.decode(), fds[0])
            finally:
                os._exit(1)
        os.close(fds[0])
