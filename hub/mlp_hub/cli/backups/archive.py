"""A tar of folders that others write into while it is made, with the checksum of each file in it.

Links are kept as links and never followed, neither when a folder is read nor when it is written again: tenants make
them. The last member, `CONTENTS`, has a checksum for each file; an archive without it is not whole.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import json
import os
import stat
import tarfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Any

from mlp_hub.cli.errors import CommandFailed
from mlp_hub.safe_path import DirHandle
from mlp_language.render import say

CONTENTS = "CONTENTS.json"
_PIECE = 1 << 20
_PACKED = 4096
"""Bytes that are unpacked at a time, to a thousand times as many at most."""
DEEPEST = 200
"""Nested folders at most; deeper ones are left out, because their paths could not be written again."""
LONGEST = 3000
"""Bytes of a path below the state directory; the kernel takes 4095 of a whole one."""
HOLE = 1 << 30
"""Bytes of holes in a file, above which it is left out: the holes would be written as zeros."""
MOST_HEADER = 1 << 20
"""Bytes of a long name or of attributes before a member, which are read whole.

Those written here have some thousand.
"""
MOST_READ = 64 << 20
"""Bytes of a file of ours that is read whole; the head of a backup has some hundred for each job that ran."""
MOST_NAMED = 20
"""Things that are left out whose names are told."""
LATEST = 1 << 33
"""Seconds since 1970 that every file system keeps as a file's time."""
MOST_ID = (1 << 32) - 2
"""Given: the highest number of a user or a group; the next one means nobody's."""
_TENANTS_DOING = frozenset(
    # no rights; another thing has the name by now; a lease on the file, which makes who opens it wait
    {errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENOTDIR, errno.EINVAL, errno.ENXIO, errno.EAGAIN}
)
"""Errors that a program can cause for a reader of its files.

One of these errors leaves one file out, and does not stop the backup.
"""


@dataclass(slots=True)
class Counted:
    """Contents of an archive: files, their bytes, and files that changed or could not be read.

    `left_out` are the first of the files that could not be read, each with its reason.
    """

    files: int = 0
    size: int = 0
    changed: int = 0
    unread: int = 0
    left_out: list[tuple[str, str]] = field(default_factory=list)

    def leave_out(self, name: object, why: str) -> None:
        """Count what is not in the archive."""
        self.unread += 1
        if len(self.left_out) < MOST_NAMED:
            self.left_out.append((str(name), why))


