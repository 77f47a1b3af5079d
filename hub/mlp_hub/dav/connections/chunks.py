"""Bodies that come in chunks: read piece by piece, however long who sends them says that a chunk is.

Cheroot has a chunk in memory as a whole, and a line for as long as none ends; sandboxes and pods may send both as they like.
"""

from __future__ import annotations

import re
from typing import Any

from cheroot.server import ChunkedRFile
from wsgidav.dav_error import HTTP_BAD_REQUEST, DAVError

from mlp_language.message import msg

PIECE = 1 << 18
"""Tuning: bytes of a chunk that are read at a time."""
LINE_MAX = 4096
"""Safety: bytes of the line before a chunk."""
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]*)?\r\n")


class ChunkedBody(ChunkedRFile):
    """Body in chunks; a body that is malformed or cut raises `DAVError`."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner, maxlen=0)
        self._left = 0

    def _fetch(self) -> None:
        """Have something in the buffer, or know that it is over."""
        if self.closed:
            return
        if not self._left:
            found = _SIZE.fullmatch(self.rfile.readline(LINE_MAX))
            if found is None:
                raise _cut()
            self._left = int(found[1], 16)
            if not self._left:
                self.closed = True
                return
        data = self.rfile.read(min(self._left, PIECE))
        if not data:
            raise _cut()
        self._left -= len(data)
        self.buffer += data
        if not self._left and self.rfile.read(2) != b"\r\n":
            raise _cut()


def _cut() -> DAVError:
    return DAVError(
        HTTP_BAD_REQUEST,
        msg("the body broke off, or its chunks cannot be read; nothing was changed, send all of it"),
    )
