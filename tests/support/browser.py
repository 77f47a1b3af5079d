"""A real Chromium for tests: pages, logins, JupyterLab, screenshots kept in build/screenshots."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from live_hub import PASSWORD, LiveHub, wait_for
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

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
    """Start the system's Chromium."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert path, "no Chromium here: apt install chromium"
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
    """Start the user's notebook server and wait for JupyterLab."""
    page.goto(f"{hub.url}/user/{user}/lab{'/tree/' + path if path else ''}")
    if page.locator("#start, #spawn_form, input[type=submit]").count() and "/lab" not in page.url:
        page.locator("#start, input[type=submit]").first.click()
    page.wait_for_url("**/lab**")
    page.locator("#jp-main-dock-panel").wait_for()


def wait_idle(page: Page) -> None:
    """Wait until the notebook's kernel is ready."""
    page.locator("#jp-main-statusbar").get_by_text("| Idle").wait_for()


def run_cell(page: Page, number: int) -> None:
    """Select the cell of that number (from 0) of the open notebook and run it."""
    cell = page.locator(".jp-Notebook .jp-Cell").nth(number)
    cell.scroll_into_view_if_needed()
    cell.click()
    page.keyboard.press("Escape")
    page.keyboard.press("Control+Enter")


def code_cell(page: Page, text: str) -> int:
    """Return the number of the first cell whose source contains the text."""

    def find() -> int | None:
        sources = page.locator(".jp-Notebook .jp-Cell").all_inner_texts()
        found = [i for i, source in enumerate(sources) if text in source]
        return found[0] + 1 if found else None

    return int(wait_for(find, 60, 0.3, f"for a cell with {text!r}")) - 1