class ArchiveWriter:
    """Writes an archive; `close` makes it whole."""

    def __init__(self, path: Path, *, compress: bool) -> None:
        path.unlink(missing_ok=True)  # of one that was killed; a link of somebody else's is not followed
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        self._file = os.fdopen(os.open(path, flags, 0o600), "wb")
        # a little compression costs little time, and much of it saves no more: homes hold what is compressed already
        self._tar = (
            tarfile.open(fileobj=self._file, mode="w:gz", format=tarfile.PAX_FORMAT, compresslevel=3)  # noqa: SIM115
            if compress
            else tarfile.open(fileobj=self._file, mode="w", format=tarfile.PAX_FORMAT)  # noqa: SIM115
        )
        self._sums: dict[str, str] = {}
        self._linked: dict[tuple[int, ...], str] = {}  # by file, the first of its several names
        self.counted = Counted()

    def data(self, name: str, content: bytes) -> None:
        """Add a file of ours."""
        info = tarfile.TarInfo(name)
        info.size, info.mode = len(content), 0o600
        self._add(info, io.BytesIO(content))
        self._sums[name] = hashlib.sha256(content).hexdigest()

    def file(self, name: str, path: Path) -> None:
        """Add a file of ours that nobody else writes to."""
        with path.open("rb") as opened:
            self._opened(name, opened.fileno(), os.fstat(opened.fileno()))

    def tree(self, name: str, root: Path) -> None:
        """Add a folder with all that is in it, but for sockets, pipes, devices, and what nobody could write again."""
        try:
            top = DirHandle.at(root)
        except FileNotFoundError:
            return  # of a hub that was never up
        with top:
            self._folder(name, top)

    def _folder(self, at: str, here: DirHandle) -> None:
        # names as text: a Path would intern each part, and so make a table of the whole process grow with the files
        if at.count("/") >= DEEPEST or len(os.fsencode(at)) > LONGEST:
            self.counted.leave_out(at, "lies too deep, or its path is too long")
            return
        self._add(_info(at, os.fstat(here.fd)))
        with here.entries() as entries:
            # each name once, and what it is looked at once: who writes here may make it something else at any moment
            names = sorted({entry.name for entry in entries})
        for entry in names:
            name = f"{at}/{entry}"
            with contextlib.ExitStack() as held:
                try:
                    what = _look(here, entry, held)
                except FileNotFoundError:
                    self.counted.changed += 1  # it was there a moment ago
                    continue
                except OSError as error:
                    if error.errno not in _TENANTS_DOING:
                        raise
                    self.counted.leave_out(name, f"cannot be read ({error.strerror})")
                    continue
                if isinstance(what, DirHandle):
                    self._folder(name, what)
                elif isinstance(what, _Link):
                    self._link(name, what)
                elif what is not None:
                    self._regular(name, what, os.fstat(what))

    def _link(self, name: str, link: _Link) -> None:
        info = _info(name, link.found)
        info.type, info.linkname, info.size = tarfile.SYMTYPE, link.target, 0
        self._add(info)
        self._sums[name] = _sum_of_link(info.linkname)

    def _regular(self, name: str, fd: int, found: os.stat_result) -> None:
        """Add a tenant's file: its second name as a name, and none that is made of holes."""
        if found.st_size - 512 * found.st_blocks > HOLE:
            hole = (found.st_size - 512 * found.st_blocks) / 2**30
            why = f"{hole:.1f} GiB of it are holes, more than {HOLE / 2**30:.0f} GiB, which would be written as zeros"
            self.counted.leave_out(name, why)
            return
        # a file that was removed meanwhile leaves its number to another one, of another tenant perhaps
        key = (found.st_dev, found.st_ino, found.st_uid, found.st_ctime_ns)
        first = self._linked.get(key) if found.st_nlink > 1 else None
        if first is None:
            if found.st_nlink > 1:
                self._linked[key] = name
            self._opened(name, fd, found)
            return
        info = _info(name, found)
        info.type, info.linkname, info.size = tarfile.LNKTYPE, first, 0
        self._add(info)
        self._sums[name] = _sum_of_link(first)

    def _opened(self, name: str, fd: int, found: os.stat_result) -> None:
        info = _info(name, found)
        reader = _Exactly(fd, found.st_size)
        self._add(info, reader)
        self._sums[name] = reader.sum.hexdigest()
        self.counted.files += 1
        self.counted.size += found.st_size
        self.counted.changed += reader.short

    def _add(self, info: tarfile.TarInfo, content: Any = None) -> None:
        self._tar.addfile(info, content)
        self._tar.members.clear()  # type: ignore[attr-defined]  # it would keep a kilobyte of each for as long as it is open

    def close(self) -> None:
        """Write the checksums, and all of it to the disk."""
        self.data(CONTENTS, json.dumps(self._sums).encode())
        self._tar.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()


class _Exactly(io.RawIOBase):
    """Reader of exactly `size` bytes of a file, however long it is by now; a missing part is zeros."""

    def __init__(self, fd: int, size: int) -> None:
        super().__init__()
        self._fd, self._left = fd, size
        self.short = False
        self.sum = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        size = self._left if size < 0 else min(size, self._left)
        data = os.read(self._fd, size) if size and not self.short else b""
        if size and not data:
            self.short = True
            data = bytes(min(size, _PIECE))
        while len(data) < size and not self.short:
            more = os.read(self._fd, size - len(data))
            self.short = not more
            data += more or bytes(size - len(data))
        self._left -= len(data)
        self.sum.update(data)
        return data


def _info(name: str, found: os.stat_result) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.mode, info.uid, info.gid = stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid
    info.mtime, info.size = min(max(found.st_mtime, 0), LATEST), found.st_size
    if stat.S_ISDIR(found.st_mode):
        info.type, info.size = tarfile.DIRTYPE, 0
    return info


