"""Modules beside a notebook, which are found from the first cell on that its reader runs, and no earlier.

The hub starts kernels with `-P`, and IPython leaves the directory out (`ignore_cwd`, which older ones need beside `-P`), so that nothing in a
notebook's directory is loaded by looking at the notebook: it may be shared, and what somebody else put there, by the name of a package, would
run as who opens it.
"""

from __future__ import annotations

import sys
from typing import Any


def load_ipython_extension(shell: Any) -> None:
    """Have them found once a cell is run."""
    if "" not in sys.path:
        shell.events.register("pre_run_cell", _found)


def _found(*_: object) -> None:
    """Put the directory where IPython has it: behind Python's own modules, before what is installed."""
    if "" in sys.path:
        return
    packages = (n for n, path in enumerate(sys.path) if path.endswith(("site-packages", "dist-packages")))
    sys.path.insert(next(packages, len(sys.path)), "")
