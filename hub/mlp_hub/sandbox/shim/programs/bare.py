"""Replacement for bubblewrap where no sandbox can be made and the operator allowed to continue without.

    bare.py STATUS_FD BLOCK_FD COMMAND_FD

It speaks to the shim as bubblewrap does, and at the end ends all processes below itself. It hides
nothing: the program sees the whole machine as its user does. After SIGUSR1 it waits for the
processes that the command leaves.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import sys
from typing import Any

_SUBREAPER, _PARENT_DEATH = 36, 1


def main(status: int, block: int, command: int) -> int:
    """Run the command once the shim says so; return its exit status as a shell gives it."""
    libc = ctypes.CDLL(None)
    libc.prctl(_SUBREAPER, 1, 0, 0, 0)
    with os.fdopen(command, "rb") as file:
        what: dict[str, Any] = json.load(file)
    held: list[int] = []
    signal.signal(signal.SIGUSR1, lambda number, _: held.append(number))
    os.write(status, json.dumps({"child-pid": os.getpid()}).encode() + b"\n")
    os.read(block, 1)
    os.close(block)
    me = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            signal.signal(signal.SIGUSR1, signal.SIG_DFL)
            os.close(status)
            os.setsid()
            libc.prctl(_PARENT_DEATH, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != me:
                os._exit(125)
            os.chdir(what["cwd"])
            for one in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores
                signal.signal(one, signal.SIG_DFL)
            os.execvpe(what["argv"][0], what["argv"], what["env"])
        except OSError as error:
            os.write(2, f"bwrap: cannot execute {what['argv'][0]}: {error.strerror}\n".encode())
        finally:
            os._exit(127)
    code = _wait(pid)
    if held:
        _wait(None)
    _sweep()
    os.write(status, json.dumps({"exit-code": code}).encode() + b"\n")
    return code


def _wait(pid: int | None) -> int:
    """Wait for this child, or for all; return its exit status."""
    with contextlib.suppress(ChildProcessError):
        while True:
            ended, status = os.wait()
            if ended == pid:
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code
    return 0


def _sweep() -> None:
    """Kill what the command left behind; all of it is, or becomes, a child of ours."""
    with contextlib.suppress(ChildProcessError):
        while True:
            with open(f"/proc/self/task/{os.getpid()}/children") as file:
                for child in file.read().split():
                    os.kill(int(child), signal.SIGKILL)
            os.wait()


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:4])))
