"""What a job's processes reported and never delivered: the spool files in its directory.

A job's directory is written by its user's programs, so nothing in it is trusted: links are not followed, only
plain files are read, and sizes are bounded.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader
from itertools import islice
from json import JSONDecodeError, loads
from pathlib import Path
from typing import Any

MOST_FILES = 20_000
MOST_NAMES = 100_000  # looked at in the directory
MOST_BYTES = 512 * 2**20  # of all files of a job together
MOST_LINE = 256 * 1024
MOST_VALUES = 100
_SOURCE = re.compile(r"([0-9]{1,6}\.[0-9]{1,6}\.[0-9a-z]{1,32})\.jsonl", re.ASCII)


@dataclass(frozen=True, slots=True)
class SpooledPoint:
    """A point as it stands in a spool file; the fields are those of the wire."""

    n: int
    t: float
    v: dict[str, float | int]


def sources(workspace: Path) -> list[str]:
    """List the reporting processes that left a spool file."""
    directory = _open_directory(workspace)
    if directory is None:
        return []
    try:
        # never a list of all names: a program can make millions
        with os.scandir(directory) as entries:
            found = [m[1] for entry in islice(entries, MOST_NAMES) if (m := _SOURCE.fullmatch(entry.name))]
    finally:
        os.close(directory)
    return sorted(found)[:MOST_FILES]


class Room:
    """How many bytes of a job's spool files may still be read."""

    def __init__(self, left: int = MOST_BYTES) -> None:
        self.left = left


def read(
    workspace: Path, source: str, after: int, size: int = 5000, room: Room | None = None
) -> Iterator[list[SpooledPoint]]:
    """Yield the source's points numbered above `after`, in order, in lists of `size` at most.

    Lines that cannot be read (the process was killed while it wrote) are left out. Reading ends when the room
    does, which the files of a job share.
    """
    file = _open(workspace, f"{source}.jsonl")
    if file is None:
        return
    with file:
        batch: list[SpooledPoint] = []
        last = after
        for line in _lines(file, room or Room()):
            point = _point(line)
            if point is not None and point.n > last:
                last = point.n
                batch.append(point)
                if len(batch) >= size:
                    yield batch
                    batch = []
        if batch:
            yield batch


def renumbered(points: list[SpooledPoint], after: int) -> list[SpooledPoint]:
    """Number the points on from `after` without gaps: what is missing between them will never come."""
    if points and points[0].n == after + 1 and points[-1].n == after + len(points):
        return points
    return [SpooledPoint(n, p.t, p.v) for n, p in enumerate(points, after + 1)]


def _point(line: bytes) -> SpooledPoint | None:
    try:
        entry = loads(line)  # takes NaN and Infinity, which programs do report
    except (JSONDecodeError, UnicodeDecodeError, RecursionError, ValueError):
        return None
    if not isinstance(entry, dict):
        return None
    n, t, v = entry.get("n"), entry.get("t"), entry.get("v")
    if (
        not isinstance(n, int)
        or isinstance(n, bool)
        or not isinstance(t, int | float)
        or not isinstance(v, dict)
    ):
        return None
    try:
        return SpooledPoint(n, float(t), values_of(v))
    except OverflowError:
        return None


def values_of(plain: dict[str, Any]) -> dict[str, float | int]:
    """Return the numeric values; null stands for one that is not finite, and what is no number is left out."""
    values: dict[str, float | int] = {}
    for key, value in plain.items():
        # half a surrogate pair is text to JSON and cannot be stored
        name = key[:100] if key.isascii() else key[:100].encode(errors="replace").decode()
        if value is None:
            values[name] = float("nan")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            values[name] = value
        if len(values) >= MOST_VALUES:
            break
    return values


def _lines(file: BufferedReader, room: Room) -> Iterator[bytes]:
    whole = True
    while room.left > 0 and (line := file.readline(MOST_LINE)):
        room.left -= len(line)
        ended = line.endswith(b"\n")
        if whole and ended:
            yield line
        whole = ended  # the rest of a line that was too long is passed over


def _open_directory(workspace: Path) -> int | None:
    try:
        return os.open(workspace / "metrics", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None


def _open(workspace: Path, name: str) -> BufferedReader | None:
    directory = _open_directory(workspace)
    if directory is None:
        return None
    try:
        # non-blocking, so that a pipe of that name stops nobody
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    except OSError:
        return None
    finally:
        os.close(directory)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        return None
    return os.fdopen(fd, "rb")
