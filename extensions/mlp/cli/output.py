"""Exit statuses of the command, and its output: text, or JSON."""

from __future__ import annotations

import json
import sys
from typing import Any

DONE, JOB_FAILED, USAGE, REFUSED, UNREACHABLE, INTERRUPTED = 0, 1, 2, 3, 4, 130


def show(thing: Any, *, as_json: bool) -> None:
    """Print what a verb gave."""
    if as_json:
        sys.stdout.write(json.dumps(_data(thing), indent=2, default=str) + "\n")
    elif text := f"{thing!r}":
        sys.stdout.write(text + "\n")


def _data(thing: Any) -> Any:
    if isinstance(thing, list):
        return [_data(item) for item in thing]
    return getattr(thing, "data", thing)
