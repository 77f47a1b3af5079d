"""The version, which `pyproject.toml` has; `make docs` writes it to the other places."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CHART = "helm/mlp-hub/Chart.yaml"
PACKAGES = ("widgets", "hub/mlp_hub/proxy")
_IN_PACKAGE = re.compile(r'^(  "version": )"[^"]*"', re.MULTILINE)
_IN_CHART = re.compile(r"^((?:version|appVersion): ).*$", re.MULTILINE)


def version() -> str:
    """Return the version of this tree."""
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"])


def _chart() -> str:
    return _IN_CHART.sub(rf"\g<1>{version()}", (ROOT / CHART).read_text())


def _package(name: str) -> str:
    return _IN_PACKAGE.sub(rf'\g<1>"{version()}"', (ROOT / name).read_text(), count=1)


def _lock(name: str) -> str:
    said: dict[str, Any] = json.loads((ROOT / name).read_text())
    said["version"] = said["packages"][""]["version"] = version()
    return json.dumps(said, indent=2, ensure_ascii=False) + "\n"


FILES: Mapping[str, Callable[[], str]] = {
    CHART: _chart,
    **{f"{folder}/package.json": partial(_package, f"{folder}/package.json") for folder in PACKAGES},
    **{f"{folder}/package-lock.json": partial(_lock, f"{folder}/package-lock.json") for folder in PACKAGES},
}
"""Other places of the version from the repository's root on, and what makes each."""
