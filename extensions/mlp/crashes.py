"""Extension of a job's kernel: a crash in compiled code leaves Python's stack in the job's log."""

from __future__ import annotations

import contextlib
import faulthandler
import sys
from typing import Any


def load_ipython_extension(_: Any) -> None:
    """Write crash stacks to the process's original stderr: output through ipykernel ends with ipykernel."""
    # None: ipykernel left the process its own
    before = getattr(sys.stderr, "_original_stdstream_copy", None)
    with contextlib.suppress(OSError, ValueError):
        faulthandler.enable(file=2 if before is None else before)
