"""The program that fetches and builds packages, and where it finds them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from mlp_hub.executors.local import package_index

UV = Path(sys.executable).with_name("uv")


def with_index() -> dict[str, str]:
    """Return this process's variables with those of the index that pip is configured with: uv does not read pip's files."""
    files = package_index.configs_of(os.environ)
    return {**os.environ, **package_index.index_of("", os.environ, files).variables}
