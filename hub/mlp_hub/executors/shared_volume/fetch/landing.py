"""Where fetched files land: beside the dataset first, and moved into place whole; each step by a descriptor and a single name."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import hashlib
import os
import stat
from collections.abc import Iterator
from io import BufferedRandom
from pathlib import Path

from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.executors.shared_volume.fetch.listing import DEEPEST, Parts, SourceObject
from mlp_hub.safe_path import DIGEST_ATTRIBUTE, DirHandle
from mlp_hub.sandbox import open_arriving, open_shelf
from mlp_language.message import msg

SOURCE_ATTRIBUTE = "user.mlp.source"
"""Extended attribute of a file: its size, when it was written, and the tag of the object that it was then."""
_DIRECTORY, _FILE = 0o755, 0o644


@contextlib.contextmanager
def opened(root: Path, user: str, name: str, owner: int | None) -> Iterator[tuple[int, int]]:
    """Open the directory of a dataset, and that of its arriving files, for one process at a time.

    Missing directories are made. Where the hub is root they belong to `owner`, who fetches. Raises
    `OSError`.
    """
    owner = owner if os.geteuid() == 0 else None
    with contextlib.ExitStack() as held:
        shelf = held.enter_context(open_shelf(root, "datasets", user, owner))
        top = held.enter_context(shelf.inside(name, make=_DIRECTORY))
        arriving = held.enter_context(open_arriving(shelf, name))
        parts = held.enter_context(arriving.inside("source", make=0o700))
        fcntl.flock(parts.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.fchmod(top.fd, _DIRECTORY)
        if owner is not None:
            top.give(owner, owner)
            if os.fstat(parts.fd).st_uid != owner:
                _hand_over(parts, owner)
        yield top.fd, parts.fd


def _hand_over(parts: DirHandle, owner: int) -> None:
    """Give its files to the fetching user: root or another user fetched them before."""
    with parts.entries() as entries:
        for name in [entry.name for entry in entries]:
            os.chown(name, owner, owner, dir_fd=parts.fd, follow_symlinks=False)
    parts.give(owner, owner)


class Landing:
    """Files of a dataset: its directory, and that of its arriving files, as `opened` yields them.

    One process at a time has it.
    """

    def __init__(self, top: int, parts: int) -> None:
        self._top, self._parts = DirHandle(top), DirHandle(parts)

    def has(self, one: SourceObject) -> bool:
        """Tell whether an object is there, and was not written to since."""
        try:
            with self._folder(one.parts[:-1]) as folder, folder.read(one.parts[-1]) as file:
                return _tag_of(file.fileno()) == one.tag and os.fstat(file.fileno()).st_size == one.size
        except OSError:
            return False

    @contextlib.contextmanager
    def part(self, one: SourceObject) -> Iterator[BufferedRandom]:
        """Open what is here of an object in this state of it."""
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(_part_name(one), flags, 0o600, dir_fd=self._parts.fd)
        with os.fdopen(fd, "r+b", buffering=0) as file:
            yield file  # type: ignore[misc]  # a raw one has all that is needed

    def keep_only(self, wanted: list[SourceObject]) -> None:
        """Remove what is here of objects that are not wanted any more in that state."""
        names = {_part_name(one) for one in wanted}
        with self._parts.entries() as entries:
            for name in [entry.name for entry in entries if entry.name not in names]:
                self._parts.remove(name)

    def place(self, one: SourceObject, fd: int, digest: bytes) -> None:
        """Move a whole file to where it belongs, over what is there."""
        os.fchmod(fd, _FILE)
        at = os.fstat(fd)
        for name, value in ((DIGEST_ATTRIBUTE, digest.hex()), (SOURCE_ATTRIBUTE, one.tag)):
            try:
                os.setxattr(fd, name, f"{at.st_size} {at.st_mtime_ns} {value}".encode())
            except OSError as error:
                if error.errno not in (errno.ENOTSUP, errno.ENOSPC):
                    raise
        try:
            with self._folder(one.parts[:-1], make=True) as folder:
                self._parts.move(_part_name(one), folder, one.parts[-1])
        except OSError as error:
            if error.errno not in (errno.ENOTDIR, errno.EISDIR, errno.ENOTEMPTY, errno.ELOOP):
                raise
            raise Refused(
                Reason.CONFLICT,
                msg("another file of the dataset is at {path}; remove it", path="/".join(one.parts)),
            ) from None

    def make(self, parts: Parts) -> None:
        """Make a directory where there is none."""
        with contextlib.suppress(NotADirectoryError), self._folder(parts, make=True):
            pass

    def forget(self, keep: set[Parts]) -> int:
        """Remove what came from the source, was not written to since, and is not there any more; return how many."""
        return self._forget(self._top, (), keep)

    def clear(self) -> None:
        """Remove all that came from the source and was not written to since, and the directories that are empty then."""
        self.keep_only([])
        self._forget(self._top, (), set(), empty=True)

    def flush(self) -> None:
        """Have all of it on the disk."""
        if ctypes.CDLL(None, use_errno=True).syncfs(self._top.fd):
            raise OSError(ctypes.get_errno(), "the disk does not take what is written")

    def _forget(self, folder: DirHandle, at: Parts, keep: set[Parts], *, empty: bool = False) -> int:
        gone = 0
        with folder.entries() as entries:
            found = [(e.name, e.is_dir(follow_symlinks=False)) for e in entries]
        for name, is_directory in found:
            parts = (*at, name)
            try:
                if is_directory:
                    if len(parts) <= DEEPEST:
                        with folder.inside(name) as below:
                            gone += self._forget(below, parts, keep, empty=empty)
                        if empty:
                            folder.remove_folder(name)
                elif parts not in keep:
                    with folder.read(name) as file:
                        came = _tag_of(file.fileno()) is not None
                    if came:
                        folder.remove(name)
                        gone += 1
            except OSError:
                continue  # a link, or gone by now
        return gone

    @contextlib.contextmanager
    def _folder(self, parts: Parts, *, make: bool = False) -> Iterator[DirHandle]:
        with contextlib.ExitStack() as held:
            here = self._top
            for part in parts:
                if make:
                    with contextlib.suppress(FileExistsError):
                        here.make(part, _DIRECTORY)
                here = held.enter_context(here.inside(part))
            yield here


def _tag_of(fd: int) -> str | None:
    """Return the tag of the object that a file is; None where it is none, or was written to since."""
    at = os.fstat(fd)
    if not stat.S_ISREG(at.st_mode):
        return None
    try:
        size, mtime, tag = os.getxattr(fd, SOURCE_ATTRIBUTE).decode().split(" ", 2)
    except (OSError, ValueError):
        return None
    return tag if (size, mtime) == (str(at.st_size), str(at.st_mtime_ns)) else None


def _part_name(one: SourceObject) -> str:
    return hashlib.sha256(f"{one.key}\0{one.size}\0{one.tag}".encode()).hexdigest()[:32]
