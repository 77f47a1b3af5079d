"""Copies the packages that a hub needs to be attached: `python -m mlp_hub.hub_integration.copying DIRECTORY`.

An init container of the platform's image does this for a hub whose own image lacks them.
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path

PACKAGES = ("mlp_hub", "mlp_language", "mlp_spawner")


def copy(to: Path) -> None:
    """Copy the packages into a directory, over those of an earlier version."""
    for name in PACKAGES:
        found = importlib.util.find_spec(name)
        assert found is not None and found.origin is not None  # noqa: S101, PT018 - this module is in one of them
        target = to / name
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(
            Path(found.origin).parent, target, ignore=shutil.ignore_patterns("__pycache__", "static")
        )


if __name__ == "__main__":
    copy(Path(sys.argv[1]))
