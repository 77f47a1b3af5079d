r"""Writes ranks' output as lines `<RFC 3339> stdout|stderr F|P text\n`, bounded.

The first segment of a rank, `rank-N.log`, is kept; later ones, `rank-N.<offset>.log`, are named by the offset
of their first byte since the rank's beginning, and only the newest are kept. So the start and the end of a
flood stay readable, and an offset means the same for ever. Whoever runs inside cannot redirect a write: all
goes relative to the directory opened at the start, and links are never followed.
"""

from __future__ import annotations

import contextlib
import os
import re
import time

SEGMENT = 4 << 20
KEPT = 3  # segments besides the first
LONGEST = 16 << 10  # bytes of one line; longer ones come as several, all but the last marked P
FLUSH_AFTER = 0.5  # seconds until a line without its end is written as far as it came
TAIL = 4096
_NAME = re.compile(r"rank-(\d+)(?:\.(\d+))?\.log")


def segments(directory: int, rank: int) -> list[tuple[int, str]]:
    """List (offset, file name) of a rank's segments in order."""
    found = []
    for name in os.listdir(directory):
        match = _NAME.fullmatch(name)
        if match and int(match[1]) == rank:
            found.append((int(match[2] or 0), name))
    return sorted(found)


class RankLog:
    """The log of one rank; both its streams write here."""

    def __init__(self, directory: int, rank: int) -> None:
        self._directory = directory
        self._rank = rank
        self._old = segments(directory, rank)
        base, name = self._old[-1] if self._old else (0, f"rank-{rank}.log")
        self._fd = self._open(name)
        self._base = base
        self._size = os.fstat(self._fd).st_size
        self._old = self._old or [(0, name)]
        self.lost = 0

    def _open(self, name: str) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        return os.open(name, flags, 0o644, dir_fd=self._directory)

    def write(self, data: bytes) -> None:
        """Append whole lines; what cannot be written (disk full) is counted and dropped."""
        try:
            if self._size >= SEGMENT:
                self._rotate()
            while data:
                done = os.write(self._fd, data)
                self._size += done
                data = data[done:]
        except OSError:
            self.lost += len(data)

    def _rotate(self) -> None:
        self._base += self._size
        name = f"rank-{self._rank}.{self._base}.log"
        new = self._open(name)
        os.close(self._fd)
        self._fd, self._size = new, 0
        self._old.append((self._base, name))
        while len(self._old) > KEPT + 1:
            _, gone = self._old.pop(1)
            with contextlib.suppress(OSError):
                os.unlink(gone, dir_fd=self._directory)

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)


class Stream:
    """One stream of one rank: turns bytes into lines. Without a log it only remembers the last ones."""

    def __init__(self, log: RankLog | None, name: str) -> None:
        self._log = log
        self._name = name.encode()
        self._rest = b""
        self._rest_since = 0.0
        self._tail = b""

    def feed(self, data: bytes) -> None:
        """Take what was read."""
        self._tail = (self._tail + data)[-TAIL:]
        if self._log is None:
            return
        whole, newline, rest = (self._rest + data).rpartition(b"\n")
        if rest and not (self._rest and not newline):
            self._rest_since = time.monotonic()
        self._rest = rest
        if newline:
            self._lines(whole)
        while len(self._rest) > LONGEST:
            cut = _boundary(self._rest, LONGEST)
            self._emit(b"P", self._rest[:cut])
            self._rest = self._rest[cut:]

    def _lines(self, whole: bytes) -> None:
        lines = _valid(whole).split(b"\n")
        if max(map(len, lines)) > LONGEST:
            for line in lines:
                while len(line) > LONGEST:
                    cut = _boundary(line, LONGEST)
                    self._emit(b"P", line[:cut])
                    line = line[cut:]  # noqa: PLW2901
                self._emit(b"F", line)
            return
        prefix = b"%s %s F " % (_now(), self._name)
        assert self._log is not None  # noqa: S101 - feed() returned otherwise
        self._log.write(prefix + (b"\n" + prefix).join(lines) + b"\n")

    def _emit(self, mark: bytes, text: bytes) -> None:
        assert self._log is not None  # noqa: S101 - callers checked
        self._log.write(b"%s %s %s %s\n" % (_now(), self._name, mark, _valid(text)))

    def flush_idle(self) -> float | None:
        """Write a line without an end that has waited long enough; return in how many seconds to ask again."""
        if not self._rest or self._log is None:
            return None
        wait = self._rest_since + FLUSH_AFTER - time.monotonic()
        if wait > 0:
            return wait
        self._emit(b"P", self._rest)
        self._rest = b""
        return None

    def end(self) -> None:
        """Write what is left."""
        if self._rest:
            self._emit(b"F", self._rest)
            self._rest = b""

    def forget_after(self, position: int) -> None:
        """Cut the tail there, unless that leaves nothing."""
        self._tail = self.tail[:position].encode() or self._tail

    @property
    def tail(self) -> str:
        """The last lines, for messages."""
        text = self._tail.decode(errors="replace")
        if len(self._tail) == TAIL:
            text = text.partition("\n")[2] or text
        return text.strip("\n")


def _valid(data: bytes) -> bytes:
    try:
        data.decode()
    except UnicodeDecodeError:
        return data.decode(errors="replace").encode()
    return data


def _boundary(data: bytes, at: int) -> int:
    """Step back to where a character begins."""
    for cut in range(at, at - 4, -1):
        if data[cut] & 0xC0 != 0x80:
            return cut
    return at


def _now() -> bytes:
    ns = time.time_ns()
    return b"%s.%09dZ" % (time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ns // 10**9)).encode(), ns % 10**9)


class Bucket:
    """Lets so many bytes a second through, so that a flood is slowed at its source by its full pipe."""

    def __init__(self, rate: float = 4 << 20, burst: float = 16 << 20) -> None:
        self._rate, self._burst = rate, burst
        self._level, self._at = burst, time.monotonic()

    def take(self, size: int) -> None:
        """Account for bytes that were read; the level may go below zero by one read."""
        self._level -= size

    def wait(self) -> float:
        """Return how many seconds to leave the pipes alone."""
        now = time.monotonic()
        self._level = min(self._burst, self._level + (now - self._at) * self._rate)
        self._at = now
        return 0.0 if self._level > 0 else -self._level / self._rate + 0.01
