"""The sample notebooks in users' homes.

The hub may be root and the home belongs to its user, who may have planted anything in it. So nothing below the
home is ever followed: files are made directly in it, by directory descriptor, where no file of any kind is yet.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable
from pathlib import Path

from mlp_hub import sandbox
from mlp_language.catalogue import DEFAULT
from mlp_spawner.samples import in_language


def place_samples(
    home: Path, samples: Iterable[Path], placed_file: Path, uid: int | None, language: str = DEFAULT
) -> list[str]:
    """Copy samples that are new for the home into it, in its user's language; return the names of those.

    Existing files stay, whatever they are. Samples that the user deleted stay away: `placed_file`,
    outside the home, remembers them. An empty home is a new one, for example after a change to pods,
    whose homes are elsewhere.
    """
    try:
        placed = {str(name) for name in json.loads(placed_file.read_bytes())}
    except (OSError, ValueError, TypeError):  # also what a power cut left of it
        placed = set()
    new: list[str] = []
    with sandbox.DirHandle.at(home) as directory:
        with directory.entries() as held:
            if next(held, None) is None:
                placed = set()
        for sample in sorted(samples):
            if sample.name in placed:
                continue
            placed.add(sample.name)
            with contextlib.suppress(FileExistsError), directory.create(sample.name, 0o644, uid) as out:
                out.write(in_language(sample.read_bytes(), language))
                new.append(sample.name)
    placed_file.parent.mkdir(parents=True, exist_ok=True)
    fresh = placed_file.with_suffix(".new")
    fresh.write_text(json.dumps(sorted(placed)))
    fresh.replace(placed_file)
    return new
