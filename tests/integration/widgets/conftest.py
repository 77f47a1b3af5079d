"""A browser and a stand-in service for the front end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from support.front.browser import chromium
from support.front.pages import Pages, Tabs
from support.front.service import LAB, PANEL, FrontService
from support.ports import PAGES, free_port


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for a file of tests, not for the whole run (see `chromium`)."""
    if not (PANEL / "panel.js").is_file() or not (LAB / "monitor.js").is_file():
        pytest.skip("the front end is not built: npm ci && npm run build in widgets/")
    # pages of one test share a process, as tabs of one site do: else each new page starts one more
    with chromium("--renderer-process-limit=1") as started:
        yield started


@pytest.fixture
def front() -> Iterator[FrontService]:
    service = FrontService(free_port(PAGES))
    service.start()
    yield service
    service.stop()


@pytest.fixture(scope="module")
def tabs(browser: Browser) -> Tabs:
    return Tabs(browser)


@pytest.fixture
def pages(tabs: Tabs, front: FrontService) -> Iterator[Pages]:
    made = Pages(tabs, front)
    yield made
    tabs.forget()
    assert made.unexpected() == []
