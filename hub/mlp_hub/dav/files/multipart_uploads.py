"""Uploads of large files in parts, which continue where they were cut.

A part is a PUT with `Content-Range` and the digest of the whole file.

    PUT /data/USER/DATASET/PATH     Content-Range: bytes 0-67108863/10737418240     Repr-Digest: sha-256=:...:
    202, Upload-Offset: 67108864                the received bytes
    PUT                             Content-Range: bytes */10737418240, no body     asks for the received bytes
    409, Upload-Offset: 4096                    a part begins elsewhere: continue there
    201 or 204                                  it is whole, verified and in its place

The received part of a file is kept outside of the dataset (`sandbox.open_arriving`), by its path,
length and digest. WebDAV clients do not see it. It is charged like all other files, it outlives
this process, and it is removed when nobody wrote to it for a day. A reader sees the old file or the
new one.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from wsgidav.dav_error import HTTP_BAD_REQUEST, HTTP_CONFLICT, HTTP_LOCKED, HTTP_SERVICE_UNAVAILABLE, DAVError

from mlp_hub.dav.access_client import StorageRoom
from mlp_hub.dav.files.tree import Parts, Tree
from mlp_hub.dav.files.upload import attributes_of, digest_in, disk_error, refusal
from mlp_hub.executors.shared_volume.trees.sizes import ENTRY
from mlp_hub.safe_path import DirHandle
from mlp_language.message import msg

_RANGE = re.compile(r"bytes (?:(\d{1,18})-(\d{1,18})|\*)/(\d{1,18})")
KEPT_S = 86_400.0
"""Limit of data: seconds for which an interrupted upload of a file can continue."""
BLOCK = 1 << 18
"""Tuning: bytes that are read and written at a time."""
MOST_BEGUN = 500
"""Limit of data: incomplete files of one dataset."""
MOST_HASHES = 64
"""Safety: files with a checksum so far in memory; the checksums of all others are computed at the end."""


@dataclass(frozen=True, slots=True)
class FilePart:
    """Part of a file in a request: bytes from `begin` to before `end` of `total`; empty for a mere question."""

    begin: int
    end: int
    total: int
    digest: bytes

    @classmethod
    def from_request(cls, environ: dict[str, Any], length: int | None) -> FilePart | None:
        """Read a request; None if its body is a whole file. Raises `DAVError`."""
        said = environ.get("HTTP_CONTENT_RANGE")
        if said is None:
            return None
        found = _RANGE.fullmatch(said.strip())
        digest = digest_in(environ)
        if found is None or digest is None:
            raise DAVError(
                HTTP_BAD_REQUEST,
                msg(
                    "a part needs Content-Range: bytes FIRST-LAST/TOTAL, and the Repr-Digest of the whole file"
                ),
            )
        total = int(found[3])
        begin, end = (0, 0) if found[1] is None else (int(found[1]), int(found[2]) + 1)
        if not 0 <= begin <= end <= total or length != end - begin or not total:
            raise DAVError(
                HTTP_BAD_REQUEST,
                msg(
                    "Content-Range has {n} bytes of {total}, but Content-Length has another number",
                    n=end - begin,
                    total=total,
                ),
            )
        return cls(begin, end, total, digest)

    def name(self, path: Parts) -> str:
        """Return under which name the file is kept until it is whole."""
        whole = "\0".join((*path, str(self.total), self.digest.hex()))
        return hashlib.sha256(whole.encode()).hexdigest()[:40]


class _Hashes:
    """Checksums so far of received data, by file and length."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[int, int], tuple[int, Any]] = OrderedDict()
        self._lock = threading.Lock()

    def hash_part(self, file: BinaryIO, size: int) -> Any:
        at = os.fstat(file.fileno())
        with self._lock:
            found = self._kept.pop((at.st_dev, at.st_ino), None)
        if found is not None and found[0] == size:
            return found[1]
        made = hashlib.sha256()
        file.seek(0)
        while data := file.read(BLOCK):
            made.update(data)
        return made

    def keep(self, file: BinaryIO, size: int, made: Any) -> None:
        at = os.fstat(file.fileno())
        with self._lock:
            self._kept[at.st_dev, at.st_ino] = (size, made)
            while len(self._kept) > MOST_HASHES:
                self._kept.popitem(last=False)


