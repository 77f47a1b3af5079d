"""Files of a rank's log: their names, and the format of their records.

The first is `rank-N.log`. A later one is `rank-N.OFFSET+LINES.log`: its offset since the rank's
beginning, and the number of lines between the end of the first file and itself. So the number of
discarded lines can be told.
"""

from __future__ import annotations

import os
import re

_NAME = re.compile(r"rank-(\d+)(?:\.(\d+)(?:\+(\d+))?)?\.log")
_ENDED = re.compile(rb"^.{30} std(?:out|err) F ", re.MULTILINE)


def segments(directory: int, rank: int) -> list[tuple[int, str]]:
    """List (offset, file name) of a rank's segments in order."""
    return all_segments(directory).get(rank, [])


def all_segments(directory: int) -> dict[int, list[tuple[int, str]]]:
    """List the segments of each rank, as `segments` does."""
    found: dict[int, list[tuple[int, str]]] = {}
    for name in os.listdir(directory):
        if match := _NAME.fullmatch(name):
            found.setdefault(int(match[1]), []).append((int(match[2] or 0), name))
    return {rank: sorted(of_rank) for rank, of_rank in found.items()}


def name_of(rank: int, offset: int, lines: int | None) -> str:
    """Return the name of a segment that is not the first."""
    return f"rank-{rank}.{offset}{'' if lines is None else f'+{lines}'}.log"


def lines_between(name: str) -> int | None:
    """Return the number of lines between the first segment and this one; None where it was not counted."""
    match = _NAME.fullmatch(name)
    return int(match[3]) if match and match[3] else None


def ended(records: bytes) -> int:
    """Count the lines that end in whole records."""
    return len(_ENDED.findall(records))
