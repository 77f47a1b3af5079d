"""Pages of the front end in a browser, against its stand-in service."""

from __future__ import annotations

import re

from playwright.sync_api import Browser, Page, expect

from support.front.browser import SLOW
from support.front.service import FrontService
from support.front.shapes import attempt

LOOKS = {"light": (False, 1280), "dark": (True, 1280), "narrow": (False, 420)}
"""Dark or not, and the width of the window."""
WINDOWS = (1200, 1000, 800)
"""Widths of windows that stand beside others on a screen."""
PAGES = {
    "jobs": ("", "mnist-tf"),
    "job": ("jobs/ann/digits", "Curves"),
    "runs": ("runs", "run 3"),
    "compare": ("compare/ann/digits@1,digits@3", "Packages that differ"),
    "sweeps": ("sweeps", "search"),
    "sweep": ("sweeps/ann/search@1", "Trials, the best first"),
    "datasets": ("datasets", "pets"),
    "dataset": ("datasets/ann/pets", "labels.csv"),
    "models": ("models", "digits@2"),
    "model": ("models/ann/digits@2", "model.safetensors"),
    "environments": ("environments", "pandas 3.0.2"),
    "environment": ("environments/default/vision", "How it was made"),
    "apps": ("apps", "digits-app"),
    "app": ("app/ann/digits-app", "How to ask it"),
    "app-of-another": ("app/bob/line", "an app of bob"),
    "quota": ("quota", "notebook of bob"),
    "usage": ("usage", "core-hours"),
    "usage-of-team": ("tenants/red/usage", "Report of the month"),
    "usage-of-all": ("admin/usage", "Held by nobody"),
    "over-time": ("admin/over-time", "Waits of admitted jobs"),
    "over-time-of-team": ("tenants/red/over-time", "Waiting jobs by reason"),
    "alerts": ("admin/alerts", "The disk of node node-1 is nearly full"),
    "alerts-of-team": ("tenants/red/alerts", "Team red holds more than its quota"),
    "me": ("me", "nightly"),
    "overview": ("admin", "Waiting work and reasons"),
    "tenants": ("admin/tenants", "blue"),
    "tenant": ("admin/tenants/red", "Quota in use"),
    "tenant-people": ("admin/tenants/red#people", "Members"),
    "tenant-settings": ("admin/tenants/red#settings", "Book a window"),
    "tenant-log": ("admin/tenants/red#log", "Changes"),
    "team-runs": ("tenants/red/runs", "Runs of red"),
    "requests": ("admin/requests", "the reading of digits"),
    "tenant-booked": ("admin/tenants/teal", "Guarantee lowered to 50 % since"),
    "new-tenant": ("admin/tenants/new", "Create team"),
    "users": ("admin/users", "Waits for approval"),
    "user": ("admin/users/ann", "Newest jobs"),
    "queue": ("admin/queue", "red may use 4 cpu"),
    "all-runs": ("admin/runs", "run 3"),
    "nodes": ("admin/nodes", "node-2"),
    "what-if": ("admin/what-if", "Nothing was run yet"),
    "audit": ("admin/audit", "tenant.update"),
    "nothing": ("admin/nothing", "This page does not exist"),
}
"""The panel's pages: where each is, and what it shows of the stand-in's data."""
CUT_OFF = """() => {
  const out = [], bars = [...document.querySelectorAll('.mlp-top a, .mlp-top button, .mlp-top select')];
  const seen = bars.map((e) => [e, e.getBoundingClientRect()]);
  for (const [e, box] of seen) {
    let [left, right] = [0, document.documentElement.clientWidth];
    for (let around = e.parentElement; around; around = around.parentElement) {
      if (getComputedStyle(around).overflowX === 'visible') continue;
      const edges = around.getBoundingClientRect();
      [left, right] = [Math.max(left, edges.left), Math.min(right, edges.right)];
    }
    const name = e.getAttribute('aria-label') ?? e.textContent;
    if (box.left < left - 1 || box.right > right + 1) out.push(name);
    for (const [other, its] of seen)
      if (other !== e && its.left < box.right - 1 && box.left < its.right - 1 && its.top < box.bottom - 1 && box.top < its.bottom - 1)
        out.push(`${name} lies on ${other.textContent}`);
  }
  return out;
}"""
STILL = "window.setInterval = () => 0;"


