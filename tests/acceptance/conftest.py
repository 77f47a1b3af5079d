"""One hub and one browser for the whole story."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from browser import chromium
from live_hub import LiveHub, live_hub


@pytest.fixture(scope="session")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveHub]:
    with live_hub(tmp_path_factory.mktemp("story") / "home") as hub:
        yield hub


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for a file of tests, not for the whole run (see `chromium`)."""
    with chromium() as browser:
        yield browser