@dataclass(frozen=True, slots=True)
class _Link:
    target: str
    found: os.stat_result


def _look(here: DirHandle, entry: str, held: contextlib.ExitStack) -> DirHandle | _Link | int | None:
    """Open an entry as it is at this moment: a folder, or a file's descriptor; None for other kinds."""
    found = here.stat(entry)
    if stat.S_ISDIR(found.st_mode):
        return held.enter_context(here.inside(entry))
    if stat.S_ISLNK(found.st_mode):
        return _Link(os.readlink(entry, dir_fd=here.fd), found)
    return held.enter_context(here.read(entry)).fileno() if stat.S_ISREG(found.st_mode) else None


def _sum_of_link(target: str) -> str:
    return hashlib.sha256(b"link " + os.fsencode(target)).hexdigest()


_SUM_BYTES = 70
"""Bytes next to each name in `CONTENTS`: a checksum of 64 digits, and its separators."""


def check(path: Path) -> Counted:
    """Read an archive from end to end; raise Failure where it is not whole and as it was written."""
    sums: dict[str, str] = {}
    contents: object = None
    counted = Counted()
    names: set[str] = set()
    with _members(path) as members:
        for info, content in members:
            if info.name in names:
                raise _broken(path, f"{info.name} is in it twice")
            names.add(info.name)
            if content is not None:
                if info.name == CONTENTS:
                    if info.size > sum(len(json.dumps(name)) + _SUM_BYTES for name in sums) + 2:
                        raise _broken(
                            path,
                            f"{CONTENTS} names more than lies before it: a file is missing, or was added to it",
                        )
                    contents = json.load(content)
                    continue
                counted.files += 1
                counted.size += info.size
                sums[info.name] = _sum(content)
            elif info.issym() or info.islnk():
                sums[info.name] = _sum_of_link(info.linkname)
    if not isinstance(contents, dict):
        raise _broken(path, "its end is missing")
    wrong = sorted(n for n in contents.keys() | sums.keys() if contents.get(n) != sums.get(n))
    if wrong:
        raise _broken(path, f"{wrong[0]} is not what was written")
    return counted


def read(path: Path, name: str) -> bytes:
    """Return one of the first files of an archive; raise Failure where it is not there."""
    with _members(path) as members:
        for info, content in members:
            if info.name == name and content is not None:
                if info.size > MOST_READ:
                    raise _broken(path, f"{name} has {info.size:,} bytes, more than {MOST_READ:,}")
                return content.read()
            if info.name == CONTENTS:
                break
    raise _broken(path, f"{name} is missing")


def extract(
    path: Path, into: Path, belongs: Callable[[PurePosixPath, tarfile.TarInfo], bool] = lambda *_: True
) -> None:
    """Write all of an archive below a folder that is empty. As root files belong to whom they belonged.

    An archive is refused that has a member which does not belong there.
    """
    links: set[PurePosixPath] = set()
    files: set[str] = set()
    folders: list[tuple[Path, tarfile.TarInfo]] = []
    with _members(path) as members:
        for info, content in members:
            name = PurePosixPath(info.name)
            if info.name == CONTENTS:
                continue
            outside = not name.parts or name.is_absolute() or ".." in name.parts
            if outside or not links.isdisjoint((name, *name.parents)):
                raise _broken(path, f"{info.name} would lie outside of the state directory")
            if not belongs(name, info):
                raise _broken(path, f"{info.name} is in no backup")
            to = into / name
            if info.issym():
                links.add(name)
            if info.islnk() and info.linkname not in files:
                raise _broken(path, f"{info.name} is a second name of nothing")
            if info.isreg():
                files.add(info.name)
            if info.isdir():
                to.mkdir(mode=0o700, parents=True, exist_ok=True)
                folders.append((to, info))
            else:
                to.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                _place(content, info, to, into)
    # last: what is written in a folder changes its time, and may need more rights than it gives
    for to, info in reversed(folders):
        _own(to, info)


