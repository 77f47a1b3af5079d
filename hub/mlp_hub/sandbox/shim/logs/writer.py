r"""Writer of ranks' output as lines `<RFC 3339> stdout|stderr F|P text\n`, bounded.

The first segment of a rank, `rank-N.log`, is kept. Later ones are named by the offset of their
first byte since the rank's beginning, and only the newest are kept. So the start and the end of a
flood stay readable, and an offset means the same for ever. A process inside cannot redirect a
write: all writes are relative to the directory opened at the start, and links are never followed.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping

from mlp_hub.sandbox.shim import files
from mlp_hub.sandbox.shim.diagnosis.exception_line import Raised
from mlp_hub.sandbox.shim.logs import screen
from mlp_hub.sandbox.shim.logs.losses import Losses
from mlp_hub.sandbox.shim.logs.segments import ended, lines_between, name_of, segments

SEGMENT = 4 << 20
KEPT = 3  # segments besides the first
LONGEST = 16 << 10  # bytes of one line; longer ones come as several, all but the last marked P
FLUSH_AFTER = 0.5  # seconds until a line without its end is written as far as it came
TAIL = 4096
PIECE = 2048
"""Safety: bytes that go to a screen at a time: a few may move over many rows and columns, which are all in memory until they are written."""


class RankLog:
    """Log of one rank; both its streams write here, and the bucket, if any, limits the rate.

    It has only whole records, even if the disk or a kill of an earlier writer cut one. Records that
    could not be written are counted in `lost`, and in `losses`. The log itself reports them as soon as
    it can be written again.
    """

    def __init__(
        self, directory: int, rank: int, bucket: Bucket | None = None, losses: Losses | None = None
    ) -> None:
        self._directory = directory
        self._rank = rank
        self._bucket = bucket
        self._losses = losses
        self._old = segments(directory, rank)
        self._base = self._old[-1][0] if self._old else 0
        self._fd = -1
        self._size = 0
        self._lines: int | None = 0  # that have ended since the first segment did
        self._partial = b""  # the stream whose line goes on in the next record
        self._broken = True  # the next record does not go on where the last one ended
        self._torn = False  # half a record stands behind the last whole one
        self._untold = 0
        self._why = ""
        self.lost = 0
        try:
            self._ready()
        except OSError as error:
            if not files.is_full(error):  # then it is tried again with each write
                raise

    def _open(self, name: str) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        return os.open(name, flags, 0o644, dir_fd=self._directory)

    def write(self, data: bytes, lines: int) -> None:
        """Append whole records with the ends of `lines` lines.

        Those that cannot be written (disk full) are counted and dropped.
        """
        if self._bucket is not None:
            self._bucket.take(len(data))
        head = self._head() if self._broken else b""
        done = self._append(head + data)
        if self._lines is not None:
            # counted only where that is not known: a part of a line is a record of its own
            self._lines += lines if done == len(data) else ended((head + data)[:done])
        if done >= len(head):
            self._broken, self._untold = False, 0
        if rest := data[max(0, done - len(head)) :]:
            self.lose(rest.count(b"\n"), self._why)

    def lose(self, lines: int, why: str) -> None:
        """Count lines that are not written."""
        self.lost += lines
        if self._losses is not None:
            self._losses.add(lines)
        self._untold += lines
        self._broken, self._why = True, why

    def tell(self) -> bool:
        """Say in the log what was lost before; `False` when that cannot be written now."""
        if self._untold:
            self.write(b"", 0)
        return not self._untold

    def _head(self) -> bytes:
        """Return what goes before the next record: the end of a line whose rest is missing, and what was lost."""
        head = _record(self._partial, b"F", b"") if self._partial else b""
        if self._untold:
            text = f"[mlp] {lines_lost(self._untold)} here: {self._why}"
            head += _record(b"stderr", b"F", text.encode())
        return head

    def _append(self, data: bytes) -> int:
        """Write as many whole records as there is room for; return how many bytes those have."""
        done = 0
        try:
            self._ready()
            view = memoryview(data)
            while done < len(data):
                done += os.write(self._fd, view[done:])
        except OSError as error:
            self._why = "the disk was full" if files.is_full(error) else f"{error.strerror}".lower()
        whole = data.rfind(b"\n", 0, done) + 1
        self._size += whole
        if whole:
            self._remember(data[:whole])
        if whole < done:
            self._torn = True
            with contextlib.suppress(OSError):
                self._cut()
        return whole

    def _ready(self) -> None:
        """Have a file open that ends with a whole record and has room."""
        if self._fd < 0:
            name = self._old[-1][1] if self._old else f"rank-{self._rank}.log"
            self._fd = self._open(name)
            self._old = self._old or [(0, name)]
            self._mend()
        if self._torn:
            self._cut()
        if self._size >= SEGMENT:
            self._rotate()

    def _mend(self) -> None:
        """Cut off what a writer that was killed left of its last record."""
        self._size = os.fstat(self._fd).st_size
        if self._base:
            self._lines = self._counted()
        end = os.pread(self._fd, 2 * LONGEST, max(0, self._size - 2 * LONGEST))
        whole = end.rfind(b"\n") + 1
        self._torn = whole < len(end)
        self._size -= len(end) - whole
        self._remember(end[:whole])

    def _counted(self) -> int | None:
        """Count the lines since the first segment again: another writer began the last one."""
        before = lines_between(self._old[-1][1])
        if before is None:
            return None
        return before + ended(os.pread(self._fd, self._size, 0))

    def _cut(self) -> None:
        os.ftruncate(self._fd, self._size)
        self._torn = False

    def _remember(self, records: bytes) -> None:
        last = records[records.rfind(b"\n", 0, -1) + 1 :].split(b" ", 3)
        self._partial = last[1] if len(last) > 3 and last[2] == b"P" else b""

    def _rotate(self) -> None:
        if not self._base:
            self._lines = 0
        base = self._base + self._size
        name = name_of(self._rank, base, self._lines)
        new = self._open(name)
        os.close(self._fd)
        self._fd, self._base, self._size = new, base, 0
        self._old.append((base, name))
        while len(self._old) > KEPT + 1:
            _, gone = self._old.pop(1)
            with contextlib.suppress(OSError):
                os.unlink(gone, dir_fd=self._directory)

    def close(self) -> None:
        """Close the file."""
        self.tell()
        if self._fd >= 0:
            os.close(self._fd)


class Stream:
    """One stream of one rank: turns bytes into lines. Without a log it only remembers the last ones.

    What moves its cursor goes by a `Screen`, which says what a terminal would show; all else never meets one.
    """

    def __init__(self, log: RankLog | None, name: str) -> None:
        self._log = log
        self._name = name.encode()
        self._rest = b""
        self._rest_since = 0.0
        self._tail = b""
        self._raised = Raised()
        self._begun = b""  # what the log has of the line that goes on
        self._screen: screen.Screen | None = None
        self._told = ""  # what the log says that the screen shows
        self.steered = False  # whether it ever moved its cursor: then each byte may be much work
        self.beside: Stream | None = None  # the other stream of its rank

    def feed(self, data: bytes) -> None:
        """Take what was read."""
        if self.beside is not None and b"\n" in data:
            self.beside.settle()
        self._tail = (self._tail + data)[-TAIL:]
        self._raised.feed(data, time.monotonic())
        if self._log is None:
            return
        if self._screen is not None:
            self._steered(data)
            return
        if screen.steers(self._rest, data):
            self._screen, self.steered = screen.Screen(), True
            self._told = self._begun.decode(errors="replace")
            data, self._rest = self._begun + self._rest + data, b""
            self._rest_since = 0.0
            self._steered(data)
            return
        whole, newline, rest = (self._rest + data).rpartition(b"\n")
        if rest and not (self._rest and not newline):
            self._rest_since = time.monotonic()
        self._rest = rest
        if newline:
            self._lines(whole)
        while len(self._rest) > LONGEST:
            self._part(_boundary(self._rest, LONGEST))

    def _lines(self, whole: bytes) -> None:
        self._begun = b""
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
        self._log.write(prefix + (b"\n" + prefix).join(lines) + b"\n", len(lines))

    def _part(self, cut: int) -> None:
        """Write `cut` bytes of a line whose end has not come."""
        part, self._rest = self._rest[:cut], self._rest[cut:]
        self._begun = (self._begun + part)[-LONGEST:]
        self._emit(b"P", part)

    def _emit(self, mark: bytes, text: bytes) -> None:
        assert self._log is not None  # noqa: S101 - callers checked
        self._log.write(_record(self._name, mark, _valid(text)), mark == b"F")

    def _steered(self, data: bytes) -> None:
        """Take what goes by the screen; write the lines that have left it."""
        assert self._screen is not None  # noqa: S101 - callers checked
        for at in range(0, len(data), PIECE):
            self._finished(self._screen.write(data[at : at + PIECE]))
        if self._screen.calm < screen.CALM:
            self._rest_since = self._rest_since or time.monotonic()
            return
        *rows, self._rest = [row.encode() for row in self._screen.shown()] or [b""]
        if data.endswith(b"\n"):
            rows, self._rest = [*rows, self._rest], b""
        self._screen = None
        self._finished([row.decode() for row in rows])
        self._begun, self._told = b"", ""

    def settle(self) -> None:
        """Write lines of the screen that have ended, before the other stream writes its own."""
        if self._screen is not None and (rows := self._screen.settle()):
            self._finished(rows)
            # what is left was shown with them, and is not any more
            self._rest_since = self._rest_since or time.monotonic()

    def _finished(self, rows: list[str]) -> None:
        """Write lines that change no more; the first replaces its earlier form in the log."""
        if not rows:
            return
        first = (screen.STATE if self._told else "") + rows[0]
        self._told = ""
        self._lines("\n".join([first, *rows[1:]]).encode())

    def _show(self) -> None:
        """Write what the screen shows, where that is not what was written last."""
        assert self._screen is not None  # noqa: S101 - callers checked
        self._rest_since = 0.0
        shown = screen.BREAK.join(self._screen.shown())
        if shown == self._told:
            return
        self._told = shown
        text = (screen.STATE + shown).encode()
        while text:
            cut = len(text) if len(text) <= LONGEST else _boundary(text, LONGEST)
            self._emit(b"P", text[:cut])
            text = text[cut:]

    def flush_idle(self) -> float | None:
        """Write a line without an end that has waited long enough; return in how many seconds to ask again."""
        waits = self._rest_since if self._screen is not None else self._rest
        if not waits or self._log is None:
            return None
        wait = self._rest_since + FLUSH_AFTER - time.monotonic()
        if wait > 0:
            return wait
        if self._screen is not None:
            self._show()
            return None
        cut = _whole(self._rest)
        if cut:
            self._part(cut)
        # what begins a character waits for the rest of it
        self._rest_since = time.monotonic()
        return None

    def end(self) -> None:
        """Write what is left."""
        if self._screen is not None:
            self._finished(
                [*self._screen.write(b"", final=True), *self._screen.shown()] or [""] * bool(self._told)
            )
            self._screen = None
        if self._rest:
            self._emit(b"F", self._rest)
            self._rest = b""

    def skip(self, data: bytes, why: str) -> None:
        """Take what was read without writing it: it only counts as lost."""
        self._tail = (self._tail + data)[-TAIL:]
        self._raised.feed(data, time.monotonic())
        if self._log is not None:
            self._log.lose(data.count(b"\n"), why)

    def forget_after(self, position: int) -> None:
        """Cut the tail there, unless that leaves nothing."""
        self._tail = self.tail[:position].encode() or self._tail

    @property
    def tail(self) -> str:
        """The last lines as a terminal shows them, for messages."""
        data = self._tail
        if len(data) == TAIL:
            data = data.partition(b"\n")[2] or data[_first(data) :]
        text = data.decode(errors="replace")
        shown = (screen.rendered(text) if screen.steers(b"", data) else text).strip("\n")
        return self._raised.before(shown)


def pair(log: RankLog) -> tuple[Stream, Stream]:
    """Return the two streams of a rank, output and errors, whose lines come in the order of their ends."""
    both = Stream(log, "stdout"), Stream(log, "stderr")
    both[0].beside, both[1].beside = both[1], both[0]
    return both


def steered_first(events: list[tuple[int, int]], streams: Mapping[int, Stream]) -> list[tuple[int, int]]:
    """Put what moves its cursor before all else that is there to be read: a bar's last state comes before the line behind it."""
    if len(events) > 1:
        events.sort(key=lambda event: not (event[0] in streams and streams[event[0]].steered))
    return events


