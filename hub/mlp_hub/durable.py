"""Small files that must last, and can be torn: written whole with their directory, and read with care.

A reader expects any content. After a power cut, a file that was not synced is empty, half written,
or has NUL bytes. Only `os` and `json` are imported, because shims and pods use this module too.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from typing import Any

_NEW = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
ASIDE = "set-aside"
"""Directory in the state directory for copies of files that could not be read."""
_SHOWN = 60


class UnreadableFile(ValueError):  # noqa: N818 - it says what the file is
    """A file of ours that is there and holds nothing that we wrote; `path` names it, `what` says what it holds."""

    def __init__(self, path: str, what: str) -> None:
        super().__init__(f"{path} cannot be read: it holds {what}")
        self.path, self.what = path, what


def write(path: str | os.PathLike[str], content: str | bytes, mode: int = 0o600) -> None:
    """Write a file whole, on disk with its directory when this returns. After any death it is the old one or the new one."""
    target = os.fspath(path)
    directory, _, name = target.rpartition("/")
    new = f"{directory or '.'}/.{name}.{os.getpid()}.{time.monotonic_ns():x}"
    try:
        fill(new, content.encode() if isinstance(content, str) else content, mode=mode)
        os.rename(new, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(new)
        raise
    sync_directory(directory or ".")


def fill(path: str, content: bytes, *, sync: bool = True, mode: int = 0o600) -> None:
    """Write a file that nobody looks at yet; with `sync` its content is on disk when this returns."""
    fd = os.open(path, _NEW, mode)
    try:
        write_all(fd, content)
        os.ftruncate(fd, len(content))  # only now: the room that it had was for this
        if sync:
            os.fsync(fd)
    finally:
        os.close(fd)


def write_all(fd: int, content: bytes) -> None:
    """Write all of it: the kernel may take a part, above all where space runs out."""
    left = memoryview(content)
    while left:
        left = left[os.write(fd, left) :]


def sync_directory(directory: str | os.PathLike[str]) -> None:
    """Bring a directory's entries to disk."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a small file: with half of the system calls of `open`, whose file objects are for more than that."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        content = b""
        while part := os.read(fd, 64 << 10):
            content += part
    finally:
        os.close(fd)
    return content


def read_json(path: str | os.PathLike[str]) -> Any:
    """Read a file of JSON. Raises `UnreadableFile` where it holds something else, and OSError."""
    content = read_bytes(path)
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise UnreadableFile(os.fspath(path), what_it_holds(content)) from error


def read_object(path: str | os.PathLike[str], *keys: str) -> dict[str, Any]:
    """Read a file of JSON that is an object with these keys. Raises as `read_json` does."""
    found = read_json(path)
    if isinstance(found, dict) and all(key in found for key in keys):
        return found
    raise UnreadableFile(os.fspath(path), "other JSON than what belongs there")


def what_it_holds(content: bytes) -> str:
    """Say in words what a file holds that cannot be read."""
    if not content:
        return "nothing"
    if not content.strip(b"\0"):
        return f"{len(content)} NUL bytes"
    return f"{len(content)} bytes that are not what was written there"


def set_aside(home: str | os.PathLike[str], path: str) -> str:
    """Copy a file that cannot be read to where an operator finds it, once; return the copy's path. Raises OSError.

    The file stays: as long as it is there, what it belongs to counts as begun.
    """
    home = os.fspath(home)
    place = f"{home}/{ASIDE}"
    with contextlib.suppress(FileExistsError):
        os.mkdir(place, 0o700)
    with open(path, "rb") as file:
        content = file.read(1 << 20)
    copy = f"{place}/{os.path.relpath(path, home).replace('/', '+')[-200:]}"
    if not os.path.lexists(copy):
        write(copy, content)
    return copy


def of_aside(home: str | os.PathLike[str]) -> list[str]:
    """List the copies of files that could not be read, by the paths in the state directory that these had."""
    with contextlib.suppress(OSError):
        return sorted(
            name.replace("+", "/") for name in os.listdir(f"{os.fspath(home)}/{ASIDE}") if name[0] != "."
        )
    return []
