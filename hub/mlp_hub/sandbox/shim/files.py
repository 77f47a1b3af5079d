"""Small files and processes: atomic writes, claims, and what /proc tells. Standard library only."""

from __future__ import annotations

import contextlib
import errno
import functools
import json
import os
from _thread import get_native_id
from typing import Any

from mlp_hub.durable import UnreadableFile, fill, read_bytes, read_object, sync_directory

__all__ = ["UnreadableFile", "sync_directory"]
_NEW = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


def is_full(error: OSError) -> bool:
    """Whether it says that a file system, or what its user may have of it, is full."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def reserve(directory: str, name: str, size: int) -> None:
    """Keep room for a file that must be written some day, also on a disk that is full by then.

    Raises `OSError` without such room now. Where the file system cannot keep any, nothing is kept.
    """
    fd = os.open(f"{directory}/{name}.reserve", _NEW, 0o600)
    try:
        os.posix_fallocate(fd, 0, size)
    except OSError as error:
        if is_full(error):
            raise
    finally:
        os.close(fd)


def write_json(
    directory: str, name: str, data: Any, *, durable: bool = False, entry: bool = True, mode: int = 0o600
) -> None:
    """Write a file whole or not at all; `durable` also means: on disk before this returns.

    Without `entry` only its content is: its name is on disk once the directory is synced, by the caller's next file.

    On a full disk the room that was kept for it is used, once; without any the error is raised.
    """
    new = _written(directory, name, data, durable=durable)
    if mode != 0o600:
        os.chmod(new, mode)
    os.rename(new, f"{directory}/{name}")
    if durable and entry:
        sync_directory(directory)


def _written(directory: str, name: str, data: Any, *, durable: bool = False) -> str:
    """Write a new file and return its path; a file that cannot be written whole is removed."""
    path = f"{directory}/{name}"
    new = f"{path}.{get_native_id()}.new"  # threads of one process may write the same
    content = json.dumps(data).encode()
    try:
        fill(new, content, sync=durable)
    except OSError as error:
        _drop(new)
        if not is_full(error) or not _moved(f"{path}.reserve", new):
            raise
        fill(new, content, sync=durable)
    return new


def _moved(path: str, new: str) -> bool:
    """Take what was kept, so that nobody else does; `False` when there is nothing."""
    with contextlib.suppress(FileNotFoundError):
        os.rename(path, new)
        return True
    return False


def _drop(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)


def read_json(directory: str, name: str, *keys: str) -> Any | None:
    """Read such a file, an object that has these keys; `None` when it does not exist. Raises `UnreadableFile`, and OSError."""
    try:
        return read_object(f"{directory}/{name}", *keys)
    except FileNotFoundError:
        return None


def read_json_if_whole(directory: str, name: str, *keys: str) -> Any | None:
    """Return the content of a file that is not essential: `None` also where it cannot be read."""
    try:
        return read_json(directory, name, *keys)
    except UnreadableFile:
        return None


@functools.cache
def boot_id() -> str:
    """Return the name of this run of the machine; no process outlives it, so that it is read once."""
    return read_bytes("/proc/sys/kernel/random/boot_id").strip().decode()


def claim(directory: str, pid: int) -> bool:
    """Take the run directory for a process, for ever; `False` when somebody had taken it before.

    0 stands for nobody: then nothing will ever run there.

    The claim appears with its content in one step, so that nobody sees half of it.
    """
    content = {"pid": pid, "start": start_time(pid), "boot": boot_id()}
    new = _written(directory, "claim", content)
    try:
        os.link(new, f"{directory}/claim")
    except FileExistsError:
        return False
    finally:
        _drop(new)
    return True


def name_process(name: str) -> None:
    """Set the name that ps and top show; shims forked from the fork server have its command line."""
    with contextlib.suppress(OSError), open("/proc/self/comm", "w") as file:
        file.write(name)


def _stat(pid: int) -> list[bytes]:
    return read_bytes(f"/proc/{pid}/stat").rpartition(b")")[2].split()


def start_time(pid: int) -> int | None:
    """Return when the process started, in clock ticks since boot; `None` when it is gone or a zombie."""
    try:
        fields = _stat(pid)
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def parent(pid: int) -> int | None:
    """Return the parent of a process; `None` when it is gone."""
    try:
        return int(_stat(pid)[1])
    except OSError:
        return None


def children(pid: int) -> list[int]:
    """List the children of all threads of a process; empty when it is gone."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                found += map(int, read_bytes(f"/proc/{pid}/task/{thread}/children").split())
    return found


def descendants(pid: int) -> list[int]:
    """List the process and all below it."""
    found = [pid]
    for one in found:  # grows while it is walked
        found += children(one)
    return found


def is_below(pid: int, above: int) -> bool:
    """Tell whether a process descends from another that lives."""
    with contextlib.suppress(OSError):
        while pid > 1:
            pid = int(_stat(pid)[1])
            if pid == above:
                return True
    return False


def usage(pid: int, *, ended: bool = False) -> tuple[float, int] | None:
    """Return (processor seconds, resident bytes) of a process; `None` when it is gone.

    `ended`: with the seconds of its children that have ended.
    """
    try:
        fields = _stat(pid)
    except OSError:
        return None
    return sum(map(int, fields[11 : 15 if ended else 13])) / _TICKS, int(fields[21]) * _PAGE


def inner_pid(pid: int) -> int | None:
    """Return the number that a process has in its own pid namespace."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/status", "rb") as file:
        for line in file:
            if line.startswith(b"NSpid:"):
                return int(line.split()[-1])
    return None


def send_signal(pid: int, signum: int, start: int | None = None) -> bool:
    """Signal exactly this process (and not a later one of its number, where its start time is given)."""
    import signal  # noqa: PLC0415 - costs start-up time

    try:
        fd = os.pidfd_open(pid)
    except OSError as error:
        if error.errno != errno.ENOSYS or (start is not None and start_time(pid) != start):
            return False
        with contextlib.suppress(OSError):  # a kernel that has none: some pods are given a stand-in for one
            os.kill(pid, signum)
            return True
        return False
    try:
        if start is not None and start_time(pid) != start:
            return False
        signal.pidfd_send_signal(fd, signum)
    except OSError:
        return False
    finally:
        os.close(fd)
    return True


_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
