"""Single way to files that tenants' programs can make: their homes and their jobs' directories.

The process that opens them can be root, and any entry can be a link to anywhere, or become one at
any moment. So a directory is opened once, by the platform's own path. Everything below it is named
by the descriptor of its directory and a single name, which is never followed where it is a link.
Only the standard library is imported, because the shim uses this module too.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Sequence
from enum import StrEnum
from io import BufferedReader, BufferedWriter
from typing import NamedTuple, Self

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
LINKS_MAX = 40  # on the way to one file, as the kernel has it
DEEPEST = 100  # directories on the way to one file; each is held open meanwhile
DIGEST_ATTRIBUTE = "user.mlp.sha256"
"""Extended attribute of a file: its size, when it was written, and its SHA-256 then."""


class PathKind(StrEnum):
    """Kind of entry at a path."""

    FILE = "file"
    DIRECTORY = "directory"
    OTHER = "other"  # a device, a pipe, a socket
    MISSING = "missing"
    OUTSIDE = "outside"  # a link on the way leaves the directory: nobody looks what is there
    UNKNOWN = "unknown"  # it cannot be looked at: rights, too deep


class Peek(NamedTuple):
    """Entry at a path; for a file its mode and its first bytes, which are empty where it may not be read."""

    kind: PathKind
    mode: int = 0
    head: bytes = b""


class DirHandle:
    """An open directory. Names are those of its entries: single ones, and no `..`."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    @classmethod
    def at(cls, path: str | os.PathLike[str]) -> Self:
        """Open by a path that is the platform's own; only its last part is refused where it is a link."""
        return cls(os.open(path, _DIRECTORY))

    def inside(self, name: str, *, make: int | None = None) -> Self:
        """Open a directory that lies here; with `make` it is made with that mode where nothing has its name."""
        if make is not None:
            with contextlib.suppress(FileExistsError):
                os.mkdir(_single(name), make, dir_fd=self.fd)
        return type(self)(os.open(_single(name), _DIRECTORY, dir_fd=self.fd))

    def make(self, name: str, mode: int) -> None:
        """Make a directory; FileExistsError for whatever has its name."""
        os.mkdir(_single(name), mode, dir_fd=self.fd)

    def close(self) -> None:
        """Close it."""
        os.close(self.fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextlib.contextmanager
    def deep_inside(self, names: Sequence[str]) -> Iterator[DirHandle]:
        """Open a directory some directories further down, none of them a link; OSError where one is missing."""
        with contextlib.ExitStack() as held:
            here = self
            for name in names:
                here = held.enter_context(here.inside(name))
            yield here

    @contextlib.contextmanager
    def entries(self) -> Iterator[Iterator[os.DirEntry[str]]]:
        """Iterate over the entries; ask them only with `follow_symlinks=False`."""
        with os.scandir(self.fd) as found:
            yield found

    def stat(self, name: str) -> os.stat_result:
        """Return what the entry itself is, a link where it is one."""
        return os.stat(_single(name), dir_fd=self.fd, follow_symlinks=False)

    def read(self, name: str) -> BufferedReader:
        """Open a plain file to read; OSError for everything else. A pipe of that name makes nobody wait."""
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        fd = os.open(_single(name), flags, dir_fd=self.fd)
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise FileNotFoundError(2, "not a plain file", name)
        return os.fdopen(fd, "rb")

    def create(self, name: str, mode: int, uid: int | None = None) -> BufferedWriter:
        """Make a file that was not there before, of that mode and owner; FileExistsError for whatever has its name."""
        fd = os.open(_single(name), _NEW, mode, dir_fd=self.fd)
        os.fchmod(fd, mode)
        if uid is not None:
            os.fchown(fd, uid, uid)
        return os.fdopen(fd, "wb")

    def link(self, name: str, target: str, uid: int | None = None) -> None:
        """Make a symbolic link of that owner; FileExistsError for whatever has its name."""
        os.symlink(target, _single(name), dir_fd=self.fd)
        if uid is not None:
            os.chown(_single(name), uid, uid, dir_fd=self.fd, follow_symlinks=False)

    def remove(self, name: str) -> None:
        """Remove an entry that is not a directory."""
        os.unlink(_single(name), dir_fd=self.fd)

    def remove_folder(self, name: str) -> None:
        """Remove an empty directory."""
        os.rmdir(_single(name), dir_fd=self.fd)

    def move(self, name: str, to: DirHandle, new: str) -> None:
        """Move an entry, over what has its new name."""
        os.rename(_single(name), _single(new), src_dir_fd=self.fd, dst_dir_fd=to.fd)

    def hard_link(self, name: str, to: DirHandle, new: str) -> None:
        """Give a file another name; one that is a link gets it itself. FileExistsError for whatever has that name."""
        os.link(_single(name), _single(new), src_dir_fd=self.fd, dst_dir_fd=to.fd, follow_symlinks=False)

    def pipe(self, name: str, mode: int) -> None:
        """Make a named pipe; FileExistsError for whatever has its name."""
        os.mkfifo(_single(name), mode, dir_fd=self.fd)

    def target(self, name: str) -> str:
        """Return the target of a symbolic link; raise OSError for other entries."""
        return os.readlink(_single(name), dir_fd=self.fd)

    def stamp(self, name: str, found: os.stat_result) -> None:
        """Set the owner and times of an entry that is not a directory to those of another one.

        A link gets them itself. Only root can set owners.
        """
        if os.geteuid() == 0:
            os.chown(_single(name), found.st_uid, found.st_gid, dir_fd=self.fd, follow_symlinks=False)
        times = (found.st_atime_ns, found.st_mtime_ns)
        os.utime(_single(name), ns=times, dir_fd=self.fd, follow_symlinks=False)

    def give(self, uid: int, gid: int, mode: int | None = None) -> None:
        """Change the owner of the directory itself, and its mode."""
        os.fchown(self.fd, uid, gid)
        if mode is not None:
            os.fchmod(self.fd, mode)

    def open_up(self, name: str) -> None:
        """Give its owner all rights on a directory that lies here; whatever else has the name is left as it is."""
        with contextlib.suppress(OSError):  # what follows will say so
            fd = os.open(_single(name), _LOOK | os.O_DIRECTORY, dir_fd=self.fd)
            try:
                os.chmod(f"/proc/self/fd/{fd}", 0o700)  # noqa: PTH101 - a descriptor that is open for looking only
            finally:
                os.close(fd)


LATEST_SHOWN = 253_402_300_799
"""Given: seconds since 1970 to the end of the year 9999, with which dates end; programs give their files other times too."""


def shown_time(seconds: float) -> float:
    """Return a file's time as a date can have it: some file systems keep any number that a program sets."""
    return min(max(seconds, 0.0), LATEST_SHOWN)


def _single(name: str) -> str:
    if not name or "/" in name or name in (".", ".."):
        raise ValueError(f"{name!r} is no name of an entry")
    return name


def kind_of(top: str | os.PathLike[str], path: str, seen_at: str) -> PathKind:
    """Tell what a path below a tenant's directory names, seen as the tenant sees it; only what is below is looked at.

    Links are resolved by hand: one that is relative, or absolute and below `seen_at` (where the tenant has this
    directory), is gone after as long as it stays inside. Of what is outside nothing is learned.
    """
    return peek(top, path, seen_at, 0).kind


def peek(top: str | os.PathLike[str], path: str, seen_at: str, most: int) -> Peek:
    """Return the entry at a path in the same way, with at most `most` bytes of the begin of a plain file."""
    try:
        way = [os.open(top, _LOOK | os.O_DIRECTORY)]
    except OSError:
        return Peek(PathKind.MISSING)
    try:
        return _walk(way, path, seen_at.rstrip("/") + "/", most)
    except (FileNotFoundError, NotADirectoryError):
        return Peek(PathKind.MISSING)
    except (OSError, ValueError) as error:
        long = isinstance(error, OSError) and error.errno == 36  # name too long
        return Peek(PathKind.MISSING if long else PathKind.UNKNOWN)
    finally:
        for fd in way:
            os.close(fd)


def _walk(way: list[int], path: str, seen_at: str, most: int) -> Peek:
    """Go down `way`, the open directories from the top to where we are."""
    left = _parts(path)
    links = 0
    while left:
        part = left.pop()
        if part == "..":
            if len(way) == 1:
                return Peek(PathKind.OUTSIDE)
            os.close(way.pop())
            continue
        fd = os.open(part, _LOOK, dir_fd=way[-1])
        mode = os.fstat(fd).st_mode
        if stat.S_ISDIR(mode):
            way.append(fd)
            if len(way) > DEEPEST:
                return Peek(PathKind.UNKNOWN)
            continue
        try:
            target = os.readlink("", dir_fd=fd) if stat.S_ISLNK(mode) else None
            if target is None:
                kind = _kind_of(mode, last=not left)
                return Peek(kind, mode, _head(fd, most) if kind is PathKind.FILE and most else b"")
        finally:
            os.close(fd)
        links += 1
        if links > LINKS_MAX:
            return Peek(PathKind.MISSING)
        if target.startswith("/"):
            while len(way) > 1:
                os.close(way.pop())
            # as many steps up as lead out where it does not begin with where the tenant has the directory
            target = target[len(seen_at) :] if f"{target}/".startswith(seen_at) else ".."
        left += _parts(target)
    return Peek(PathKind.DIRECTORY)


def _head(looked_at: int, most: int) -> bytes:
    """Read the first bytes of a plain file that is open for looking only; none where it may not be read."""
    try:
        # the file itself: whatever takes its name meanwhile is not opened
        fd = os.open(f"/proc/self/fd/{looked_at}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(fd, most)
    except OSError:
        return b""
    finally:
        os.close(fd)


def _kind_of(mode: int, *, last: bool) -> PathKind:
    if not last:
        return PathKind.MISSING  # nothing lies below what is no directory
    return PathKind.FILE if stat.S_ISREG(mode) else PathKind.OTHER


def _parts(path: str) -> list[str]:
    """Split a path; the first part comes last."""
    return [part for part in reversed(path.split("/")) if part not in ("", ".")]
