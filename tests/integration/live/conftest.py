"""One hub for all tests of this folder; a test that kills parts of it leaves it whole again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.hubs.live_hub import LiveHub, live_hub


@pytest.fixture(scope="session")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveHub]:
    home: Path = tmp_path_factory.mktemp("hub") / "home"
    with live_hub(home) as hub:
        for user in ("ann", "bob"):
            hub.add_user(user)
        yield hub
