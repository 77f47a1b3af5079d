"""One HTTP side for all tests of a module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from api_rig import ApiRig, started


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiRig]:
    """Give ann's running job `digits` in tenant red (admin rita), and bob in blue (admin blue)."""
    root: Path = tmp_path_factory.mktemp("api")
    yield from started(root)
