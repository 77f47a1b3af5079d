"""A real Chromium for tests: pages, logins, JupyterLab, screenshots kept in build/screenshots."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import json
import os
import re
import shutil
from asyncio.events import _set_running_loop  # as Playwright does itself
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from playwright.sync_api import (
    Browser,
    BrowserContext,
    Error,
    Locator,
    Page,
    Playwright,
    expect,
    sync_playwright,
)
from playwright.sync_api import TimeoutError as InVain

from mlp_hub.proxy import node
from support.hubs.live_hub import PASSWORD, LiveHub
from support.waiting import PATIENCE_S, wait_for

SHOTS = Path(__file__).resolve().parents[3] / "build" / "screenshots"
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
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""Programs in the order of our choice: the first has no window to draw, and takes a third of the others' work for a page."""
ONE_RENDERER = "--renderer-process-limit=1"
"""Pages of one test share a process, as tabs of one site do: else each new page starts one more."""
SLOW = int(PATIENCE_S * 1000)
"""Milliseconds that a page may take on a small machine with much else to do."""
AGAIN = 10_000
"""Milliseconds after which a key that had no effect is pressed again."""
ASK = """async ([method, path]) => {
  const base = JSON.parse(document.getElementById('jupyter-config-data').textContent).baseUrl;
  const xsrf = document.cookie.match(/(?:^|; )_xsrf=([^;]*)/)[1];
  return (await fetch(base + path, { method, headers: { 'X-XSRFToken': xsrf } })).text();
}"""


class _Kept:
    """The browsers of this process, and Playwright's loop, which stands still while no fixture has one."""

    def __init__(self) -> None:
        self.playwright: Playwright | None = None
        self.loop: asyncio.AbstractEventLoop | None = None
        self.browsers: dict[tuple[str, ...], Browser] = {}
        self.users = 0

    def browser(self, flags: tuple[str, ...]) -> Browser:
        """Return the one with these flags; one that ended is started again."""
        if self.playwright is None:
            os.environ["PLAYWRIGHT_NODEJS_PATH"] = (
                node()
            )  # playwright's own needs libraries that small systems lack
            self.playwright = sync_playwright().start()
            self.loop = asyncio.get_running_loop()
            atexit.register(self.end)
        found = self.browsers.get(flags)
        if found is None or not found.is_connected():
            path = next(filter(None, map(shutil.which, BROWSERS)), None)
            assert path, "no Chromium here: apt install chromium-headless-shell"
            found = self.playwright.chromium.launch(executable_path=path, args=[*FLAGS, *flags])
            self.browsers[flags] = found
        return found

    def forget(self, flags: tuple[str, ...]) -> None:
        """Close the one with these flags."""
        self.browsers.pop(flags).close()

    def end(self) -> None:
        """Close all of them."""
        _set_running_loop(self.loop)
        for each in self.browsers.values():
            each.close()
        if self.playwright is not None:
            self.playwright.stop()


_KEPT = _Kept()


@contextlib.contextmanager
def chromium(*flags: str, keep: bool = False) -> Iterator[Browser]:
    """Hand out the system's Chromium, with more flags than those that it always needs.

    It is started once in a process: a start and its first page cost as much as five pages. At the end its contexts are
    closed, but with `keep` those stay that were made meanwhile. One with flags of a test's own ends with that test.
    Until then Playwright's event loop counts as running in this thread: `asyncio.run` of any test that comes
    in between fails. So a fixture lasts no longer than its file.
    """
    _KEPT.users += 1
    try:
        _set_running_loop(_KEPT.loop)
        browser = _KEPT.browser(flags)
        before = browser.contexts
        expect.set_options(timeout=SLOW)
        try:
            yield browser
        finally:
            if not set(flags) <= {ONE_RENDERER}:
                _KEPT.forget(flags)
            elif not keep:
                for context in browser.contexts:
                    if context not in before:
                        context.close()
    finally:
        _KEPT.users -= 1
        if not _KEPT.users:
            _set_running_loop(None)


def new_context(
    browser: Browser, *, dark: bool = False, width: int = 1280, height: int = 900, **more: bool
) -> BrowserContext:
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if dark else "light",
        reduced_motion="reduce",
        **more,  # type: ignore[arg-type]
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


def sign_up(page: Page, hub: LiveHub, user: str) -> None:
    """Ask for an account, by the hub's own form."""
    page.goto(f"{hub.url}/hub/login")
    page.locator("#mlp-signup-link").click()
    page.locator("#username_input").fill(user)
    page.locator("#password_input").fill(PASSWORD)
    page.locator("#password_confirmation_input").fill(PASSWORD)
    page.locator("#signup_submit").click()
    expect(page.locator("#mlp-signup-done")).to_contain_text("waits for an administrator")


