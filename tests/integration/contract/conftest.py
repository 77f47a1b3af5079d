"""One real hub for what clients of others' making do with it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.hubs.live_hub import LiveHub, live_hub


@pytest.fixture(scope="session")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveHub]:
    home: Path = tmp_path_factory.mktemp("contract") / "home"
    with live_hub(home) as hub:
        for user in ("ann", "bob"):
            hub.add_user(user)
        yield hub
