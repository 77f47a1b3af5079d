"""Slices of the test files: CI runs one slice for each commit, so that a run takes minutes and not an hour."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple


class Slice(NamedTuple):
    """Slice `number` of `of`, from 1 on."""

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Slice:
        """Read `2/4`. Raises ValueError."""
        number, of = (int(part) for part in text.split("/"))
        if not 1 <= number <= of:
            raise ValueError(f"{text}: the number of a slice is one of 1 to {of}")
        return cls(number, of)

    def has(self, path: Path, slowest: Sequence[str]) -> bool:
        """Whether a file is of this slice. `slowest`: stems of files, the longest first, which are dealt out evenly."""
        if path.stem not in slowest:
            return zlib.crc32(path.stem.encode()) % self.of == self.number - 1
        round_, place = divmod(slowest.index(path.stem), self.of)
        # every other round backwards, so that nobody has the longest of each
        return (place if round_ % 2 == 0 else self.of - 1 - place) == self.number - 1
