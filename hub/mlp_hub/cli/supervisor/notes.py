"""Files that the supervisor writes: its log, and small files; a failed write never ends the supervisor.

Only `os` is imported, as in procs.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from typing import Any

_OUT = 1


class _Log:
    """Lines with the time on standard output, which is the supervisor's log. Those that find no room are counted."""

    def __init__(self) -> None:
        self.lost = 0
        self.torn = False
        self.json = False

    def set_format(self, kind: str) -> None:
        """Write JSON lines from now on if `kind` is json, else text."""
        self.json = kind == "json"

    def say(self, text: str) -> None:
        if self.lost and self._write(
            self._line(f"{self.lost} lines of this log were lost: there was no room")
        ):
            self.lost = 0
        if not self._write(self._line(text)):
            self.lost += 1

    def _write(self, line: bytes) -> bool:
        if self.torn:  # what follows half a line is one of its own
            line = b"\n" + line
        try:
            written = os.write(_OUT, line)
        except OSError:
            return False
        self.torn = 0 < written < len(line) or (self.torn and written == 0)
        return written == len(line)

    def _line(self, text: str) -> bytes:
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        if self.json:
            line = json.dumps({"time": at, "level": "info", "logger": "supervisor", "message": text})
            return f"{line}\n".encode()
        # a name or a path within is no line of its own
        return f"{at} {text.translate(_ESCAPES)}\n".encode(errors="replace")


_ESCAPES = {number: f"\\x{number:02x}" for number in (*range(32), *range(127, 160))}
_log = _Log()
say = _log.say
set_format = _log.set_format


def write(path: str, content: dict[str, Any]) -> bool:
    """Write JSON as a whole or not at all; return False if it was not written.

    Without room for another file, it is written over the existing file, in the blocks of that file. The
    room of the last note is so kept for the next one.
    """
    text = json.dumps(content).encode()
    new = f"{path}.new"
    try:
        fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            whole = os.write(fd, text) == len(text)
        finally:
            os.close(fd)
        if whole:
            os.replace(new, path)  # noqa: PTH105 - see procs
            return True
    except OSError:
        whole = False
    with contextlib.suppress(OSError):
        os.unlink(new)  # noqa: PTH108
    return _write_over(path, text)


def _write_over(path: str, text: bytes) -> bool:
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        had = os.fstat(fd).st_size
        text = text.ljust(had)  # blanks behind the end are no harm to JSON
        return os.pwrite(fd, text, 0) == len(text)
    except OSError:
        return False
    finally:
        os.close(fd)
