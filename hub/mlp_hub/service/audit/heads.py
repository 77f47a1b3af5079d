"""Heads of the audit log's chain in a file that only grows: with them, a removed end of the log is noticed.

Each line is a JSON object. A head has `seq`, `entry`, `hash` and `time` of a checkpoint. A cut is the same with `"cut": true`:
from its time on, retention removes the entries up to that checkpoint.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

from mlp_hub.domain.audit_chain import HASH_BYTES, ChainLink
from mlp_hub.service.audit.receivers import append_lines

LONGEST = 1000
"""Safety: bytes of a line; a longer one is not a head."""
TAIL = 4 * LONGEST
"""Safety: bytes at the end of the file that are read to find the last head."""
LARGEST = 2**63
"""Given: numbers of links and entries are below it: a column holds no other."""


@dataclass(frozen=True, slots=True)
class PublishedHead:
    """Checkpoint that was written outside of the database; `cut`: the entries up to it are removed by retention."""

    seq: int
    entry: int
    hash: bytes
    time: float
    cut: bool = False

    def line(self) -> bytes:
        """Return its line in the file."""
        fields: dict[str, object] = {
            "seq": self.seq,
            "entry": self.entry,
            "hash": self.hash.hex(),
            "time": self.time,
        }
        return json.dumps({**fields, "cut": True} if self.cut else fields).encode() + b"\n"

    @classmethod
    def of(cls, link: ChainLink, *, cut: bool = False) -> PublishedHead:
        """Return the head of a checkpoint."""
        return cls(link.seq, link.entry, link.hash, link.time or 0.0, cut)


@dataclass(frozen=True, slots=True)
class HeadsRead:
    """Content of a file of heads, in its order; `bad` are the numbers of lines that are not heads, a few of them."""

    heads: tuple[PublishedHead, ...]
    bad: tuple[int, ...] = ()


def parse_head(line: bytes) -> PublishedHead | None:
    """Return the head of a line; None where it is none, as after a power cut."""
    if len(line) > LONGEST:
        return None
    try:
        found = json.loads(line)
        seq, entry, time = found["seq"], found["entry"], found["time"]
        made = bytes.fromhex(found["hash"])
        whole = all(type(n) is int and 0 <= n < LARGEST for n in (seq, entry))
        if not whole or type(time) not in (int, float) or not isfinite(time) or len(made) != HASH_BYTES:
            return None
        return PublishedHead(seq, entry, made, float(time), found.get("cut") is True)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError, AttributeError):
        return None


def read_heads(path: Path, most_bad: int = 20) -> HeadsRead:
    """Read a file of heads. Raises OSError."""
    heads: list[PublishedHead] = []
    bad: list[int] = []
    with path.open("rb") as file:
        for number, line in enumerate(_lines(file), 1):
            found = parse_head(line)
            if found is not None:
                heads.append(found)
            elif len(bad) < most_bad and line.strip():
                bad.append(number)
    return HeadsRead(tuple(heads), tuple(bad))


def _lines(file: object) -> Iterator[bytes]:
    """Yield the lines; of one without an end, a part at a time."""
    while line := file.readline(LONGEST + 2):  # type: ignore[attr-defined]
        yield line


def last_head(path: Path) -> PublishedHead | None:
    """Return the last head of the file; None where there is none. Raises OSError."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL))
            lines = file.read(TAIL).splitlines()
    except FileNotFoundError:
        return None
    return next((found for line in reversed(lines) if (found := parse_head(line)) is not None), None)


def append_head(path: Path, head: PublishedHead) -> None:
    """Append a line; it is on disk when this returns. Raises OSError."""
    append_lines(path, [head.line().strip()])