class Tabs:
    """The contexts of one browser, one for each language, each with a tab that stays.

    To begin a process for each page costs more than the page; a process ends with the last tab of its site.
    """

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._kept: dict[str, Page] = {}

    def open(self, language: str, front: FrontService) -> Page:
        """Return a new empty tab."""
        if language not in self._kept:
            context = self._browser.new_context(locale=language, reduced_motion="reduce")
            context.set_default_timeout(SLOW)
            expect.set_options(timeout=SLOW)
            self._kept[language] = context.new_page()
            self._kept[language].goto(f"{front.url}/hub/home")
        return self._kept[language].context.new_page()

    def forget(self) -> None:
        """Close all tabs but those that stay. What pages stored is of their port; cookies are of all ports."""
        for kept in self._kept.values():
            for page in kept.context.pages:
                if page is not kept:
                    page.close()
            kept.context.clear_cookies()


class Pages:
    """Opens pages and notes what their consoles complain of."""

    def __init__(self, tabs: Tabs, front: FrontService) -> None:
        self.tabs, self.front = tabs, front
        self.still = False
        """Whether pages ask nothing again by themselves, so that what they show new has another cause."""
        self.complaints: list[str] = []

    def open(
        self, path: str, *, dark: bool = False, width: int = 1280, height: int = 860, language: str = "en-US"
    ) -> Page:
        page = self.tabs.open(language, self.front)
        restyle(page, dark=dark, width=width, height=height)
        if self.still:
            page.add_init_script(STILL)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on(
            "console", lambda m: self.complaints.append(m.text) if m.type in {"error", "warning"} else None
        )
        page.goto(f"{self.front.url}{path}")
        return page

    def panel(
        self, path: str = "", *, dark: bool = False, width: int = 1280, language: str = "en-US"
    ) -> Page:
        """Open a page of the panel, and wait until all of it is loaded: what comes later moves what is clicked on from under the pointer."""
        page = self.open(f"/services/mlp/{path}", dark=dark, width=width, language=language)
        if not self.front.gates:  # else a test wants to see it load
            expect(page.locator(".mlp-loading")).to_have_count(0)
        return page

    def widget(
        self,
        name: str = "digits",
        *,
        dark: bool = False,
        width: int = 1000,
        height: int = 900,
        language: str = "en",
        kind: str = "job",
    ) -> Page:
        theme = "dark" if dark else "light"
        return self.open(
            f"/harness/widget.html?name={name}&theme={theme}&lang={language}&kind={kind}",
            dark=dark,
            width=width,
            height=height,
        )

    def unexpected(self) -> list[str]:
        """What was complained of, but for the statuses that the test itself provoked."""
        return [
            c
            for c in self.complaints
            if not re.search(r"status of (401|403|404|503|507)|WebSocket connection to", c)
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
    way = (
        ("queued", 0.0),
        ("admitted", 2.0),
        ("created", 0.4),
        ("bound", 0.1),
        ("pulled", 3.2),
        ("started", 0.8),
    )
    data.keep({"type": "attempts", "attempts": [attempt(1, -127, *way, ("first-line", 1.1))]})


def restyle(page: Page, *, dark: bool = False, width: int = 1280, height: int = 860) -> None:
    """Give a page other colours and another size."""
    page.set_viewport_size({"width": width, "height": height})
    page.emulate_media(color_scheme="dark" if dark else "light")


def fits(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= window.innerWidth + 1"))


def cut_off(page: Page) -> list[str]:
    """Return what of the navigation bar is not all there."""
    found: list[str] = page.evaluate(CUT_OFF)
    return found