class _Member(tarfile.TarInfo):
    """A member whose header is not read where it would fill the memory."""

    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        """Read what follows the header, as tarfile lets subclasses do. Raises `tarfile.ReadError`."""
        if self.type in _READ_WHOLE and self.size > MOST_HEADER:
            raise tarfile.ReadError(f"a header of {self.size:,} bytes")
        if self.type in _NEVER_WRITTEN:
            raise tarfile.ReadError(f"a header of a kind that backups do not have, {self.name}")
        return super()._proc_member(archive)  # type: ignore[misc,no-any-return]

    def _proc_gnusparse_10(self, *_: object) -> None:
        """Refuse a file of holes before where they are is read: that may be of any length, and nothing of it is written here."""
        raise tarfile.ReadError("a file that is mostly holes is neither a plain file nor a folder or a link")


_READ_WHOLE = (
    tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE,
)  # fmt: skip
_NEVER_WRITTEN = (tarfile.GNUTYPE_SPARSE, tarfile.XGLTYPE)
"""Given: kinds of headers that tarfile keeps in memory, however many there are: where holes are, and attributes of all that follows."""


def _check_member(path: Path, info: tarfile.TarInfo) -> None:
    """Refuse what is never written here: devices, pipes, sparse files, which may be of any length, and owners that cannot be."""
    if info.issparse() or not (info.isreg() or info.isdir() or info.issym() or info.islnk()):
        raise _broken(path, f"{info.name} is neither a plain file nor a folder or a link")
    if not (0 <= info.uid <= MOST_ID and 0 <= info.gid <= MOST_ID):
        raise _broken(path, f"{info.name} belongs to user {info.uid} and group {info.gid}, which cannot be")


def _place(content: IO[bytes] | None, info: tarfile.TarInfo, to: Path, into: Path) -> None:
    if info.islnk():
        to.hardlink_to(into / info.linkname)
    elif info.issym():
        to.symlink_to(info.linkname)
        if os.geteuid() == 0:
            os.lchown(to, info.uid, info.gid)
    elif content is not None:
        with to.open("xb") as out:
            while piece := content.read(_PIECE):
                out.write(piece)
        _own(to, info)


def _own(to: Path, info: tarfile.TarInfo) -> None:
    if os.geteuid() == 0:
        os.chown(to, info.uid, info.gid)
    # neither the platform nor a tenant makes a program that runs as root whoever starts it
    of_root = info.isreg() and 0 in (info.uid, info.gid)
    # after the owner: a change of owner takes bits away
    to.chmod(info.mode & (0o1777 if of_root else 0o7777))
    at = min(max(info.mtime, 0), LATEST)
    os.utime(to, (at, at))


@contextlib.contextmanager
def _members(path: Path) -> Iterator[Iterator[tuple[tarfile.TarInfo, IO[bytes] | None]]]:
    """Open an archive and yield its members, each with its content where it is a plain file.

    Read the content before asking for the next member.
    """
    try:
        with path.open("rb") as file:
            # no other packing is written here, and some need as much memory as their first bytes claim
            packed = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            with tarfile.open(
                fileobj=file, mode="r|gz" if packed else "r|", tarinfo=_Member, bufsize=_PACKED
            ) as tar:
                yield _each(path, tar)
    # a name with a NUL is a ValueError once it is written, a number that the kernel does not take an OverflowError
    except (tarfile.TarError, EOFError, zlib.error, ValueError, OverflowError, RecursionError) as error:
        raise _broken(path, str(error)) from error
    except OSError as error:
        raise CommandFailed(
            say(
                "{path} cannot be read or written out: {why}.",
                path=str(path),
                why=str(error.strerror or error),
            )
        ) from error


def _each(path: Path, tar: tarfile.TarFile) -> Iterator[tuple[tarfile.TarInfo, IO[bytes] | None]]:
    for info in tar:
        tar.members.clear()  # type: ignore[attr-defined]  # it would keep all of them
        _check_member(path, info)
        yield info, tar.extractfile(info) if info.isreg() else None


def _sum(content: IO[bytes]) -> str:
    sha = hashlib.sha256()
    while piece := content.read(_PIECE):
        sha.update(piece)
    return sha.hexdigest()


def _broken(path: Path, why: str) -> CommandFailed:
    return CommandFailed(
        say("{path} is not a complete backup: {why}.", path=str(path), why=why),
        say("Take another one; nothing was changed."),
    )
