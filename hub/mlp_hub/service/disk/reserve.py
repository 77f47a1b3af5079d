"""Room for the platform's own last words: a file that holds it while there is enough, and is cut to nothing when there is none."""

from __future__ import annotations

import errno
import logging
import os
from pathlib import Path

from mlp_hub.executors.workspace import Space
from mlp_hub.service.disk.rules import MIB

log = logging.getLogger(__name__)
MOST = 64 * MIB
"""Safety: most bytes of the reserve: the service's need to continue when the disk is full, and no more."""
SHARE = 50
"""Safety: divisor of the file system's size that gives the reserve, within `MOST`.

It is the service's need to continue when the disk is full, and no more.
"""


class DiskReserve:
    """Reserve file; it is given back only when the disk is almost full.

    Otherwise a user who fills the disk would get it too.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def keep(self, space: Space, floor: int) -> None:
        """Set the reserve to the size for this free space, of which `floor` must stay free."""
        size = min(MOST, space.total // SHARE)
        try:
            held = self._path.stat().st_size if self._path.exists() else 0
            if held and space.free < size // 2:
                os.truncate(self._path, 0)
                log.warning("the disk is full: %d MiB that were kept for this are given back", held // MIB)
            elif held < size and space.free > floor + size:
                self._make(size)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                log.warning("no room can be kept in %s: %s", self._path, error.strerror)

    def _make(self, size: int) -> None:
        fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(fd, 0, size)
        finally:
            os.close(fd)
