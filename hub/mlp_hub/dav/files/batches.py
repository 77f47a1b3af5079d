r"""Many small files in one request: each in a request of its own costs more than its bytes.

    POST /data/USER/DATASET        Content-Type: application/vnd.mlp-hub.files
    SIZE SHA256 PATH\n             for each file a line, and then its SIZE bytes; SHA256 in hex, PATH within the dataset, percent-encoded
    200 {"files": N}               all are whole, verified and in their places
    GET DIRECTORY?contents=NAME&contents=NAME...
    200                            in the same form the files of these names; left out are large ones, what is no file, and files of a source

A refusal is that of the first file that could not be stored, and names it. Files before it are in their
places. So the sender repeats the request, or sends the files one by one. The room for all is taken from the quota at once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qs, quote, unquote_to_bytes

from wsgidav.dav_error import HTTP_BAD_REQUEST, HTTP_LOCKED, DAVError

from mlp_hub.dav.access_client import StorageRoom
from mlp_hub.dav.files.quota_reservation import QuotaReservation
from mlp_hub.dav.files.tree import BadPathError, Parts, Tree, parts_of
from mlp_hub.dav.files.upload import Upload, refusal
from mlp_language.message import Message, msg

KIND = "application/vnd.mlp-hub.files"
"""Contract: content type of such a request."""
BATCH_MAX = 16 * 2**20
"""Safety: bytes of a request with many files: a turn of its user is held until all are on the disk."""
MOST_FILES = 500
"""Safety: files of one request."""
ANSWER_MAX = 2 * 2**20
"""Safety: bytes of the files of one answer, which are in memory."""
SMALL = 2**20
"""Contract: bytes of a file that comes together with others at most."""
QUERY_MAX = 32_768
"""Safety: characters of a query with names of files."""
LINE_MAX = 16_384
"""Safety: bytes of the line before a file: bounds memory."""
BLOCK = 1 << 16
"""Tuning: bytes that are read at a time."""
_LINE = re.compile(rb"(\d{1,9}) ([0-9a-f]{64}) ([!-~]+)\n")


def is_asked(environ: dict[str, Any]) -> bool:
    """Whether a request brings many files."""
    kind = str(environ.get("CONTENT_TYPE", "")).partition(";")[0].strip().lower()
    return environ["REQUEST_METHOD"] == "POST" and kind == KIND


def are_wanted(environ: dict[str, Any]) -> bool:
    """Whether a request asks for the contents of files of a directory by their names."""
    return environ["REQUEST_METHOD"] == "GET" and str(environ.get("QUERY_STRING", "")).startswith("contents=")


def contents(environ: dict[str, Any], tree: Tree, parts: Parts) -> bytes:
    """Return the files of a directory that are asked for, as many of them as have room. Raises ValueError for a query that cannot be read."""
    query = str(environ.get("QUERY_STRING", ""))
    if len(query) > QUERY_MAX:
        raise ValueError("the query is too long")
    names = parse_qs(query, strict_parsing=True, max_num_fields=MOST_FILES).get("contents")
    if not names:
        raise ValueError("the query names no file")
    if tree.access.through:  # each name would be some requests, which a source may answer slowly
        return b""
    found: list[bytes] = []
    left = ANSWER_MAX
    for name in names:
        try:
            (only,) = parts_of(name)
            with tree.read((*parts, only)) as file:
                if os.fstat(file.fileno()).st_size > min(SMALL, left):
                    continue
                data = file.read(min(SMALL, left) + 1)
        except (BadPathError, ValueError, OSError):
            continue
        if len(data) <= min(SMALL, left):
            left -= len(data)
            found.append(b"%d %s %s\n" % (len(data), sha256(data).hexdigest().encode(), quote(only).encode()))
            found.append(data)
    return b"".join(found)


class Batches:
    """Takes many files in. `is_locked` tells whether somebody has a lock on a path."""

    def __init__(
        self, service: StorageRoom, is_locked: Callable[[Tree, Parts, dict[str, Any]], bool]
    ) -> None:
        self._service, self._is_locked = service, is_locked

    def receive(self, environ: dict[str, Any], tree: Tree, length: int | None) -> int:
        """Store all files of a request; return their number. Raises `DAVError`."""
        if not length:
            raise _bad(msg("many files in one request need a Content-Length, and at least one file"))
        access = tree.access
        room = QuotaReservation(self._service, access.uid, access.language)
        said = room.reserve(length)
        if said.status != 200:
            raise refusal(said.status, said.body, said.message)
        body, count = _BatchBody(environ["wsgi.input"], length), 0
        try:
            while (line := body.line()) is not None:
                count += 1
                if count > MOST_FILES:
                    raise _bad(msg("more than {n} files in one request", n=MOST_FILES))
                self._store(environ, tree, room, body, line)
        finally:
            self._service.report_written(access.uid, room.granted, room.grown, room.gone)
        return count

    def _store(
        self, environ: dict[str, Any], tree: Tree, room: QuotaReservation, body: _BatchBody, line: bytes
    ) -> None:
        found = _LINE.fullmatch(line)
        if found is None:
            raise _bad(msg("the line before a file is not SIZE SHA256 PATH"))
        parts, size = _path(found[3]), int(found[1])
        if self._is_locked(tree, parts, environ):
            raise DAVError(
                HTTP_LOCKED,
                msg("somebody has a lock on {path}; try again when it has ended", path="/".join(parts)),
            )
        if size > body.left:
            raise _cut()
        upload = Upload(tree, room, parts, size, bytes.fromhex(found[2].decode()))
        try:
            while size:
                data = body.read(size)
                upload.write(data)
                size -= len(data)
            upload.close()
        finally:
            upload.abort()


class _BatchBody:
    """Body of a request with many files: read in blocks, a line or some bytes at a time."""

    def __init__(self, inner: Any, length: int) -> None:
        self._inner, self._left, self._here = inner, length, b""

    @property
    def left(self) -> int:
        """Bytes that are still to be read."""
        return self._left + len(self._here)

    def line(self) -> bytes | None:
        """Return the next line; None at the end."""
        while (end := self._here.find(b"\n")) < 0:
            if len(self._here) > LINE_MAX:
                raise _bad(msg("the line before a file has more than {n} bytes", n=LINE_MAX))
            if not self._left:
                if self._here:
                    raise _cut()
                return None
            self._here += self._more()
        line, self._here = self._here[: end + 1], self._here[end + 1 :]
        return line

    def read(self, size: int) -> bytes:
        """Return `size` bytes of what follows, or some of them, and one at least."""
        if not self._here:
            self._here = self._more()
        data, self._here = self._here[:size], self._here[size:]
        return data

    def _more(self) -> bytes:
        data: bytes = self._inner.read(min(self._left, BLOCK)) if self._left else b""
        if not data:
            raise _cut()
        self._left -= len(data)
        return data


def _path(quoted: bytes) -> Parts:
    try:
        path = unquote_to_bytes(quoted).decode()
        parts = parts_of(path)
    except UnicodeDecodeError:
        raise _bad(msg("the path is not UTF-8")) from None
    except BadPathError as bad:
        raise _bad(bad.message) from None
    if "%2f" in path.lower():  # no address could name that file
        raise _bad(msg("the path has an encoded /, which a name cannot have"))
    if not parts:
        raise _bad(msg("name a file of the dataset"))
    return parts


def _bad(message: Message) -> DAVError:
    return DAVError(HTTP_BAD_REQUEST, message)


def _cut() -> DAVError:
    return _bad(msg("the request was cut; the files before that are stored, send the others again"))
