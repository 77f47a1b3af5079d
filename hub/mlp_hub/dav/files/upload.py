"""One file on its way in: counted against the quota, held against what was announced, moved into place whole."""

from __future__ import annotations

import base64
import contextlib
import errno
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping

from wsgidav.dav_error import (
    HTTP_BAD_REQUEST,
    HTTP_FORBIDDEN,
    HTTP_INSUFFICIENT_STORAGE,
    HTTP_SERVICE_UNAVAILABLE,
    DAVError,
)

from mlp_hub.dav.access_client import StorageRoom
from mlp_hub.dav.files.tree import MOST_NAMES, PROPERTIES, Parts, TooDeepError, Tree
from mlp_hub.executors.shared_volume.trees.sizes import ENTRY
from mlp_hub.safe_path import DIGEST_ATTRIBUTE as DIGEST
from mlp_language.message import Message, msg

STEP = 64 * 2**20
"""Tuning: bytes that are asked for at a time where the length is not known: fewer questions, for how much is held in vain."""


class Upload:
    """A file that is being written; `close` puts it into place, `abort` leaves all as it was."""

    def __init__(
        self,
        tree: Tree,
        service: StorageRoom,
        parts: Parts,
        length: int | None,
        digest: bytes | None,
        *,
        fresh: bool = False,
    ) -> None:
        """Prepare an upload; with `fresh` it takes over nothing of the file in its place."""
        self._fresh = fresh
        self._tree, self._service, self._parts = tree, service, parts
        self._length, self._digest = length, digest
        self._granted = self._written = 0
        self._hash = hashlib.sha256()
        self._open = False
        if length is not None:
            # what is empty takes an entry at least, of which room is seen to be there
            self._take(length or ENTRY)
        try:
            self._name, self._file = tree.new_file()
        except OSError as error:
            self._give(0)
            raise disk_error(error) from error
        self._open = True

    def write(self, data: bytes) -> None:
        """Write more data. Raises `DAVError` without room."""
        if self._written + len(data) > self._granted:
            try:
                self._take(STEP)
            except DAVError:  # there may be room for what is here
                self._take(len(data))
        try:
            self._file.write(data)
        except OSError as error:
            raise disk_error(error) from error
        self._hash.update(data)
        self._written += len(data)

    def close(self, make_way: Callable[[], None] = lambda: None) -> None:
        """Put the file into place, if it is what was announced; `make_way` is called once it is whole."""
        if self._length is not None and self._written != self._length:
            raise DAVError(
                HTTP_BAD_REQUEST,
                msg(
                    "{length} bytes were announced, but {written} arrived; nothing was changed, send all of them",
                    length=self._length,
                    written=self._written,
                ),
            )
        found = self._hash.digest()
        if self._digest is not None and found != self._digest:
            raise DAVError(
                HTTP_BAD_REQUEST,
                msg(
                    "the SHA-256 of the received data differs from Repr-Digest; nothing was changed, send it again"
                ),
            )
        try:
            self._file.flush()
            attributes_of(self._tree, self._parts, self._file.fileno(), found, fresh=self._fresh)
            os.fsync(self._file.fileno())
            make_way()
            old = self._tree.move_into_place(self._name, self._parts)
        except OSError as error:
            raise disk_error(error) from error
        finally:
            with contextlib.suppress(OSError):  # all is on the disk by now, or was refused
                self._file.close()
        self._open = False
        # of what is smaller than an entry only a look tells what it takes
        self._give(self._written, old or int(self._written < ENTRY))

    def abort(self) -> None:
        """Leave all as it was; nothing where it was put into place."""
        if self._open:
            self._open = False
            with contextlib.suppress(OSError):  # the disk is full, and the file goes
                self._file.close()
            self._tree.drop(self._name)
            self._give(0)

    def _take(self, size: int) -> None:
        said = self._service.request_room(self._tree.access.uid, size, self._tree.access.language)
        if said.status == 200:
            self._granted += size
            return
        raise refusal(said.status, said.body, said.message)

    def _give(self, grown: int, gone: int = 0) -> None:
        self._service.report_written(self._tree.access.uid, self._granted, grown, gone)
        self._granted = 0


