"""Files on this machine: found without following links, and their checksums."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import BinaryIO

from mlp.data.places import may_be_step
from mlp.errors import UsageError
from mlp.language import say

BLOCK = 1 << 20
"""Tuning: bytes that are read at a time."""


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A file that goes up: where it lies, its path in the dataset, and what it was when it was found."""

    here: str
    path: str
    size: int


@dataclass
class LocalFiles:
    """Content below a path: files, directories (paths in the dataset), and excluded entries."""

    files: list[LocalFile] = field(default_factory=list)
    directories: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)


def find(path: str) -> LocalFiles:
    """List a directory; links, and entries that are neither files nor directories, are left out.

    Raises `UsageError`.
    """
    found = LocalFiles()
    left = [(path, "")]
    try:
        while left:
            here, there = left.pop()
            with os.scandir(here) as entries:
                for entry in sorted(entries, key=lambda e: e.name):
                    inside = f"{there}/{entry.name}" if there else entry.name
                    if not may_be_step(entry.name) or entry.is_symlink():
                        found.left_out.append(_text(inside))
                    elif entry.is_dir():
                        found.directories.append(inside)
                        left.append((entry.path, inside))
                    elif entry.is_file():
                        found.files.append(LocalFile(entry.path, inside, entry.stat().st_size))
                    else:
                        found.left_out.append(inside)
    except OSError as error:
        raise unreadable(error.filename or path, error) from error
    found.directories.sort()
    return found


def unreadable(path: object, error: OSError) -> UsageError:
    """Return the error for a path that cannot be read here."""
    return UsageError(
        say("{path} cannot be read ({why})", path=_text(str(path)), why=error.strerror or str(error))
    )


def _text(name: str) -> str:
    return name.encode(errors="surrogateescape").decode(errors="replace")


def plain(file: BinaryIO) -> os.stat_result | None:
    """Return the stat of an open file; None if it is not a plain file."""
    at = os.fstat(file.fileno())
    return at if stat.S_ISREG(at.st_mode) else None


def same(one: os.stat_result, other: os.stat_result) -> bool:
    """Tell whether a file was not written to between two looks."""
    return (one.st_ino, one.st_size, one.st_mtime_ns) == (other.st_ino, other.st_size, other.st_mtime_ns)


def checksum(file: BinaryIO, go_on: Callable[[], None]) -> bytes:
    """Return the SHA-256 of an open file from its beginning; `go_on` may raise between two pieces."""
    digest = hashlib.sha256()
    buffer = memoryview(bytearray(BLOCK))
    file.seek(0)
    while count := read_into(file, buffer):
        digest.update(buffer[:count])
        go_on()
    return digest.digest()


def read_into(file: BinaryIO, buffer: memoryview) -> int:
    """Read on from an open file; nothing at its end. Raises `UsageError`."""
    try:
        count: int | None = file.readinto(buffer)  # type: ignore[attr-defined]  # what `open` gives has it
    except OSError as error:
        raise unreadable(file.name, error) from error
    return count or 0
