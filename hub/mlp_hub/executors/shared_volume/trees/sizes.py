"""Sizes of directories on disk, below their names and never through a link; blocks, so use a thread."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from mlp_hub.executors.turns import Steps
from mlp_hub.executors.workspace import Size, Space
from mlp_hub.safe_path import DirHandle
from mlp_language.message import Message, msg

ENTRY = 4096
"""Safety: bytes that an entry counts at least: a name and an inode are no more free than data."""
FREE_ENTRIES = 100
"""Given: entries of something that is stored of which only the bytes count; each further one counts `ENTRY` as well."""
SPARE = 2 * ENTRY
"""Safety: bytes that the disk keeps for a plain file beyond its length without anybody's doing: the rest of a block, and attributes."""
SPARE_PART = 32
"""Safety: divisor of a file's length; its map, or its encryption, can take that part in addition."""
DEEPEST = 200
"""Safety: directories on the way to a file: each is opened again for each directory below it."""
MOST_BELOW = 100_000
"""Safety: directories that are still to be looked into; their names are held in memory meanwhile."""
STEP = 256
"""Tuning: entries that are looked at without a break: size of a lot, for how long others wait behind it."""


def measure(top: Path) -> Steps[Size]:
    """Return the disk use below a directory; nothing without one. Hard-linked files count in parts.

    No directory is held open between two steps, so any number of measurements can be in progress.
    """
    used = small = 0
    unseen: Message | None = None
    way: list[str] = []  # names from the top to where we are
    left: list[list[str]] = []  # of each directory on it: those in it that are still to be looked into
    while True:
        room = MOST_BELOW - sum(map(len, left))
        below: list[str] = []
        with contextlib.suppress(OSError), _at(top, way) as folder:  # else it is gone
            for n, (size, name) in enumerate(_entries(folder)):
                used += max(size, ENTRY)
                small += size < ENTRY
                if name and len(below) < room:
                    below.append(name)
                elif name:
                    unseen = msg("more than {n} directories next to each other", n=MOST_BELOW)
                if n % STEP == STEP - 1:
                    yield used
        if below and len(way) >= DEEPEST:
            unseen = msg("directories nested more than {n} levels deep", n=DEEPEST)
            below = []
        left.append(below)
        while left and not left[-1]:
            left.pop()
        if not left:
            return Size(used, unseen, small)
        way[len(left) - 1 :] = [left[-1].pop()]
        yield used


def measured(top: Path) -> int:
    """Return what lies below a directory takes on disk, in one go."""
    steps = measure(top)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            size: Size = end.value
            return size.used


def charge_of(tops: Iterable[Path]) -> int:
    """Return what the files below some directories count together: their lengths, and each further entry `ENTRY`.

    Names, inodes and properties of files take room too, whatever their lengths: of the first `FREE_ENTRIES` it is forgotten.
    """
    found = [_extent_of(top) for top in tops]
    return sum(length for length, _ in found) + entries_beyond(sum(n for _, n in found))


def entries_beyond(n: int) -> int:
    """Return the size that `n` entries count in addition to the lengths of files."""
    return max(n - FREE_ENTRIES, 0) * ENTRY


def length_of(top: Path) -> int:
    """Add up the lengths of the plain files below a directory, each name of a file for itself; 0 where there is none.

    Room beyond its end that a file holds on the disk (`fallocate --keep-size`) counts too: nobody else can have it.
    """
    return _extent_of(top)[0]


def _extent_of(top: Path) -> tuple[int, int]:
    """Return the lengths of all files below a directory, and the number of entries of any kind."""
    total = entries_seen = 0
    left: list[list[str]] = [[]]
    while left:
        way = left.pop()
        with contextlib.suppress(OSError), _at(top, way) as folder, folder.entries() as entries:
            for entry in entries:
                entries_seen += 1
                with contextlib.suppress(OSError):
                    found = entry.stat(follow_symlinks=False)
                    if stat.S_ISDIR(found.st_mode) and len(way) < DEEPEST and len(left) < MOST_BELOW:
                        left.append([*way, entry.name])
                    elif stat.S_ISREG(found.st_mode):
                        size = found.st_size
                        beyond = found.st_blocks * 512 - size - size // SPARE_PART - SPARE
                        total += size + max(beyond, 0)
    return total, entries_seen


def _at(top: Path, way: list[str]) -> DirHandle:
    folder = DirHandle.at(top)
    for name in way:
        with folder:
            folder = folder.inside(name)
    return folder


def _entries(folder: DirHandle) -> Iterator[tuple[int, str]]:
    """Yield what each entry of a directory takes, with its name where it is a directory too."""
    with folder.entries() as entries:
        for entry in entries:
            try:
                found = entry.stat(follow_symlinks=False)
                if entry.is_dir(follow_symlinks=False):
                    yield found.st_blocks * 512, entry.name
                else:
                    yield found.st_blocks * 512 // max(found.st_nlink, 1), ""
            except OSError:
                continue  # it is gone


def space_of(path: Path) -> Space | None:
    """Return how much room the file system of a directory has; None where it cannot be asked."""
    try:
        found = os.statvfs(path)
    except OSError:
        return None
    unit = found.f_frsize
    return Space(found.f_blocks * unit, found.f_bavail * unit, found.f_files, found.f_favail)
