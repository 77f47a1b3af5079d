"""Reads ranks' logs by a cursor that means the same for ever: bytes since the rank's beginning.

The directory is beside files that a tenant may write, so it and what is in it are never followed as links.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from mlp_hub.executors.base import LogChunk, LogLine
from mlp_hub.safe_path import DirHandle
from mlp_hub.sandbox.shim.logs.screen import STATE
from mlp_hub.sandbox.shim.logs.segments import all_segments, lines_between, segments
from mlp_hub.sandbox.shim.logs.writer import KEPT, LONGEST, SEGMENT

_STATE = STATE.encode()
OURS = "mlp"
"""Contract: stream of a line that no rank wrote; it reports missing lines.

No line of a rank continues it.
"""
READ = 256 << 10
"""Safety: bytes of a log that are read at a time: bounds memory, however long the lines are."""
TAIL = 4 << 20
"""Safety: bytes before a log's end in which its last lines are looked for: a program that floods its log does not keep us
there."""


@contextlib.contextmanager
def _directory(workspace: str) -> Iterator[DirHandle | None]:
    try:
        with DirHandle.at(workspace) as outer:
            found = outer.inside("log")
    except OSError:
        yield None  # there is no log yet
        return
    with found:
        yield found


def read_log(
    workspace: str, rank: int, since: int = 0, limit: int = 1000, until: int | None = None
) -> LogChunk:
    """Read at most `limit` whole lines of a rank, and `READ` bytes, from a cursor on; none end after `until`.

    Where rotation has discarded the data at the cursor, reading continues after the gap with a line of
    the platform that reports the missing amount. For programs, `dropped` and `dropped_lines` have the
    amount. A long line that was stored in parts is put together again.
    """
    with _directory(workspace) as directory:
        if directory is None:
            return LogChunk(rank, (), since)
        return _read_on(directory, segments(directory.fd, rank), rank, since, limit, until)


def _read_on(  # noqa: PLR0917 - the arguments of `read_log`
    directory: DirHandle,
    found: Sequence[tuple[int, str]],
    rank: int,
    since: int,
    limit: int,
    until: int | None = None,
) -> LogChunk:
    for number, (base, name) in enumerate(found):
        if until is not None and max(base, since) >= until:
            break
        at = max(base, since)
        data = _read(directory, name, at - base, READ if until is None else min(READ, until - at))
        if data:
            lines, used = _parse(data, limit)
            if at == since:
                return LogChunk(rank, tuple(lines), at + used)
            gap = _gap(directory, found, number, since)
            marker = LogLine(lines[0].time, OURS, missing(*gap))
            return LogChunk(rank, (marker, *lines), at + used, *gap)
        # empty here: this segment ends at the cursor, go on with the next
    return LogChunk(rank, (), since)


def missing(size: int, lines: int | None) -> str:
    """Return the log line for `size` discarded bytes, with the number of lines where they were counted."""
    amount = f"{size / (1 << 20):,.0f} MiB" if size >= 1 << 20 else f"{size / 1024:,.1f} KiB"
    what = (
        f"{amount} are"
        if lines is None
        else f"{lines:,} line{'' if lines == 1 else 's'} ({amount}) {'is' if lines == 1 else 'are'}"
    )
    kept = f"a log keeps its first {SEGMENT >> 20} MiB and its last {KEPT * SEGMENT >> 20} MiB"
    return f"[mlp] {what} missing here: {kept}."


def _gap(
    directory: DirHandle, found: Sequence[tuple[int, str]], number: int, since: int
) -> tuple[int, int | None]:
    """Return how much was discarded between a cursor and a segment: bytes, and lines where all of them were between the first and it."""
    base, name = found[number]
    at_the_first = number > 0 and found[0][0] == 0 and since == _size(directory, found[0][1])
    return base - since, lines_between(name) if at_the_first else None


def _size(directory: DirHandle, name: str) -> int:
    try:
        return directory.stat(name).st_size
    except OSError:
        return 0


def _discarded(directory: DirHandle, rank: int, before: int) -> tuple[int, int | None]:
    """Return how much of a log was discarded before a cursor."""
    found = segments(directory.fd, rank)
    if len(found) < 2 or found[1][0] > before:
        return 0, 0
    return _gap(directory, found, 1, _size(directory, found[0][1]))


def _read(directory: DirHandle, name: str, offset: int, size: int) -> bytes:
    try:
        with directory.read(name) as file:
            data = os.pread(file.fileno(), size, offset)
    except OSError:
        return b""
    return data[: data.rfind(b"\n") + 1]


def _parse(data: bytes, limit: int) -> tuple[list[LogLine], int]:
    lines: list[LogLine] = []
    used = 0
    begun: dict[bytes, tuple[int, bytes]] = {}  # of each stream the line without an end, and where it is
    continued = False
    for raw in data.split(b"\n")[:-1]:
        if len(lines) >= limit and not continued:
            break
        used += len(raw) + 1
        time, _, rest = raw.partition(b" ")
        stream, mark, text = [*rest.split(b" ", 2), b"", b""][:3]
        at, before = begun.pop(stream, (len(lines), b""))
        text = _joined(before, text)
        continued = mark == b"P"
        if continued:
            begun[stream] = at, text
        when, of, said = (each.decode(errors="replace") for each in (time, stream, text))
        lines[at : at + 1] = [LogLine(when, of, said, continued)]
    return lines, used


def _add(lines: list[LogLine], more: Iterable[LogLine]) -> None:
    """Add the next lines; the first of each stream continues a line of it that has no end yet."""
    begun = {line.stream: at for at, line in enumerate(lines) if line.partial}
    for line in more:
        at = begun.pop(line.stream, None)
        if at is None:
            lines.append(line)
        else:
            text = _joined(lines[at].text.encode(), line.text.encode()).decode(errors="replace")
            lines[at] = replace(line, text=text)


def _joined(before: bytes, text: bytes) -> bytes:
    """Join parts of a line; of a progress bar only what it wrote last, else it would be a line of hours."""
    if text.startswith(_STATE):
        return text
    whole = before + text
    # only logs of older versions have what was written over
    written_over = whole.find(b"\r", max(0, len(whole) - LONGEST)) if len(whole) > LONGEST else -1
    return whole[max(0, written_over) :]


def log_end(workspace: str, rank: int) -> int:
    """Return the cursor behind the last byte."""
    with _directory(workspace) as directory:
        if directory is None:
            return 0
        found = segments(directory.fd, rank)
        if not found:
            return 0
        base, name = found[-1]
        return base + directory.stat(name).st_size


def tail_log(workspace: str, rank: int, count: int, until: int | None = None) -> LogChunk:
    """Read the last `count` lines of a rank, or of the part before `until`; `offset` is the cursor after them.

    Lines that begin more than `TAIL` bytes before the end are left out. Data that is written meanwhile
    is left to the next read, so that a program that floods its log cannot block the reader.
    """
    end = log_end(workspace, rank) if until is None else until
    back = 4096
    while True:
        back = min(back, TAIL)
        start = max(0, end - back)
        lines: list[LogLine] = []
        at = start
        while at < end:
            chunk = read_log(workspace, rank, at, 100_000, end)
            _add(lines, chunk.lines)
            if chunk.offset == at:
                break
            at = chunk.offset
        if start == 0 or len(lines) > count or back == TAIL:
            if start:
                del lines[:1]  # it may be half a line
            return LogChunk(rank, tuple(lines[-count:] if count else ()), at, *_before(workspace, rank, at))
        back *= 4


def _before(workspace: str, rank: int, cursor: int) -> tuple[int, int | None]:
    with _directory(workspace) as directory:
        return (0, 0) if directory is None else _discarded(directory, rank, cursor)


def read_new(workspace: str, cursors: Mapping[int, int], limit: int = 1000) -> list[LogChunk]:
    """Read what ranks have written behind their cursors; only of those that have, each as `read_log` does.

    The directory is opened and listed once, however many ranks there are.
    """
    with _directory(workspace) as directory:
        if directory is None:
            return []
        found = all_segments(directory.fd)
        chunks = []
        for rank, since in cursors.items():
            chunk = _read_on(directory, found.get(rank, ()), rank, since, limit)
            if chunk.offset != since:
                chunks.append(chunk)
    return chunks
