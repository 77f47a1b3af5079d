"""Brings what a sandbox left in its directory to disk, before anybody is told that it ended: a power cut then takes nothing of it."""

from __future__ import annotations

import os
import stat

MOST_FILES = 256
"""Tuning: files of a directory that are synced: data that survives any crash, for the duration of an end."""
MOST_BYTES = 64 << 20
"""Tuning: bytes of them, as above; larger files are on disk after some 30 s, as the kernel has it."""
_DEEP = 4
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Keeper:
    """Walks a directory that others may write to; no link is followed. `since`: seconds since the epoch, what is older is on disk by itself."""

    def __init__(self, since: float) -> None:
        self._since = since
        self.files, self.bytes = MOST_FILES, MOST_BYTES

    def keep(self, path: str) -> None:
        """Sync the files that were written below; files that cannot be opened are left out."""
        try:
            fd = os.open(path, _DIRECTORY)
        except OSError:
            return
        try:
            self._below(fd, _DEEP)
        finally:
            os.close(fd)

    def _below(self, directory: int, deep: int) -> None:
        wrote = False
        for name in os.listdir(directory):
            if self.files <= 0:
                return
            try:
                found = os.stat(name, dir_fd=directory, follow_symlinks=False)
                if stat.S_ISDIR(found.st_mode) and deep:
                    inner = os.open(name, _DIRECTORY, dir_fd=directory)
                    try:
                        self._below(inner, deep - 1)
                    finally:
                        os.close(inner)
                elif stat.S_ISREG(found.st_mode) and found.st_mtime >= self._since:
                    wrote = self._file(name, directory, found.st_size) or wrote
            except OSError:
                continue
        if wrote:
            os.fsync(directory)

    def _file(self, name: str, directory: int, size: int) -> bool:
        self.files -= 1
        if size > self.bytes:
            return False
        self.bytes -= size
        fd = os.open(name, _FILE, dir_fd=directory)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
        return True
