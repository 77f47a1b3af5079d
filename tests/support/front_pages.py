"""Pages of the front end in a browser, against its stand-in service."""

from __future__ import annotations

import re

from playwright.sync_api import Browser, BrowserContext, Page, expect

from front_service import FrontService

PATIENCE = 15_000
LOOKS = {"light": (False, 1280), "dark": (True, 1280), "narrow": (False, 420)}
"""Dark or not, and the width of the window."""


class Pages:
    """Opens pages and notes what their consoles complain of."""

    def __init__(self, browser: Browser, front: FrontService) -> None:
        self.browser, self.front = browser, front
        self.complaints: list[str] = []
        self.contexts: list[BrowserContext] = []

    def open(self, path: str, *, dark: bool = False, width: int = 1280, height: int = 860) -> Page:
        context = self.browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
        )
        context.set_default_timeout(PATIENCE)
        expect.set_options(timeout=PATIENCE)
        self.contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on(
            "console", lambda m: self.complaints.append(m.text) if m.type in {"error", "warning"} else None
        )
        page.goto(f"{self.front.url}{path}")
        return page

    def panel(self, path: str = "", *, dark: bool = False, width: int = 1280) -> Page:
        return self.open(f"/services/mlp/{path}", dark=dark, width=width)

    def widget(
        self, name: str = "digits", *, dark: bool = False, width: int = 1000, height: int = 900
    ) -> Page:
        theme = "dark" if dark else "light"
        return self.open(
            f"/harness/widget.html?name={name}&theme={theme}", dark=dark, width=width, height=height
        )

    def unexpected(self) -> list[str]:
        """What was complained of, but for the statuses that the test itself provoked."""
        return [
            c
            for c in self.complaints
            if not re.search(r"status of (401|403|404|503)|WebSocket connection to", c)
        ]


def story(front: FrontService) -> None:
    """A job that has run for a while."""
    data = front.data
    data.history(300)
    for n in range(40):
        data.keep(
            data.log(f"epoch {n:3d}  loss {2.3 / (n + 1):.4f}  accuracy {1 - 0.9 / (n + 1):.4f}", n % 2)
        )
    data.keep(data.log("warning: learning rate is high", 1, "stderr"))
    texts = [
        ("submitted", "by ann"),
        ("admitted", "2 ranks on node-1"),
        ("started", "both ranks run after 0.3 s"),
    ]
    data.keep({"type": "events", "events": [data.event(i, k, m) for i, (k, m) in enumerate(texts, 1)]})


def fits(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= window.innerWidth + 1"))
