"""Keeps the number of lines that could not be written, so that it outlives a shim that is killed while the disk is full. Standard library only."""

from __future__ import annotations

import contextlib
import os

NAME = "lost"
"""The file in a run directory with the number. It has its full length from the start: a change needs no more room."""
_DIGITS = 20
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class Losses:
    """Number of losses of a run directory, or of a rank in its pod."""

    def __init__(self, directory: str, name: str = NAME, mode: int = 0o600) -> None:
        """Make the file. Raises OSError: without it, an attempt that begins on a full disk could lose lines that nobody knows of."""
        self._count = 0
        self._path = f"{directory}/{name}"
        self._fd = os.open(self._path, _FLAGS, mode)
        os.pwrite(self._fd, bytes(_DIGITS), 0)

    def add(self, lines: int) -> None:
        """Count lines that were lost."""
        self._count += lines
        if lines:
            with contextlib.suppress(OSError):
                os.pwrite(self._fd, b"%0*d" % (_DIGITS, self._count), 0)

    def close(self) -> None:
        """Keep the file only where something was lost."""
        os.close(self._fd)
        if not self._count:
            with contextlib.suppress(OSError):
                os.unlink(self._path)


def count_of(run_dir: str) -> int:
    """Return how many lines were lost, as far as was noted down."""
    with contextlib.suppress(OSError, ValueError), open(f"{run_dir}/{NAME}", "rb") as file:
        return parsed(file.read(_DIGITS))
    return 0


def parsed(text: bytes) -> int:
    """Return the number that the file has; raises ValueError where it has none."""
    return max(0, int(text.strip(b"\0") or b"0"))
