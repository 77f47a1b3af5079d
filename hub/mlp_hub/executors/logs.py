"""Reads ranks' logs by a cursor that means the same for ever: bytes since the rank's beginning.

The directory is beside files that a tenant may write, so it and what is in it are never followed as links.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Iterator

from mlp_hub.executors.base import LogChunk, LogLine
from mlp_hub.executors.shim.logs import segments

READ = 256 << 10
PERIOD = 0.1


@contextlib.contextmanager
def _directory(workspace: str) -> Iterator[int | None]:
    fd = None
    try:
        outer = os.open(workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fd = os.open("log", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=outer)
        finally:
            os.close(outer)
    except OSError:
        yield None  # there is no log yet
        return
    try:
        yield fd
    finally:
        os.close(fd)


def read_log(workspace: str, rank: int, since: int = 0, limit: int = 1000) -> LogChunk:
    """Read at most `limit` whole lines of a rank from a cursor on.

    Where rotation has discarded what the cursor names, reading goes on after the gap and `dropped` says how
    many bytes are missing. A long line that was stored in parts is put together again.
    """
    with _directory(workspace) as directory:
        if directory is None:
            return LogChunk(rank, (), since)
        dropped = 0
        for base, name in segments(directory, rank):
            if base > since:
                dropped += base - since
                since = base
            data = _read(directory, name, since - base)
            if data:
                lines, used = _parse(data, limit)
                return LogChunk(rank, tuple(lines), since + used, dropped)
            # empty here: this segment ends at the cursor, go on with the next
    return LogChunk(rank, (), since, dropped)


def _read(directory: int, name: str, offset: int) -> bytes:
    try:
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    except OSError:
        return b""
    try:
        data = os.pread(fd, READ, offset)
    finally:
        os.close(fd)
    return data[: data.rfind(b"\n") + 1]


def _parse(data: bytes, limit: int) -> tuple[list[LogLine], int]:
    lines: list[LogLine] = []
    used = 0
    parts = b""
    for raw in data.split(b"\n")[:-1]:
        if len(lines) >= limit and not parts:
            break
        used += len(raw) + 1
        time, _, rest = raw.partition(b" ")
        stream, mark, text = [*rest.split(b" ", 2), b"", b""][:3]
        if parts and lines[-1].stream == stream.decode():
            lines.pop()
            text = parts + text
        lines.append(
            LogLine(
                time.decode(errors="replace"), stream.decode(errors="replace"), text.decode(errors="replace")
            )
        )
        parts = text if mark == b"P" else b""
    return lines, used


def log_end(workspace: str, rank: int) -> int:
    """Return the cursor behind the last byte."""
    with _directory(workspace) as directory:
        if directory is None:
            return 0
        found = segments(directory, rank)
        if not found:
            return 0
        base, name = found[-1]
        return base + os.stat(name, dir_fd=directory, follow_symlinks=False).st_size


def tail_log(workspace: str, rank: int, count: int) -> LogChunk:
    """Read the last `count` lines of a rank; `offset` is the cursor behind them.

    What is written meanwhile is left to the next read, so that a program that floods its log cannot keep us here.
    """
    end = log_end(workspace, rank)
    back = 4096
    while True:
        start = max(0, end - back)
        lines: list[LogLine] = []
        at = start
        while True:
            chunk = read_log(workspace, rank, at, 100_000)
            lines += chunk.lines
            moved, at = chunk.offset != at, chunk.offset
            if not moved or at >= end:
                break
        if start == 0 or len(lines) > count:  # the first may be half a line
            return LogChunk(rank, tuple(lines[-count:] if count else ()), at)
        back *= 4


async def follow(workspace: str, ranks: int, since: dict[int, int] | None = None) -> AsyncIterator[LogChunk]:
    """Yield what is there from the cursors on, then what is written, until the caller stops."""
    cursors = {rank: (since or {}).get(rank, 0) for rank in range(ranks)}
    while True:
        quiet = True
        for rank, cursor in cursors.items():
            chunk = read_log(workspace, rank, cursor)
            if chunk.offset != cursor:
                cursors[rank] = chunk.offset
                quiet = False
                yield chunk
        if quiet:
            await asyncio.sleep(PERIOD)
