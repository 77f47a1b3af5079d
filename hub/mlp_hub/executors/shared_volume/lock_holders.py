"""Ends processes of this machine that keep a lock of ours although they hang.

The kernel says in /proc which process has which file locked. One of another machine or another user is not found there.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal

log = logging.getLogger(__name__)


def end_holders(fd: int) -> int:
    """End all other processes that have this open file's lock, and return how many that were."""
    ended = 0
    for pid in _holders(fd):
        try:
            process = os.pidfd_open(pid)  # from here on no other process is meant by it
        except OSError:
            continue
        try:
            if _has_lock(pid, fd):
                signal.pidfd_send_signal(process, signal.SIGKILL)
                ended += 1
                log.warning("process %d, which decides no more and does not go on, was ended", pid)
        except OSError as error:
            log.warning("process %d keeps a lock and cannot be ended: %s", pid, error)
        finally:
            os.close(process)
    return ended


def _holders(fd: int) -> set[int]:
    """Return the processes that may have the file locked, as far as this one sees them."""
    inode = (
        f":{os.fstat(fd).st_ino}"  # not its device: what the kernel writes there is not always that of `stat`
    )
    with open("/proc/locks") as file:  # noqa: PTH123
        rows = [line.split() for line in file]
    # "1: FLOCK ADVISORY READ 4711 08:01:1234 0 EOF"; who waits has "->" before the kind
    return {int(row[4]) for row in rows if row[1] == "FLOCK" and row[5].endswith(inode)} - {
        0,
        -1,
        os.getpid(),
    }


def _has_lock(pid: int, fd: int) -> bool:
    """Whether one of the process' open files is this one, and has a lock on it."""
    ours = os.fstat(fd)
    for name in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208 - names only
        with contextlib.suppress(OSError):
            if os.path.samestat(os.stat(f"/proc/{pid}/fd/{name}"), ours):  # noqa: PTH116 - see procs
                with open(f"/proc/{pid}/fdinfo/{name}") as file:  # noqa: PTH123
                    if any(line.startswith("lock:") and " FLOCK " in line for line in file):
                        return True
    return False
