"""Files of a run, of a home or of a stored item, as people see them, below their directory only.

Directories are listed in pages, and plain files can be read. Programs write there at any time, also
during a look. So each step is a single name below an open directory. Links are reported and never
followed. A refusal names the entry.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import heapq
import os
import stat
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.executors.workspace import WORKSPACE, DirectoryEntry, DirectoryPage, EntryKind
from mlp_hub.safe_path import DEEPEST, DirHandle, shown_time
from mlp_language.message import Message, msg

MOST_ENTRIES = 200_000
"""Limit of data: entries of a directory of a job that can be listed."""
LONGEST = 255
"""Given: bytes of a name that a file system takes."""
SHOWN = 60
"""Safety: characters of a path that an answer repeats."""


class SharedVolumeFile:
    """An open file, read at offsets in `threads`; one of at most `head` bytes is read at once, which blocks."""

    def __init__(self, fd: int, head: int = 0) -> None:
        self._fd = fd
        self.threads: Callable[..., Awaitable[bytes]] = asyncio.to_thread
        found = os.fstat(fd)
        self.size = found.st_size
        self.modified = shown_time(found.st_mtime)
        self.tag = f"{found.st_ino:x}-{found.st_size:x}-{found.st_mtime_ns:x}"
        self._whole = os.pread(fd, head, 0) if 0 < self.size <= head else None

    async def read(self, offset: int, size: int) -> bytes:
        """Return `size` bytes from `offset` on; fewer if the file has no more by now."""
        if self._whole is not None and offset == 0:
            return self._whole[:size]
        return await self.threads(os.pread, self._fd, size, offset)

    def close(self) -> None:
        """Close it."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        # whose reader went away before the first byte
        with contextlib.suppress(OSError):
            self.close()


def parts_of(path: str) -> list[str]:
    """Split a path below a directory into its names; refuses what leads, or might lead, anywhere else."""
    below = path.removeprefix(WORKSPACE).lstrip("/") if f"{path}/".startswith(f"{WORKSPACE}/") else path
    below = below.removesuffix("/").removeprefix("./")
    if not below or below == ".":
        return []
    parts = below.split("/")
    if len(parts) > DEEPEST:
        raise _invalid(path, msg("at most {n} names behind each other", n=DEEPEST))
    for part in parts:
        if part in ("", ".", "..") or "\0" in part:
            raise _invalid(
                path,
                msg("names below the directory, such as ckpt/last.pt, without .. and not beginning with /"),
            )
        try:
            size = len(os.fsencode(part))
        except UnicodeEncodeError:
            raise _invalid(path, msg("a text")) from None
        if size > LONGEST:
            raise _invalid(path, msg("names of at most {n} bytes", n=LONGEST))
    return parts


def _invalid(path: str, right: Message) -> Refused:
    return Refused(
        Reason.INVALID, msg("the path {path} is wrong; it must be {right}", path=clip(path), right=right)
    )


def clip(path: str) -> str:
    """Show a path in a line of bounded length."""
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in path[: SHOWN + 1])
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


@contextlib.contextmanager
def opened(top: Path, parts: list[str], path: str) -> Iterator[DirHandle]:
    """Open the directory below these names, one after another; refuse links and other entries."""
    try:
        folder = DirHandle.at(top)
    except OSError as error:
        raise refusal(error, path) from None
    try:
        for name in parts:
            try:
                below = folder.inside(name)
            except OSError as error:
                raise _why_not(folder, name, error, path) from None
            folder.close()
            folder = below
        yield folder
    finally:
        folder.close()


def list_directory(top: Path, path: str, after: str, limit: int) -> DirectoryPage:
    """Return the entries that come after a name, by name; blocks."""
    with opened(top, parts_of(path), path) as folder, folder.entries() as found:
        names = heapq.nsmallest(limit + 1, _names(found, after, path))
        entries = [entry for name in names[:limit] if (entry := _look(folder, name)) is not None]
    looked = names[:limit]
    return DirectoryPage(entries, len(names) > limit, looked[-1] if looked else None)


def _names(found: Iterator[os.DirEntry[str]], after: str, path: str) -> Iterator[str]:
    for n, entry in enumerate(found):
        if n >= MOST_ENTRIES:
            raise Refused(
                Reason.INVALID,
                msg(
                    "{path} has more than {n} entries; ask for its files by their paths", path=clip(path), n=n
                ),
            )
        if entry.name > after:
            yield entry.name


def _look(folder: DirHandle, name: str) -> DirectoryEntry | None:
    try:
        found = folder.stat(name)
    except OSError:
        return None  # it is gone
    shown = name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    kind = kind_of(found.st_mode) if shown == name else EntryKind.OTHER
    size = found.st_size if kind is EntryKind.FILE else 0
    return DirectoryEntry(shown, kind, size, shown_time(found.st_mtime))


def kind_of(mode: int) -> EntryKind:
    """Return what an entry of this mode is."""
    if stat.S_ISREG(mode):
        return EntryKind.FILE
    if stat.S_ISDIR(mode):
        return EntryKind.DIRECTORY
    return EntryKind.LINK if stat.S_ISLNK(mode) else EntryKind.OTHER


def open_file(top: Path, path: str, head: int = 0) -> SharedVolumeFile:
    """Open a plain file; blocks, for a moment."""
    *way, name = parts_of(path) or [""]
    if not name:
        raise _invalid(path, msg("the path of a file, such as ckpt/last.pt"))
    with opened(top, way, path) as folder:
        try:
            with folder.read(name) as file:
                return SharedVolumeFile(os.dup(file.fileno()), head)
        except OSError as error:
            raise _why_not(folder, name, error, path) from None


def _why_not(folder: DirHandle, name: str, error: OSError, path: str) -> Refused:
    """Return the reason why a name could not be opened, from the entry that it is."""
    try:
        kind = kind_of(folder.stat(name).st_mode)
    except OSError as gone:
        return refusal(gone, path)
    shown = clip(path)
    if kind is EntryKind.LINK:
        return Refused(
            Reason.INVALID,
            msg(
                "{path} leads over a link, and links are not followed; ask for the target of the link",
                path=shown,
            ),
        )
    if isinstance(error, PermissionError):
        return refusal(error, path)
    if kind is EntryKind.DIRECTORY:
        return Refused(Reason.INVALID, msg("{path} is a directory; a file is needed", path=shown))
    if kind is EntryKind.FILE:
        return Refused(Reason.INVALID, msg("{path} is not a directory", path=shown))
    return Refused(Reason.INVALID, msg("{path} is not a plain file", path=shown))


def refusal(error: OSError, path: str) -> Refused:
    """Say why something below a directory cannot be had."""
    if isinstance(error, PermissionError):
        return Refused(
            Reason.FORBIDDEN,
            msg("the program that wrote {path} lets nobody read it", path=clip(path)),
        )
    if isinstance(error, FileNotFoundError | NotADirectoryError) or error.errno in (
        errno.ENAMETOOLONG,
        errno.ELOOP,
    ):
        return Refused(Reason.NOT_FOUND, msg("file {path} does not exist here", path=clip(path) or "/"))
    return Refused(Reason.NOT_FOUND, msg("{path} cannot be read", path=clip(path)))