@contextlib.contextmanager
def entry_room(tree: Tree, service: StorageRoom) -> Iterator[None]:
    """Have room for one more entry while it is made. Raises `DAVError`.

    The room of all entries is found by measurement.
    """
    said = service.request_room(tree.access.uid, ENTRY, tree.access.language)
    if said.status != 200:
        raise refusal(said.status, said.body, said.message)
    try:
        yield
    finally:
        service.report_written(tree.access.uid, ENTRY, 0, 1)


def attributes_of(tree: Tree, parts: Parts, fd: int, digest: bytes, *, fresh: bool = False) -> None:
    """Set the checksum of a complete file, and unless `fresh` the properties of the file in its place."""
    found = tree.stat(parts)
    try:
        if found is not None and not fresh:
            old = tree.attribute(parts, PROPERTIES)
            if old is not None:
                os.setxattr(fd, PROPERTIES, old)
        at = os.fstat(fd)
        os.setxattr(fd, DIGEST, f"{at.st_size} {at.st_mtime_ns} {digest.hex()}".encode())
    except OSError as error:
        if error.errno not in (errno.ENOTSUP, errno.ENOSPC):
            raise


class ServiceRefusedError(DAVError):  # type: ignore[misc]  # wsgidav is untyped
    """Refusal of the service, with its typed reason."""

    def __init__(self, status: int, message: Message, reason: str | None) -> None:
        super().__init__(status, message)
        self.reason = reason


def refusal(status: int, body: object, message: Message) -> DAVError:
    """Return what a refusal of the service is in WebDAV."""
    reason = body.get("reason") if isinstance(body, dict) else None
    if status != 403:
        return DAVError(HTTP_SERVICE_UNAVAILABLE, message)
    full = reason in ("WaitingForQuota", "ExceedsMaxQuota", "DiskFull")
    named = reason if isinstance(reason, str) else None
    return ServiceRefusedError(HTTP_INSUFFICIENT_STORAGE if full else HTTP_FORBIDDEN, message, named)


def disk_error(error: OSError) -> DAVError:
    """Return what an error of the disk is in WebDAV."""
    if isinstance(error, TooDeepError):
        return DAVError(
            409,
            msg(
                "directories are nested too deeply here to be removed or copied at once; begin with one further down, or use a terminal"
            ),
        )
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return ServiceRefusedError(
            HTTP_INSUFFICIENT_STORAGE, msg("the disk is full; nothing was changed"), "DiskFull"
        )
    if error.errno in (errno.ENOTDIR, errno.EISDIR, errno.ENOENT, errno.ELOOP, errno.EEXIST, errno.ENOTEMPTY):
        return DAVError(409, msg("another file or directory is in the way; nothing was changed"))
    if error.errno == errno.EOVERFLOW:  # of `Tree.names`
        return DAVError(
            HTTP_INSUFFICIENT_STORAGE,
            msg(
                "the directory has more than {n} entries, which is the limit of a WebDAV listing; use the page Datasets or mlp data, or keep its files in several directories",
                n=MOST_NAMES,
            ),
        )
    return DAVError(HTTP_SERVICE_UNAVAILABLE, msg("the disk reports: {error}", error=str(error.strerror)))


def digest_in(headers: Mapping[str, str]) -> bytes | None:
    """Return the SHA-256 that the request announces for its content (RFC 9530); None without one."""
    for name in ("HTTP_REPR_DIGEST", "HTTP_CONTENT_DIGEST"):
        for member in headers.get(name, "").split(","):
            key, _, value = member.strip().partition("=")
            if key.lower() != "sha-256":
                continue
            try:
                found = base64.b64decode(value.strip(":"), validate=True)
            except ValueError:
                found = b""
            if len(found) != hashlib.sha256().digest_size:
                raise DAVError(HTTP_BAD_REQUEST, msg("the digest is not SHA-256; write sha-256=:BASE64:"))
            return found
    return None


def digest_of(value: bytes | None, found: os.stat_result) -> str | None:
    """Return the digest in a file's attribute as a header has it; None where the file changed since."""
    if value is None:
        return None
    size, _, rest = value.decode("ascii", "replace").partition(" ")
    mtime, _, digest = rest.partition(" ")
    if (size, mtime) != (str(found.st_size), str(found.st_mtime_ns)):
        return None
    try:
        return f"sha-256=:{base64.b64encode(bytes.fromhex(digest)).decode()}:"
    except ValueError:
        return None
