"""Copy of a tenant's files into another tree, and a comparison of both, by open directories and names.

The process can be root, and so it never follows a link: links are copied as links. A copy keeps:
contents with their holes, owners, modes, times of files and directories, extended attributes that
their owner may set, named pipes, and hard links within one directory of the platform's (a dataset,
a model, a run of a job). Sockets are left out, because their listener is gone.

A file's time is set last. So after a crash a new start sees which files are whole, and copies the
others again.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from mlp_hub.executors.shared_volume.trees.removal import remove_directory_in
from mlp_hub.executors.tenant_files import MovedWrongError
from mlp_hub.safe_path import DEEPEST, DirHandle
from mlp_language.message import msg

CHUNK = 1 << 20
"""Tuning: bytes that are copied or compared at a time: fewer calls, for the memory and for how soon it can be left off."""
SHOWN = 100
"""Safety: characters of a path that a message repeats."""
_ATTRIBUTES = ("user.", "system.posix_acl_")
Names = tuple[str, ...]


@dataclass(slots=True)
class Pass:
    """One way through a tree: `check_cancelled` is called often and may raise to leave off; `did` is told bytes that are done."""

    check_cancelled: Callable[[], None]
    did: Callable[[int], None] = lambda _: None
    links: dict[tuple[int, int], Names] = field(
        default_factory=dict
    )  # of files with several names, the first one


def size_of(found: os.stat_result) -> int:
    """Return the bytes of a file that have to be copied: of one with holes what it takes."""
    return min(found.st_size, found.st_blocks * 512) if stat.S_ISREG(found.st_mode) else 0


def added_up(top: DirHandle, check_cancelled: Callable[[], None]) -> int:
    """Return the bytes of all files below a directory."""
    total = 0
    for _, found in _below(top, (), check_cancelled):
        total += size_of(found)
    return total


def _below(
    folder: DirHandle, at: Names, check_cancelled: Callable[[], None]
) -> Iterator[tuple[Names, os.stat_result]]:
    for name, found in _entries(folder, at, check_cancelled):
        if stat.S_ISDIR(found.st_mode):
            with _opened(folder, name, found) as inner:
                yield from _below(inner, (*at, name), check_cancelled)
        else:
            yield (*at, name), found


def copy(source: DirHandle, target: DirHandle, going: Pass) -> None:
    """Make `target` equal to `source`; existing whole files stay."""
    _Copy(target, going).directory(source, target, ())


class _Copy:
    def __init__(self, top: DirHandle, going: Pass) -> None:
        self._top, self._going = top, going

    def directory(self, source: DirHandle, target: DirHandle, at: Names) -> None:
        found = os.fstat(source.fd)
        names = set()
        for name, entry in _entries(source, at, self._going.check_cancelled):
            if stat.S_ISSOCK(entry.st_mode):
                continue
            names.add(name)
            if stat.S_ISDIR(entry.st_mode):
                _clear_for(target, name, entry)
                with _opened(source, name, entry) as inner, target.inside(name, make=0o700) as there:
                    self.directory(inner, there, (*at, name))
            else:
                self._entry(source, target, (*at, name), entry)
        for name in _names(target) - names:  # of an earlier try
            remove_directory_in(target, name)
        _dress(source.fd, target.fd, found)

    def _entry(self, source: DirHandle, target: DirHandle, at: Names, found: os.stat_result) -> None:
        name, size = at[-1], size_of(found)
        there = _stat(target, name)
        first = self._going.links.get((found.st_dev, found.st_ino)) if found.st_nlink > 1 else None
        if first is not None:
            self._link(target, first, name, there)
        elif not _is_whole(source, target, name, found, there):
            if there is not None:
                remove_directory_in(target, name)
            self._make(source, target, at, found)
            size = 0  # it was told on the way
        if found.st_nlink > 1 and first is None:
            self._going.links[found.st_dev, found.st_ino] = at
        self._going.did(size)

    def _link(self, target: DirHandle, first: Names, name: str, there: os.stat_result | None) -> None:
        with self._top.deep_inside(first[:-1]) as above:
            if there is not None and os.path.samestat(there, above.stat(first[-1])):
                return
            if there is not None:
                remove_directory_in(target, name)
            above.hard_link(first[-1], target, name)

    def _make(self, source: DirHandle, target: DirHandle, at: Names, found: os.stat_result) -> None:
        name, mode = at[-1], stat.S_IMODE(found.st_mode)
        if stat.S_ISLNK(found.st_mode):
            target.link(name, source.target(name))
        elif stat.S_ISFIFO(found.st_mode):
            target.pipe(name, mode)
        elif stat.S_ISREG(found.st_mode):
            with source.read(name) as read, target.create(name, 0o600) as made:
                for begin, end in _data(read.fileno(), found.st_size):
                    self._content(read.fileno(), made.fileno(), begin, end)
                os.ftruncate(made.fileno(), found.st_size)
                _dress(read.fileno(), made.fileno(), found)
            return
        else:
            raise MovedWrongError(
                msg("{path} is a device, which cannot be copied; remove it", path=_shown(at))
            )
        target.stamp(name, found)

    def _content(self, source: int, target: int, begin: int, end: int) -> None:
        while begin < end:
            self._going.check_cancelled()
            data = os.pread(source, min(CHUNK, end - begin), begin)
            if not data:
                return
            left = memoryview(data)
            while left:
                written = os.pwrite(target, left, begin)
                left, begin = left[written:], begin + written
            self._going.did(len(data))


def compare(source: DirHandle, target: DirHandle, going: Pass) -> None:
    """Raise `MovedWrongError` unless both are the same, to the last byte."""
    _compare(source, target, (), going)


def _compare(source: DirHandle, target: DirHandle, at: Names, going: Pass) -> None:
    names = set()
    for name, found in _entries(source, at, going.check_cancelled):
        if stat.S_ISSOCK(found.st_mode):
            continue
        names.add(name)
        there, here = _stat(target, name), (*at, name)
        if there is None or stat.S_IFMT(there.st_mode) != stat.S_IFMT(found.st_mode):
            raise _other(here)
        if stat.S_ISDIR(found.st_mode):
            with _opened(source, name, found) as inner, target.inside(name) as below:
                _compare(inner, below, here, going)
        elif not _is_whole(source, target, name, found, there):
            raise _other(here)
        elif stat.S_ISREG(found.st_mode):
            _compare_contents(source, target, here, found.st_size, going)
    if _names(target) != names:
        raise _other((*at, min(_names(target) ^ names)))
    if _worn(os.fstat(source.fd)) != _worn(os.fstat(target.fd)):
        raise _other(at)


def _compare_contents(source: DirHandle, target: DirHandle, at: Names, size: int, going: Pass) -> None:
    with source.read(at[-1]) as mine, target.read(at[-1]) as copied:
        for begin, end in _data(mine.fileno(), size):
            for offset in range(begin, end, CHUNK):
                going.check_cancelled()
                piece = min(CHUNK, end - offset)
                if os.pread(mine.fileno(), piece, offset) != os.pread(copied.fileno(), piece, offset):
                    raise _other(at)
                going.did(piece)


def _other(at: Names) -> MovedWrongError:
    return MovedWrongError(msg("{path} is not the same in both places", path=_shown(at)))


def _is_whole(
    source: DirHandle, target: DirHandle, name: str, found: os.stat_result, there: os.stat_result | None
) -> bool:
    if there is None or _worn(found) != _worn(there):
        return False
    if stat.S_ISLNK(found.st_mode):
        return source.target(name) == target.target(name)
    return not stat.S_ISREG(found.st_mode) or found.st_size == there.st_size


def _worn(found: os.stat_result) -> tuple[int, ...]:
    """Return the properties that a copy shares with its original, except the content."""
    owner = (found.st_uid, found.st_gid) if os.geteuid() == 0 else ()
    mode = stat.S_IFMT(found.st_mode) if stat.S_ISLNK(found.st_mode) else found.st_mode
    return (mode, *owner, found.st_mtime_ns)


def _dress(source: int, target: int, found: os.stat_result) -> None:
    """Give a file or directory what another one has; its time last."""
    with contextlib.suppress(OSError):  # a file system that knows none
        for name in os.listxattr(source):
            if name.startswith(_ATTRIBUTES):
                os.setxattr(target, name, os.getxattr(source, name))
    if os.geteuid() == 0:
        os.fchown(target, found.st_uid, found.st_gid)
    os.fchmod(target, stat.S_IMODE(found.st_mode))
    os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))


def _entries(
    folder: DirHandle, at: Names, check_cancelled: Callable[[], None]
) -> Iterator[tuple[str, os.stat_result]]:
    if len(at) > DEEPEST:
        raise MovedWrongError(
            msg("{path} is more than {n} directories deep; move it further up", path=_shown(at), n=DEEPEST)
        )
    for name in sorted(_names(folder)):
        check_cancelled()
        yield name, folder.stat(name)


def _names(folder: DirHandle) -> set[str]:
    with folder.entries() as entries:
        return {entry.name for entry in entries}


def _opened(folder: DirHandle, name: str, found: os.stat_result) -> DirHandle:
    """Open a directory, also one that its owner closed to himself where we are no more than that."""
    if os.geteuid() != 0 and stat.S_IMODE(found.st_mode) & 0o500 != 0o500:
        folder.open_up(name)
    return folder.inside(name)


def _clear_for(target: DirHandle, name: str, wanted: os.stat_result) -> None:
    """Remove what has the name of a directory and is none."""
    there = _stat(target, name)
    if there is not None and stat.S_IFMT(there.st_mode) != stat.S_IFMT(wanted.st_mode):
        remove_directory_in(target, name)
    elif there is not None and os.geteuid() != 0:
        target.open_up(name)


def _stat(folder: DirHandle, name: str) -> os.stat_result | None:
    try:
        return folder.stat(name)
    except FileNotFoundError:
        return None


def _data(fd: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield where a file has content: between its holes."""
    at = 0
    while at < size:
        try:
            begin = os.lseek(fd, at, os.SEEK_DATA)
            end = os.lseek(fd, begin, os.SEEK_HOLE)
        except OSError as error:
            if error.errno != errno.ENXIO:  # no such question here: all of it
                yield at, size
            return
        yield begin, min(end, size)
        at = end


def _shown(at: Names) -> str:
    text = "/".join(at) or "."
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return text if len(text) <= SHOWN else f"...{text[-SHOWN:]}"
