"""A browser and a stand-in service for the front end."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from browser import chromium
from front_pages import Pages
from front_service import PANEL, WIDGET, FrontService

PORTS = range(25000, 29000)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for a file of tests, not for the whole run (see `chromium`)."""
    if not (PANEL / "panel.js").is_file() or not (WIDGET / "job_monitor.js").is_file():
        pytest.skip("the front end is not built: npm ci && npm run build in widgets/")
    with chromium() as started:
        yield started


@pytest.fixture
def front() -> Iterator[FrontService]:
    service = FrontService(_free_port())
    service.start()
    yield service
    service.stop()


@pytest.fixture
def pages(browser: Browser, front: FrontService) -> Iterator[Pages]:
    made = Pages(browser, front)
    yield made
    for context in made.contexts:
        context.close()
    assert made.unexpected() == []


def _free_port() -> int:
    # any of them: a page of another run that has lost its service must not find this one in its place
    for port in random.sample(PORTS, len(PORTS)):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError(f"no free port in {PORTS}")
