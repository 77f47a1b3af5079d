"""Process, run by `mlp_hub.confined` with `one` or `all` and a directory's descriptor: finds formats.

out:  a list, as JSON, of the format and path of each; with `one` of the directory itself
"""

from __future__ import annotations

import gc
import os
import sys

import msgspec

from mlp_hub.executors.shared_volume.models.formats import models_in, recognise
from mlp_hub.safe_path import DirHandle


def main() -> int:
    """Look, and say it."""
    gc.disable()  # it would go through all that a header says, again and again
    with DirHandle(int(sys.argv[2])) as top:
        found = [("", recognise(top))] if sys.argv[1] == "one" else models_in(top)
    said = [
        {
            "at": at, "name": one.name, "main": one.main, "pickled": one.pickled, "facts": dict(one.facts),
            "seen": [_plain(name) for name in one.seen], "below": list(one.below),
        }
        for at, one in found
    ]  # fmt: skip
    sys.stdout.buffer.write(msgspec.json.encode(said))
    sys.stdout.buffer.flush()
    return 0


def _plain(name: str) -> str:
    """Return a name that can be written, whatever its bytes are."""
    return os.fsencode(name).decode(errors="replace")