class PartUploads:
    """Takes parts in. `is_locked` tells whether somebody has a lock on a path."""

    def __init__(
        self, service: StorageRoom, is_locked: Callable[[Tree, Parts, dict[str, Any]], bool]
    ) -> None:
        self._service, self._is_locked = service, is_locked
        self._hashes = _Hashes()

    def receive(self, environ: dict[str, Any], tree: Tree, path: Parts, part: FilePart) -> tuple[int, int]:
        """Take a part in; return the status, and how much is here. Raises `DAVError`."""
        if not path:
            raise DAVError(HTTP_CONFLICT, msg("name a file of the dataset"))
        if self._is_locked(tree, path, environ):
            raise DAVError(HTTP_LOCKED, msg("somebody has a lock on it; try again when the lock has ended"))
        try:
            _ = tree.top  # now: who deletes the dataset meanwhile takes it away under what comes
            with tree.arriving() as folder:
                begun = self._tidy(folder)
                if not _is_here(folder, part.name(path)):
                    if not part.end:
                        return (
                            202,
                            0,
                        )  # who only asks leaves no file behind, which nobody would be charged with
                    _check_more(begun)
                with _alone(folder, part.name(path)) as file:
                    return self._into(environ, tree, path, part, folder, file)
        except OSError as error:
            raise disk_error(error) from error

    def _into(  # noqa: PLR0917 - a step of `receive`
        self,
        environ: dict[str, Any],
        tree: Tree,
        path: Parts,
        part: FilePart,
        folder: DirHandle,
        file: BinaryIO,
    ) -> tuple[int, int]:
        here = os.fstat(file.fileno()).st_size
        if part.end:
            if part.begin != here:
                return 409, here
            here = self._write(environ, tree, part, file)
        if here < part.total:
            return 202, here
        return self._place(tree, path, part, folder, file), here

    def _write(self, environ: dict[str, Any], tree: Tree, part: FilePart, file: BinaryIO) -> int:
        """Write on, and keep what came where it is cut."""
        uid, size = tree.access.uid, part.end - part.begin
        fresh = 0 if part.begin else ENTRY  # until all is looked at, which is what `gone` asks for
        size += fresh
        said = self._service.request_room(uid, size, tree.access.language)
        if said.status != 200:
            raise refusal(said.status, said.body, said.message)
        here = part.begin
        try:
            made = self._hashes.hash_part(file, here)
            file.seek(here)
            body = environ["wsgi.input"]
            while here < part.end and (data := _read(body, min(BLOCK, part.end - here))):
                file.write(data)
                made.update(data)
                here += len(data)
            self._hashes.keep(file, here, made)
        finally:
            self._service.report_written(uid, size, here - part.begin + fresh, int(bool(fresh)))
        if here < part.end:
            raise DAVError(
                HTTP_BAD_REQUEST,
                msg("the part was cut; ask for the number of bytes here, and continue from there"),
            )
        return here

    def _place(self, tree: Tree, path: Parts, part: FilePart, folder: DirHandle, file: BinaryIO) -> int:
        name = part.name(path)
        if self._hashes.hash_part(file, part.total).digest() != part.digest:
            folder.remove(name)
            self._service.report_written(tree.access.uid, 0, 0, part.total)
            raise DAVError(
                HTTP_BAD_REQUEST,
                msg(
                    "the SHA-256 of the received data differs from Repr-Digest; nothing was changed, send it again"
                ),
            )
        tree.finish(file.fileno())
        attributes_of(tree, path, file.fileno(), part.digest)
        os.fsync(file.fileno())
        was_there = tree.stat(path) is not None
        old = tree.move_into_place(name, path, folder)
        if old:
            self._service.report_written(tree.access.uid, 0, 0, old)
        return 204 if was_there else 201

    def _tidy(self, folder: DirHandle) -> int:
        """Remove what nobody wrote to for long, which is charged until the dataset is looked at the next time; return how many stay."""
        stay = 0
        before = time.time() - KEPT_S
        with folder.entries() as entries:
            for entry in list(entries):
                with contextlib.suppress(OSError):
                    if (
                        entry.is_file(follow_symlinks=False)
                        and entry.stat(follow_symlinks=False).st_mtime < before
                    ):
                        folder.remove(entry.name)
                    else:
                        stay += 1
        return stay


def _check_more(begun: int) -> None:
    if begun >= MOST_BEGUN:
        raise DAVError(
            HTTP_SERVICE_UNAVAILABLE,
            msg(
                "{n} files of this dataset are incomplete, which is the limit; send the rest of them first. Incomplete files are removed after a day",
                n=begun,
            ),
        )


def _is_here(folder: DirHandle, name: str) -> bool:
    try:
        folder.stat(name)
    except FileNotFoundError:
        return False
    return True


@contextlib.contextmanager
def _alone(folder: DirHandle, name: str) -> Iterator[BinaryIO]:
    """Open a file that one request at a time writes to."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(name, flags, 0o600, dir_fd=folder.fd), "r+b", buffering=0) as file:
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DAVError(
                HTTP_SERVICE_UNAVAILABLE, msg("another request sends the same file; try again in a moment")
            ) from None
        yield file


def _read(body: Any, size: int) -> bytes:
    """Read on from a body; nothing where it is cut."""
    try:
        found: bytes = body.read(size)
    except Exception as error:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        return b""
    return found
