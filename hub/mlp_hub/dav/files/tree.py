"""Files of one dataset, for one request: each step by a descriptor and a single name, no link is ever followed.

Programs of the dataset's owner may change all that lies here at any moment. New files are written elsewhere and moved into
place whole and durable, so that who reads sees the old one or the new one, whatever is killed when.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import heapq
import os
import secrets
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from mlp_hub.dav.access_client import Access
from mlp_hub.safe_path import DirHandle
from mlp_hub.sandbox import open_arriving, open_shelf
from mlp_language.message import Message, msg

Parts = tuple[str, ...]
DEEPEST = 64
"""Limit of data: nested directories of a file in a dataset."""
DEEPEST_REMOVED = 200
"""Safety: directories in each other that are removed at once: each is held open meanwhile."""
AT_ONCE = 1000
"""Tuning: entries of a directory that are read before the files among them are removed; the names of its directories are all in memory."""
NAME_BYTES = 255
"""Given: bytes of a name on a file system."""
MOST_NAMES = 100_000
"""Limit of data: entries of a directory that one listing over WebDAV returns."""
PROPERTIES = "user.mlp.properties"
_DIRECTORY, _FILE = 0o755, 0o644


class BadPathError(ValueError):
    """A path that can name nothing here; says why."""

    def __init__(self, message: Message) -> None:
        super().__init__(str(message))
        self.message = message


def _key(entry: os.DirEntry[str]) -> str:
    """Return the sort key of an entry in pages; empty for entries whose name cannot be an address."""
    try:
        entry.name.encode()
    except UnicodeEncodeError:
        return ""
    if entry.is_dir(follow_symlinks=False):
        return f"0{entry.name}"
    return f"1{entry.name}" if entry.is_file(follow_symlinks=False) else ""


class TooDeepError(OSError):
    """Directories are nested more deeply than one request handles. It may have done a part before it found that."""


def parts_of(path: str) -> Parts:
    """Split a path that was decoded once. Raises `BadPathError` for all that would not be the name it seems to be."""
    parts = tuple(part for part in path.split("/") if part)
    if len(parts) > DEEPEST:
        raise BadPathError(
            msg("the path is {n} names deep; at most {most} are possible", n=len(parts), most=DEEPEST)
        )
    for part in parts:
        if part in (".", "..") or "\0" in part:
            raise BadPathError(
                msg("the path has a part that is not a name: ., .. or one with a NUL character")
            )
        if len(os.fsencode(part)) > NAME_BYTES:
            raise BadPathError(msg("a name of the path has more than {n} bytes", n=NAME_BYTES))
    return parts


class Uploads:
    """Directory of files that are not whole yet.

    One process holds it, and the files that another one left are removed.
    """

    def __init__(self, root: Path) -> None:
        with DirHandle.at(root) as top:
            self.folder = top.inside(".uploads", make=0o700)
        fcntl.flock(self.folder.fd, fcntl.LOCK_EX)
        with self.folder.entries() as entries:
            for entry in list(entries):
                if entry.is_dir(follow_symlinks=False):
                    self.drop_folder(entry.name)
                else:
                    self.folder.remove(entry.name)

    def drop_folder(self, name: str) -> None:
        """Remove a directory with all in it; it is nobody else's."""
        with self.folder.inside(name) as directory:
            _clear(directory, lambda _: None, DEEPEST_REMOVED)
        self.folder.remove_folder(name)

    def new(self) -> tuple[str, BinaryIO]:
        """Make a file that nobody else knows."""
        name = secrets.token_hex(16)
        return name, self.folder.create(name, 0o600)

    def close(self) -> None:
        """Close it, and let another one have it."""
        self.folder.close()


class UploadPlaces:
    """Directories of files that are not whole yet, one in each tenant's tree: from there they can be moved into place.

    That of all is held for good. Those of tenants are held while somebody writes there, so that their trees can be closed, and moved.
    """

    def __init__(self, shared: Path) -> None:
        self._shared, self._own = shared, Uploads(shared)
        self._open: dict[Path, tuple[Uploads, int]] = {}
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def uploads_of(self, root: Path) -> Iterator[Uploads]:
        """Yield that of a tree."""
        if root == self._shared:
            yield self._own
            return
        with self._lock:
            known, users = self._open.get(root) or (Uploads(root), 0)
            self._open[root] = known, users + 1
        try:
            yield known
        finally:
            with self._lock:
                known, users = self._open.pop(root)
                if users > 1:
                    self._open[root] = known, users - 1
                else:
                    known.close()


