"""Spool files in a job's directory, as its processes write them.

A job's directory is written by its user's programs, so nothing in it is trusted: links are not followed, only
plain files are read, and sizes are bounded.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, MutableMapping
from io import BufferedReader
from itertools import islice
from json import JSONDecodeError, loads
from pathlib import Path

from mlp_hub.domain.jobs.points import SpooledPoint, values_of
from mlp_hub.executors.workspace import SpoolLot
from mlp_hub.safe_path import DirHandle

MOST_FILES = 20_000
"""Safety: spool files of one job that are read: its program writes there what it likes."""
MOST_NAMES = 100_000
"""Safety: names of the spool directory that are looked at: its program makes there what it likes."""
MOST_BYTES = 512 * 2**20
"""Safety: bytes of all spool files of a job together: bounds what reading them takes."""
MOST_LINE = 256 * 1024
"""Safety: bytes of one line in a spool file: bounds memory."""
MOST_MISSING = 10**12
"""Safety: points that a source can report as lost: its program writes there what it likes."""
LOT = 100
"""Tuning: sources in a transaction: with one each, a program with thousands would end late."""
LOT_POINTS = 5000
"""Tuning: points in a transaction, of all its sources together: others write between two."""
LOT_VALUES = 50_000
"""Safety: values in a transaction, of all its points together, about: bounds memory."""
_SOURCE = re.compile(r"([0-9]{1,6}\.[0-9]{1,6}\.[0-9a-z]{1,32})\.jsonl", re.ASCII)


def sources(workspace: Path) -> list[str]:
    """List the reporting processes that left a spool file."""
    directory = _metrics(workspace)
    if directory is None:
        return []
    # never a list of all names: a program can make millions
    with directory, directory.entries() as entries:
        found = [m[1] for entry in islice(entries, MOST_NAMES) if (m := _SOURCE.fullmatch(entry.name))]
    return sorted(found)[:MOST_FILES]


class ByteAllowance:
    """Bytes of a job's spool files that may still be read."""

    def __init__(self, left: int = MOST_BYTES) -> None:
        self.left = left


def read(
    workspace: Path,
    source: str,
    after: int,
    size: int = LOT_POINTS,
    *,
    room: ByteAllowance | None = None,
    lost: MutableMapping[str, int | None] | None = None,
) -> Iterator[list[SpooledPoint]]:
    """Yield the source's points numbered above `after`, in order, in lists of `size` at most, and of `LOT_VALUES` values.

    Lines that cannot be read (the process was killed while it wrote) are left out. Reading ends when the room
    does, which the files of a job share. `lost` gets the number of points that the source could not write, if
    any, and None for a source that had no room even for that number.
    """
    file = _open(workspace, f"{source}.jsonl")
    if file is None:
        return
    with file:
        batch: list[SpooledPoint] = []
        last, values = after, 0
        if lost is not None and not os.fstat(file.fileno()).st_size:
            lost[source] = None
        for number, line in enumerate(_lines(file, room or ByteAllowance())):
            entry = _entry(line)
            if not number and lost is not None and (missing := _missing(entry)):
                lost[source] = missing
            point = _point(entry)
            if point is not None and point.n > last:
                last = point.n
                batch.append(point)
                values += len(point.v)
                if len(batch) >= size or values >= LOT_VALUES:
                    yield batch
                    batch, values = [], 0
        if batch:
            yield batch


def read_all(
    workspace: Path,
    after: Mapping[str, int],
    room: ByteAllowance,
    lost: MutableMapping[str, int | None] | None = None,
) -> Iterator[SpoolLot]:
    """Yield what all sources left above their numbers in `after`, as much at a time as is stored at once; `lost` as in `read`."""
    lot: SpoolLot = []
    count = values = 0
    for source in sources(workspace):
        for points in read(workspace, source, after.get(source, 0), room=room, lost=lost):
            more = sum(len(point.v) for point in points)
            if lot and (len(lot) >= LOT or count + len(points) > LOT_POINTS or values + more > LOT_VALUES):
                yield lot
                lot, count, values = [], 0, 0
            lot.append((source, points))
            count += len(points)
            values += more
    if lot:
        yield lot


def _entry(line: bytes) -> dict[str, object]:
    """Return what a line holds; nothing where it cannot be read."""
    try:
        entry = loads(line)  # takes NaN and Infinity, which programs do report
    except (JSONDecodeError, UnicodeDecodeError, RecursionError, ValueError):
        return {}
    return entry if isinstance(entry, dict) else {}


def _missing(head: dict[str, object]) -> int:
    """Return the number of points that could not be written, which the first line has; 0 where it has none."""
    lost = head.get("lost")
    return min(lost, MOST_MISSING) if isinstance(lost, int) and lost > 0 else 0


def _point(entry: dict[str, object]) -> SpooledPoint | None:
    n, t, v = entry.get("n"), entry.get("t"), entry.get("v")
    if (
        not isinstance(n, int)
        or isinstance(n, bool)
        or not isinstance(t, int | float)
        or not isinstance(v, dict)
    ):
        return None
    try:
        return SpooledPoint(n, float(t), values_of(v))
    except OverflowError:
        return None


def _lines(file: BufferedReader, room: ByteAllowance) -> Iterator[bytes]:
    whole = True
    while room.left > 0 and (line := file.readline(MOST_LINE)):
        room.left -= len(line)
        ended = line.endswith(b"\n")
        if whole and ended:
            yield line
        whole = ended  # the rest of a line that was too long is passed over


def _metrics(workspace: Path) -> DirHandle | None:
    try:
        with DirHandle.at(workspace) as top:
            return top.inside("metrics")
    except OSError:
        return None


def _open(workspace: Path, name: str) -> BufferedReader | None:
    directory = _metrics(workspace)
    if directory is None:
        return None
    try:
        with directory:
            return directory.read(name)
    except OSError:
        return None
