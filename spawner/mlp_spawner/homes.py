"""The sample notebooks in users' homes.

The hub may be root and the home belongs to its user, who may have planted anything in it. So nothing below the
home is ever followed: files are made directly in it, by directory descriptor, where no file of any kind is yet.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def place_samples(home: Path, samples: Iterable[Path], placed_file: Path, uid: int | None) -> list[str]:
    """Copy samples into the home that were never placed there before; return the names of those placed now.

    What is there stays, whatever it is. What its user deleted stays away: `placed_file`, outside the home,
    remembers.
    """
    try:
        placed = set(json.loads(placed_file.read_text()))
    except (OSError, ValueError):
        placed = set()
    new: list[str] = []
    directory = os.open(home, _DIRECTORY)
    try:
        for sample in sorted(samples):
            if sample.name in placed:
                continue
            placed.add(sample.name)
            try:
                fd = os.open(sample.name, _NEW_FILE, 0o644, dir_fd=directory)
            except FileExistsError:
                continue
            with os.fdopen(fd, "wb") as out:
                if uid is not None:
                    os.fchown(out.fileno(), uid, uid)
                out.write(sample.read_bytes())
            new.append(sample.name)
    finally:
        os.close(directory)
    placed_file.parent.mkdir(parents=True, exist_ok=True)
    fresh = placed_file.with_suffix(".new")
    fresh.write_text(json.dumps(sorted(placed)))
    fresh.replace(placed_file)
    return new