class Tree:
    """The files of a dataset. `root` has the storage tree; close it when the request is over.

    `still_there` is asked where the directory had to be made, and raises where the dataset was deleted meanwhile.
    """

    def __init__(
        self, root: Path, uploads: Uploads, access: Access, still_there: Callable[[], None] = lambda: None
    ) -> None:
        self.access = access
        self._still_there = still_there
        self._uploads = uploads
        self._root = root
        self._top: DirHandle | None = None

    def close(self) -> None:
        """Close it."""
        if self._top is not None:
            self._top.close()
            self._top = None

    @property
    def top(self) -> DirHandle:
        """The dataset's directory, made where it is missing."""
        if self._top is None:
            with open_shelf(self._root, "datasets", self.access.user, self.access.owner) as shelf:
                self._top, made = self._opened(shelf)
                self._own(self._top.fd)
                os.fchmod(self._top.fd, _DIRECTORY)
                if made:
                    self._check(shelf)
        return self._top

    def _opened(self, shelf: DirHandle) -> tuple[DirHandle, bool]:
        try:
            return shelf.inside(self.access.name), False
        except FileNotFoundError:
            return shelf.inside(self.access.name, make=_DIRECTORY), True

    def _check(self, shelf: DirHandle) -> None:
        """Check that the dataset still exists; otherwise remove the directory and raise the error.

        Nobody would be charged for the contents of such a directory.
        """
        try:
            self._still_there()
        except BaseException:
            self.close()
            with contextlib.suppress(OSError):
                shelf.remove_folder(self.access.name)
            raise

    @contextlib.contextmanager
    def folder(self, parts: Sequence[str]) -> Iterator[DirHandle]:
        """Open a directory. Raises OSError where something else has its name."""
        if not parts:
            yield self.top
            return
        here = self.top
        try:
            for part in parts:
                below = here.inside(part)
                if here is not self.top:
                    here.close()
                here = below
            yield here
        finally:
            if here is not self.top:
                here.close()

    def stat(self, parts: Parts) -> os.stat_result | None:
        """Return the status of a plain file or directory; None for a missing entry and all other kinds."""
        try:
            if not parts:
                return os.fstat(self.top.fd)
            with self.folder(parts[:-1]) as folder:
                found = folder.stat(parts[-1])
        except OSError:
            return None
        return found if stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode) else None

    def names(self, parts: Parts) -> list[str]:
        """List the plain files and directories of a directory."""
        with self.folder(parts) as folder, folder.entries() as entries:
            found = []
            for entry in entries:
                if entry.is_dir(follow_symlinks=False) or entry.is_file(follow_symlinks=False):
                    found.append(entry.name)
                if len(found) > MOST_NAMES:
                    raise OSError(errno.EOVERFLOW, f"there are more than {MOST_NAMES} entries")
            return sorted(found)

    def page(self, parts: Parts, after: str, limit: int) -> tuple[list[str], str]:
        """List some of a directory, directories first, by name, and what to ask for the next ones with; nothing where those are all."""
        with self.folder(parts) as folder, folder.entries() as entries:
            # the directory is read whole for each page, and never held
            rest = (key for entry in entries if (key := _key(entry)) > after)
            found = heapq.nsmallest(limit + 1, rest)
        more = len(found) > limit
        return [key[1:] for key in found[:limit]], found[limit - 1] if more else ""

    def looked_at(
        self, parts: Parts, names: Sequence[str], attribute: str
    ) -> Iterator[tuple[str, os.stat_result, bytes | None]]:
        """Yield what these of a directory are, with an extended attribute of files; the directory is opened once."""
        with self.folder(parts) as folder:
            for name in names:
                value = None
                try:
                    found = folder.stat(name)
                except OSError:
                    continue  # it was removed meanwhile
                if stat.S_ISREG(found.st_mode):
                    with contextlib.suppress(OSError), folder.read(name) as file:
                        value = os.getxattr(file.fileno(), attribute)
                elif not stat.S_ISDIR(found.st_mode):
                    continue
                yield name, found, value

    def read(self, parts: Parts) -> BinaryIO:
        """Open a plain file to read."""
        with self.folder(parts[:-1]) as folder:
            return folder.read(parts[-1])

    def make_folder(self, parts: Parts) -> None:
        """Make a directory. Raises FileExistsError."""
        with self.folder(parts[:-1]) as folder:
            folder.make(parts[-1], _DIRECTORY)
            with folder.inside(parts[-1]) as made:
                self._own(made.fd)
            os.fsync(folder.fd)

    def new_file(self) -> tuple[str, BinaryIO]:
        """Begin a file that `put` moves into place."""
        name, file = self._uploads.new()
        self.finish(file.fileno())
        return name, file

    def finish(self, fd: int) -> None:
        """Make a file one of the dataset's owner's."""
        os.fchmod(fd, _FILE)
        self._own(fd)

    @contextlib.contextmanager
    def arriving(self) -> Iterator[DirHandle]:
        """Open the directory of files that come in parts."""
        with (
            open_shelf(self._root, "datasets", self.access.user, self.access.owner) as shelf,
            open_arriving(shelf, self.access.name) as all_,
            all_.inside("parts", make=0o700) as found,
        ):
            yield found

    def move_into_place(self, temporary: str, parts: Parts, come_from: DirHandle | None = None) -> int:
        """Move a file that is whole and durable into place; return the bytes that lay there before."""
        with self.folder(parts[:-1]) as folder:
            old = self._size(folder, parts[-1])
            (come_from or self._uploads.folder).move(temporary, folder, parts[-1])
            os.fsync(folder.fd)
            return old

    def drop(self, temporary: str) -> None:
        """Remove a file that will not be put anywhere."""
        with contextlib.suppress(OSError):
            self._uploads.folder.remove(temporary)

    def remove(self, parts: Parts, gone: Callable[[int], None]) -> None:
        """Remove a file, or a directory with all in it; `gone` is told the bytes of each file that is."""
        with self.folder(parts[:-1]) as folder:
            found = folder.stat(parts[-1])
            if stat.S_ISDIR(found.st_mode):
                with folder.inside(parts[-1]) as directory:
                    _clear(directory, gone, DEEPEST_REMOVED)
                folder.remove_folder(parts[-1])
            else:
                folder.remove(parts[-1])
                gone(found.st_size if stat.S_ISREG(found.st_mode) else 0)
            os.fsync(folder.fd)

    @contextlib.contextmanager
    def aside(self) -> Iterator[Aside]:
        """Yield a new directory next to all datasets, which `Aside.put_all` moves into place.

        Its remaining contents are removed.
        """
        name = secrets.token_hex(16)
        with self._uploads.folder.inside(name, make=_DIRECTORY) as top:
            self._own(top.fd)
            os.fchmod(top.fd, _DIRECTORY)
            found = Aside(self, self._root, self._uploads, (name, top))
            try:
                yield found
            finally:
                if not found.placed:
                    self._uploads.drop_folder(name)

    def move(self, parts: Parts, to: Parts) -> int:
        """Move a file or a directory to a name that nothing has, or a file over another; return the bytes that are gone so."""
        with self.folder(parts[:-1]) as folder, self.folder(to[:-1]) as other:
            gone = self._size(other, to[-1])
            folder.move(parts[-1], other, to[-1])
            os.fsync(other.fd)
            os.fsync(folder.fd)
        return gone

    def attribute(self, parts: Parts, name: str) -> bytes | None:
        """Return an extended attribute of a file or directory; None where it has none."""
        found: bytes | None = None

        def look(fd: int) -> None:
            nonlocal found
            with contextlib.suppress(OSError):
                found = os.getxattr(fd, name)

        self._with(parts, look)
        return found

    def set_attribute(self, parts: Parts, name: str, value: bytes) -> None:
        """Store an extended attribute; an empty one is removed. Raises OSError where the file system has no room for it."""

        def change(fd: int) -> None:
            if value:
                os.setxattr(fd, name, value)
            else:
                with contextlib.suppress(OSError):
                    os.removexattr(fd, name)

        self._with(parts, change)

    def _with(self, parts: Parts, act: Callable[[int], None]) -> None:
        if not parts:
            act(self.top.fd)
            return
        with self.folder(parts[:-1]) as folder:
            if stat.S_ISDIR(folder.stat(parts[-1]).st_mode):
                with folder.inside(parts[-1]) as directory:
                    act(directory.fd)
            else:
                with folder.read(parts[-1]) as file:
                    act(file.fileno())

    def _size(self, folder: DirHandle, name: str) -> int:
        try:
            found = folder.stat(name)
        except FileNotFoundError:
            return 0
        return found.st_size if stat.S_ISREG(found.st_mode) else 0

    def _own(self, fd: int) -> None:
        if self.access.owner is not None:
            os.fchown(fd, self.access.owner, self.access.owner)


