"""A real Chromium for tests: pages, logins, JupyterLab, screenshots kept in build/screenshots."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Browser, BrowserContext, Error, Locator, Page, expect, sync_playwright

from live_hub import PASSWORD, LiveHub, wait_for
from mlp_hub.proxy import node

SHOTS = Path(__file__).resolve().parents[2] / "build" / "screenshots"
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SLOW = 90_000
"""Milliseconds that a page may take on a small machine with much else to do."""


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """Start the system's Chromium.

    Until it is left, Playwright's event loop counts as running in this thread: `asyncio.run` of any test that comes
    in between fails. So a fixture lasts no longer than its file.
    """
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert path, "no Chromium here: apt install chromium"
    os.environ["PLAYWRIGHT_NODEJS_PATH"] = node()  # playwright's own needs libraries that small systems lack
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        expect.set_options(timeout=SLOW)
        try:
            yield browser
        finally:
            browser.close()


def new_context(
    browser: Browser, *, dark: bool = False, width: int = 1280, height: int = 900
) -> BrowserContext:
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if dark else "light",
        reduced_motion="reduce",
    )
    context.set_default_timeout(SLOW)
    return context


def shot(page: Page, name: str, *, full: bool = False) -> Path:
    """Keep a screenshot as output of the test run."""
    SHOTS.mkdir(parents=True, exist_ok=True)
    path = SHOTS / f"{name}.png"
    page.screenshot(path=str(path), full_page=full)
    return path


def log_in(page: Page, hub: LiveHub, user: str, password: str = PASSWORD) -> None:
    """Log in through the hub's own form."""
    page.goto(f"{hub.url}/hub/login")
    page.locator("#username_input").fill(user)
    page.locator("#password_input").fill(password)
    page.locator("#login_submit").click()
    page.wait_for_url(lambda url: "/hub/login" not in url)


def open_lab(page: Page, hub: LiveHub, user: str, path: str = "") -> None:
    """Start the user's notebook server unless it runs, and open JupyterLab with a file."""
    page.goto(f"{hub.url}/hub/spawn/{user}")
    if "/hub/spawn" in page.url and page.locator("#spawn_form").count():
        page.locator("#spawn_form button[type=submit]").click()
    page.wait_for_url(f"**/user/{user}/**")
    page.goto(f"{hub.url}/user/{user}/lab{f'/tree/{path}' if path else ''}")
    page.locator("#jp-main-dock-panel").wait_for()


def wait_idle(page: Page) -> None:
    """Wait until the notebook's kernel is ready."""
    page.locator("#jp-main-statusbar").get_by_text("| Idle").wait_for()


def bring_into_view(locator: Locator) -> None:
    """Scroll to an element, again when it was replaced meanwhile (a monitor by its final picture)."""

    def scrolled() -> bool:
        try:
            locator.scroll_into_view_if_needed()
        except Error as error:
            if "not attached" in str(error):
                return False
            raise
        return True

    wait_for(scrolled, 30, 0.2, "for the element to stay while it is scrolled to")


def run_cell(page: Page, marker: str) -> None:
    """Run the first code cell of the open notebook that contains the text, and see that it was taken."""
    cell = page.locator(".jp-Notebook .jp-CodeCell").filter(has_text=marker).first
    prompt = cell.locator(".jp-InputPrompt").first
    bring_into_view(cell)
    before = prompt.inner_text()

    def taken() -> bool:
        # the notebook draws only what is in view and may move a cell away under the pointer
        cell.locator(".jp-InputArea-editor .cm-line").first.click()
        page.keyboard.press("Control+Enter")
        page.wait_for_timeout(1500)
        return prompt.inner_text() != before

    wait_for(taken, 30, 0.5, f"for the cell with {marker!r} to run")
