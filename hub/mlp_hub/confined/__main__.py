"""The process: `python -m mlp_hub.confined CONFINEMENT MODULE ARGUMENT...`, as `mlp_hub.helpers` starts it.

It imports the module, has it load what it needs, gives up what it may do (`rights.py`), and runs it.
"""

from __future__ import annotations

import importlib
import json
import os
import sys

from mlp_hub.confined.rights import give_up
from mlp_hub.helpers import Confinement

_LAZY = (
    "_strptime",
    "encodings.idna",
    "encodings.latin_1",
    "encodings.punycode",
    "stringprep",
    "unicodedata",
)
"""Given: modules that Python itself loads only when they are needed first."""


def main() -> int:
    """Run the module; its status."""
    within = Confinement(**json.loads(sys.argv[1]))
    module = importlib.import_module(sys.argv[2])
    sys.argv = [sys.argv[2], *sys.argv[3:]]
    for name in _LAZY:
        importlib.import_module(name)
    if hasattr(module, "prepare"):
        module.prepare()
    give_up(within, module.shown() if hasattr(module, "shown") else ())
    return int(module.main() or 0)


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    os._exit(status)