def lines_lost(count: int) -> str:
    """Say how many."""
    return f"{count} line{'' if count == 1 else 's'} of output lost"


def _record(stream: bytes, mark: bytes, text: bytes) -> bytes:
    return b"%s %s %s %s\n" % (_now(), stream, mark, text)


def _valid(data: bytes) -> bytes:
    try:
        data.decode()
    except UnicodeDecodeError:
        return data.decode(errors="replace").encode()
    return data


def _first(data: bytes) -> int:
    """Return where the first whole character begins."""
    return next((at for at in range(min(4, len(data))) if data[at] & 0xC0 != 0x80), 0)


def _whole(data: bytes) -> int:
    """Return where a character or a sequence of steering begins at the end that has not come whole, else the length."""
    for back in range(1, min(4, len(data)) + 1):
        lead = data[-back]
        if lead & 0xC0 != 0x80:
            needs = 4 if lead >= 0xF0 else 3 if lead >= 0xE0 else 2 if lead >= 0xC0 else 1
            if needs > back:
                return len(data) - back
            break
    at = data.rfind(b"\x1b", -32)
    return at if at >= 0 and not any(0x40 <= c <= 0x7E and c != 0x5B for c in data[at + 1 :]) else len(data)


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
    """Bucket that limits the bytes per second, so that its full pipe slows a flood at the source.

    `taken` is the total so far.
    """

    def __init__(self, rate: float = 4 << 20, burst: float = 16 << 20) -> None:
        self._rate, self._burst = rate, burst
        self._level, self._at = burst, time.monotonic()
        self.taken = 0

    def take(self, size: int) -> None:
        """Account for bytes that were written or represented; the level can go below zero by one read."""
        self.taken += size
        self._level -= size

    def wait(self) -> float:
        """Return how many seconds to leave the source alone."""
        now = time.monotonic()
        self._level = min(self._burst, self._level + (now - self._at) * self._rate)
        self._at = now
        return 0.0 if self._level > 0 else -self._level / self._rate + 0.01
