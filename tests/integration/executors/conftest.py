from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from executor_lab import Lab
from mlp_hub.executors.sandbox import capabilities


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    if capabilities().mode is None:
        pytest.skip("no sandbox can be made on this machine")
    lab = Lab(tmp_path)
    yield lab
    lab.close()
    assert lab.leftovers() == []
