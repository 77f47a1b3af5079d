"""Lines on standard error, which may be closed or full."""

from __future__ import annotations

import contextlib
import sys


def write(sentence: str) -> None:
    """Write a line to standard error, which may be closed or full."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(sentence + "\n")