def open_lab(
    page: Page, hub: LiveHub, user: str, path: str = "", *, before: Callable[[], None] | None = None
) -> None:
    """Start the user's notebook server unless it runs, and open JupyterLab with a file; `before` is called in between."""
    # what JupyterLab says when an answer took too long lies above all else; it tries again by itself
    late = page.get_by_role("dialog").filter(has_text="Server unavailable or unreachable")
    page.add_locator_handler(late, lambda: late.get_by_role("button", name="Dismiss").click())
    reach_server(page, hub, user)
    if before is not None:
        before()
    page.goto(f"{hub.notebooks(user)}/user/{user}/lab{f'/tree/{path}' if path else ''}")
    page.locator("#jp-main-dock-panel").wait_for()


def reach_server(page: Page, hub: LiveHub, user: str) -> None:
    """Start the user's notebook server unless it runs; the page is there, and has loaded nothing yet of what it will leave at once."""
    page.goto(f"{hub.url}/hub/spawn/{user}", wait_until="commit")
    if "/hub/spawn" in page.url:
        page.wait_for_load_state()
        if page.locator("#spawn_form").count():
            page.locator("#spawn_form button[type=submit]").click()
    page.wait_for_function(  # a pod may come late, and the page tells how far it is
        "(path) => location.pathname.includes(path) || document.querySelector('#progress-bar.bg-danger')",
        arg=f"/user/{user}/",
        timeout=10 * SLOW,
    )
    if f"/user/{user}/" not in page.url:
        raise AssertionError(
            f"the server of {user} did not start: {page.locator('#progress-log').inner_text()}"
        )


def wait_idle(page: Page) -> None:
    """Wait until the notebook's kernel is ready."""
    page.locator("#jp-main-statusbar").get_by_text("| Idle").wait_for(timeout=10 * SLOW)


def ask_server(page: Page, method: str, path: str) -> Any:
    """Ask the notebook server that a page is of, as the page itself does."""
    answer = page.evaluate(ASK, [method, path])
    return json.loads(answer) if answer else None


def has_kernel(page: Page) -> bool:
    """Tell whether the open notebook is connected with a kernel; a cell that is run before is only emptied.

    A socket that goes away before it is open is counted by the server as a connection less: who leaves a page waits for it.
    """
    shown = unquote(urlsplit(page.url).path)
    sessions = ask_server(page, "GET", "api/sessions")
    return any(s["kernel"]["connections"] > 0 and shown.endswith(f"/{s['path']}") for s in sessions)


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


def look_at(monitor: Locator) -> None:
    """Scroll to a monitor and wait for its curves: those out of view are drawn when they come into it."""
    bring_into_view(monitor)
    expect(monitor.locator("canvas").first).to_be_visible()


def two_frames(page: Page) -> None:
    """Wait until a page has drawn whatever it had to draw already."""
    page.evaluate(
        "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))"
    )


def run_cell(page: Page, marker: str) -> None:
    """Run the first code cell of the open notebook that contains the text, once, and see that it was taken."""
    wait_for(lambda: has_kernel(page), SLOW / 1000, message="for the notebook to have a kernel")
    cell = page.locator(".jp-Notebook .jp-CodeCell").filter(has_text=marker).first
    prompt = cell.locator(".jp-InputPrompt").first
    bring_into_view(cell)
    before = prompt.text_content()

    def chosen() -> bool:
        # the notebook draws only what is in view and may move a cell away under the pointer
        cell.locator(".jp-InputArea-editor .cm-line").first.click()
        return "jp-mod-active" in (cell.get_attribute("class") or "").split()

    wait_for(chosen, message=f"for the cell with {marker!r} to be chosen")
    page.keyboard.press("Control+Enter")
    wait_for(lambda: prompt.text_content() != before, message=f"for the cell with {marker!r} to run")


def save_notebook(page: Page, name: str) -> None:
    """Save the open notebook and wait for the checkpoint, which comes last: while it is saved its file is cut short."""
    last = re.compile(rf"/{re.escape(name)}/checkpoints(\?|$)")

    def saved() -> bool:
        try:
            with page.expect_response(
                lambda r: r.request.method == "POST" and bool(last.search(r.url)), timeout=AGAIN
            ):
                page.keyboard.press("Control+s")
        except InVain:
            return False  # pressed in the moment before Lab was done with the save before: it takes one at a time
        return True

    wait_for(saved, message=f"for {name} to be saved")