class Aside(Tree):
    """Directory that is not a part of the dataset yet."""

    def __init__(self, of: Tree, root: Path, uploads: Uploads, at: tuple[str, DirHandle]) -> None:
        super().__init__(root, uploads, of.access)
        self._of = of
        self._name, self._top = at
        self.placed = False

    def put_all(self, parts: Parts) -> None:
        """Move it to a name that nothing has."""
        with self._of.folder(parts[:-1]) as folder:
            self._uploads.folder.move(self._name, folder, parts[-1])
            self.placed = True
            os.fsync(folder.fd)


def _clear(folder: DirHandle, gone: Callable[[int], None], deep: int) -> None:
    if not deep:
        raise TooDeepError(f"more than {DEEPEST_REMOVED} directories lie in each other")
    below: list[str] = []
    with folder.entries() as entries:
        while some := list(islice(entries, AT_ONCE)):
            for entry in some:
                if entry.is_dir(follow_symlinks=False):
                    below.append(entry.name)
                    continue
                at = entry.stat(follow_symlinks=False)
                folder.remove(entry.name)
                gone(at.st_size if stat.S_ISREG(at.st_mode) else 0)
    for name in below:
        with folder.inside(name) as inner:
            _clear(inner, gone, deep - 1)
        folder.remove_folder(name)
