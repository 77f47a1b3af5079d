"""Copies of a program's files, made by descriptors alone: whole and unchanged, or not at all.

A copy shares its blocks with the original where the file system can (a reflink). It never shares
the inode, since the program can continue to write to that. Existing files at the target are removed
first. So the copy can be started again after any crash.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path

from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.executors.shared_volume.files import clip, kind_of, open_file, opened, parts_of, refusal
from mlp_hub.executors.shared_volume.trees.removal import remove_directory
from mlp_hub.executors.workspace import EntryKind, Extent
from mlp_hub.safe_path import DirHandle
from mlp_language.message import msg

MOST_FILES = 100_000
"""Limit of data: files and directories of a model."""
DEEPEST = 32
"""Limit of data: nested directories of a model."""
CHUNK = 4 << 20
"""Tuning: bytes that are copied between two looks whether it is still wanted."""
_FICLONE = 0x40049409
"""Given: the ioctl that has a file share the blocks of another."""


@dataclass(slots=True)
class _Count:
    """Counts of the entries so far."""

    entries: int = 0
    files: int = 0
    size: int = 0

    def meet(self, path: str) -> None:
        """Count an entry."""
        self.entries += 1
        if self.entries > MOST_FILES:
            raise Refused(
                Reason.INVALID,
                msg(
                    "{path} has more than {n} files; choose a directory with fewer files",
                    path=clip(path),
                    n=MOST_FILES,
                ),
            )

    @property
    def extent(self) -> Extent:
        return Extent(self.files, self.size)


def extent_of(top: Path, path: str) -> Extent:
    """Add up the files at a path; blocks. Refuses what a copy would refuse."""
    count = _Count()
    for folder, name in _sources(top, path):
        if name is None:
            _add_up(folder, path, count, 1)
        else:
            count.files, count.size = 1, folder.stat(name).st_size
    return _not_empty(count, path)


def copy(top: Path, path: str, target: Path, most: int, check_cancelled: Callable[[], None]) -> Extent:
    """Copy the files at a path into a directory, replace its contents, and sync them to disk; blocks."""
    remove_directory(target, check_cancelled)
    shelf = target.parent
    os.makedirs(shelf.parent, 0o711, exist_ok=True)  # noqa: PTH103 - all above it is the platform's
    # what is kept is read by its owner's notebooks, and the directory above lets in nobody else
    with (
        DirHandle.at(shelf.parent) as shelves,
        shelves.inside(shelf.name, make=0o700) as mine,
        mine.inside(target.name, make=0o755) as kept,
    ):
        os.fchmod(kept.fd, 0o755)
    copier = _Copier(most, check_cancelled)
    with DirHandle.at(target) as there:
        for folder, name in _sources(top, path):
            if name is None:
                copier.directory(folder, there, path, 1)
            else:
                copier.file(folder, there, name, path)
        os.fsync(there.fd)
    with DirHandle.at(target.parent) as above:
        os.fsync(above.fd)
    return _not_empty(copier.count, path)


def _not_empty(count: _Count, path: str) -> Extent:
    if not count.files:
        raise Refused(Reason.INVALID, msg("{path} holds no file", path=clip(path) or "/"))
    return count.extent


def _sources(top: Path, path: str) -> Iterator[tuple[DirHandle, str | None]]:
    """Yield the directory at a path, or the one that a file lies in with the file's name."""
    parts = parts_of(path)
    with opened(top, parts[:-1], path) as above:
        if not parts:
            yield above, None
            return
        try:
            kind = kind_of(above.stat(parts[-1]).st_mode)
        except OSError as error:
            raise refusal(error, path) from None
        if kind is EntryKind.FILE:
            yield above, parts[-1]
            return
    if kind is not EntryKind.DIRECTORY:
        open_file(top, path).close()  # it refuses with the reason
    with opened(top, parts, path) as folder:
        yield folder, None


def _kind(entry_mode: int, path: str) -> EntryKind:
    kind = kind_of(entry_mode)
    if kind in (EntryKind.LINK, EntryKind.OTHER):
        raise Refused(
            Reason.INVALID,
            msg(
                "{path} is a link or not a file; a model has only files and directories: copy the target of the link there",
                path=clip(path),
            ),
        )
    return kind


def _names(folder: DirHandle, path: str, count: _Count, depth: int) -> list[str]:
    if depth > DEEPEST:
        raise Refused(
            Reason.INVALID, msg("{path} is more than {n} directories deep", path=clip(path), n=DEEPEST)
        )
    names = []
    with folder.entries() as entries:
        for entry in entries:
            count.meet(path)
            names.append(entry.name)
    return sorted(names)


def _add_up(folder: DirHandle, path: str, count: _Count, depth: int) -> None:
    for name in _names(folder, path, count, depth):
        below = f"{path}/{name}"
        try:
            found = folder.stat(name)
            if _kind(found.st_mode, below) is EntryKind.DIRECTORY:
                with folder.inside(name) as inner:
                    _add_up(inner, below, count, depth + 1)
                continue
        except OSError as error:
            raise refusal(error, below) from None
        count.files += 1
        count.size += found.st_size


class _Copier:
    """Copy in progress."""

    def __init__(self, most: int, check_cancelled: Callable[[], None]) -> None:
        self._most = most
        self._check_cancelled = check_cancelled
        self.count = _Count()

    def directory(self, folder: DirHandle, to: DirHandle, path: str, depth: int) -> None:
        for name in _names(folder, path, self.count, depth):
            below = f"{path}/{name}"
            try:
                kind = _kind(folder.stat(name).st_mode, below)
                inner = folder.inside(name) if kind is EntryKind.DIRECTORY else None
            except OSError as error:
                raise refusal(error, below) from None
            if inner is None:
                self.file(folder, to, name, below)
                continue
            with inner, to.inside(name, make=0o755) as there:
                self.directory(inner, there, below, depth + 1)
                os.fsync(there.fd)

    def file(self, folder: DirHandle, to: DirHandle, name: str, path: str) -> None:
        self._check_cancelled()
        try:
            source = folder.read(name)
        except OSError as error:
            raise refusal(error, path) from None
        with source, to.create(name, 0o644) as there:
            before = os.fstat(source.fileno())
            if self.count.size + before.st_size > self._most:
                raise _changed(path)
            size = self._content(source, there.fileno(), before.st_size)
            if size != before.st_size or _state(os.fstat(source.fileno())) != _state(before):
                raise _changed(path)
            os.fsync(there.fileno())
        self.count.files += 1
        self.count.size += size

    def _content(self, source: BufferedReader, to: int, size: int) -> int:
        with contextlib.suppress(OSError):
            fcntl.ioctl(to, _FICLONE, source.fileno())
            return os.fstat(to).st_size
        done = 0
        while done <= size:  # one byte more than there was says that it grows
            self._check_cancelled()
            data = os.pread(source.fileno(), CHUNK, done)
            if not data:
                break
            left = memoryview(data)
            while left:
                left = left[os.write(to, left) :]
            done += len(data)
        return done


def _state(found: os.stat_result) -> tuple[int, int, int]:
    return stat.S_IFMT(found.st_mode), found.st_size, found.st_mtime_ns


def _changed(path: str) -> Refused:
    return Refused(
        Reason.CONFLICT,
        msg(
            "{path} changed while it was copied; register it again when its program has written it",
            path=clip(path),
        ),
    )
