"""Files as answers: directories in pages, and contents in whole or from where a client had come to."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from email.utils import formatdate
from typing import Annotated, Self
from urllib.parse import quote

from msgspec import Meta, Struct

from mlp_api.stored.files import FileEntry
from mlp_hub.api.edge.call import Call, Reply
from mlp_hub.api.edge.decode import clip
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.executors.workspace import DirectoryPage, OpenFile
from mlp_hub.service.support.units import when
from mlp_language.message import msg

CHUNK = 256 * 1024
"""Tuning: bytes of a file that are read at a time: fewer reads, for more memory of each download."""
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")
FilePath = Annotated[str, Meta(max_length=4096, description="below the directory, as ckpt/last.pt")]


class FilesQuery(Struct, forbid_unknown_fields=True):
    """Which directory, empty for the one on top, and which page of it."""

    path: FilePath = ""
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100
    cursor: Annotated[str, Meta(min_length=1, max_length=500)] | None = None

    @property
    def after(self) -> str:
        """The name that the page before ended with."""
        if self.cursor is None:
            return ""
        try:
            return urlsafe_b64decode(self.cursor.encode()).decode("utf-8", "surrogateescape")
        except ValueError:
            raise Refused(
                Reason.INVALID,
                msg(
                    "cursor is {cursor}; it must be the X-Next-Cursor of the page before",
                    cursor=clip(self.cursor),
                ),
            ) from None


class ContentQuery(Struct, forbid_unknown_fields=True):
    """Which file."""

    path: FilePath = ""


def listing(call: Call, page: DirectoryPage) -> Reply:
    """Answer with a page of a directory."""
    entries = [
        FileEntry(name=e.name, kind=e.kind.value, size=e.size, modified=when(e.modified))
        for e in page.entries
    ]
    if not page.more or page.last is None:
        return Reply(call.encode(entries))
    cursor = urlsafe_b64encode(page.last.encode("utf-8", "surrogateescape")).decode()
    return Reply(call.encode(entries), headers={"X-Next-Cursor": cursor})


def content(call: Call, file: OpenFile, path: str) -> Reply:
    """Answer with a file, or the part of it that was asked for while it is still the same."""
    etag = f'"{file.tag}"'
    start, end = 0, file.size
    asked = call.range if call.if_range in ("", etag) else ""
    part = _RANGE.fullmatch(asked)
    if part is not None and (part[1] or part[2]):
        try:
            start, end = _span(part[1], part[2], file.size)
        except Refused:
            file.close()
            raise
    else:
        part = None  # several parts, or in other units: all of it, as HTTP has it
    name = quote(path.rstrip("/").rpartition("/")[2])
    headers = {
        "Content-Length": str(end - start),
        "Content-Disposition": f"attachment; filename*=UTF-8''{name}",
        "Accept-Ranges": "bytes",
        "ETag": etag,
        "Last-Modified": formatdate(file.modified, usegmt=True),
    }
    if part is not None:
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{file.size}"
    return Reply(
        status=None if part is None else 206,
        stream=Chunks(file, start, end),
        media="application/octet-stream",
        headers=headers,
    )


def _span(first: str, last: str, size: int) -> tuple[int, int]:
    """Return from where to where of a file, the end not included."""
    start, end = (
        (int(first), min(int(last) + 1, size) if last else size)
        if first
        else (max(size - int(last), 0), size)
    )
    if start >= end:
        raise Refused(
            Reason.INVALID,
            msg("Range selects nothing of the file, whose {size} bytes are numbered from 0", size=size),
        )
    return start, end


class Chunks:
    """Bytes of an open file, which is closed at their end, whether any were asked for or not."""

    def __init__(self, file: OpenFile, start: int, end: int) -> None:
        self._file = file
        self._at = start
        self._end = end

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if self._at >= self._end:
            raise StopAsyncIteration
        data = await self._file.read(self._at, min(CHUNK, self._end - self._at))
        if not data:
            # its program made it smaller: the connection ends before what was announced, so that nobody takes it for whole
            raise EOFError("the file became smaller while it was read")
        self._at += len(data)
        return data

    async def aclose(self) -> None:
        """Close the file."""
        self._file.close()
