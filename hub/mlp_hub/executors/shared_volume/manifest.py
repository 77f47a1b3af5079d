"""Digest of a dataset's files, from the checksums stored next to them, without reading the files."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from mlp_hub.executors.shared_volume.trees.sizes import DEEPEST
from mlp_hub.executors.workspace import Contents
from mlp_hub.safe_path import DIGEST_ATTRIBUTE, DirHandle

MOST_FILES = 100_000
"""Safety: files of one manifest; of more nothing is told: a few seconds of a thread, and their lines in memory."""


def manifest_of(top: Path) -> Contents | None:
    """Return the digest of the files below a directory; None if they are too many or unreadable.

    A file counts by its path, its length and its checksum, where one was stored with it and it was not
    written to since. Otherwise it counts by the time of its last write. Links are not part of the
    content.
    """
    lines: list[bytes] = []
    checked = size = 0
    left: list[tuple[str, ...]] = [()]
    while left:
        way = left.pop()
        try:
            with DirHandle.at(top) as root, root.deep_inside(way) as folder:
                for name, found in _entries(folder):
                    if len(lines) + len(left) >= MOST_FILES or len(way) >= DEEPEST:
                        return None
                    if stat.S_ISDIR(found.st_mode):
                        left.append((*way, name))
                    elif stat.S_ISREG(found.st_mode):
                        checksum = _checksum(folder, name, found)
                        checked += bool(checksum)
                        size += found.st_size
                        said = checksum or f"at {found.st_mtime_ns}"
                        lines.append(
                            os.fsencode("/".join((*way, name))) + f"\0{found.st_size} {said}".encode()
                        )
        except FileNotFoundError:
            continue  # nothing was ever put there, or it is gone
        except OSError:
            return None
    whole = hashlib.sha256()
    for line in sorted(lines):
        whole.update(line + b"\0\0")
    return Contents(len(lines), size, checked, whole.hexdigest())


def _entries(folder: DirHandle) -> Iterator[tuple[str, os.stat_result]]:
    with folder.entries() as entries:
        names = [entry.name for entry in entries]
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            yield name, folder.stat(name)


def _checksum(folder: DirHandle, name: str, found: os.stat_result) -> str:
    """Return a file's SHA-256 as it was stored with it; empty where none was, or it was written to since."""
    try:
        with folder.read(name) as file:
            value = os.getxattr(file.fileno(), DIGEST_ATTRIBUTE)
    except OSError:
        return ""
    size, _, rest = value.decode("ascii", "replace").partition(" ")
    mtime, _, digest = rest.partition(" ")
    return digest if (size, mtime) == (str(found.st_size), str(found.st_mtime_ns)) else ""
