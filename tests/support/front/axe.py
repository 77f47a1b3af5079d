"""Accessibility faults of a page, found by axe-core."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import pytest
from playwright.sync_api import Page

from support.front.browser import two_frames

SOURCE = Path(__file__).resolve().parents[3] / "widgets" / "node_modules" / "axe-core" / "axe.min.js"
# every rule, experimental ones too, but the strictest level of contrast and what axe itself has given up
RUN = """async (only) => {
  const out = ["wcag2aaa", "deprecated"];
  const ids = axe.getRules(only ? [only] : undefined).filter((r) => !r.tags.some((t) => out.includes(t))).map((r) => r.ruleId);
  const found = await axe.run(document, { runOnly: { type: "rule", values: ids }, resultTypes: ["violations"] });
  return found.violations.flatMap((v) => v.nodes.map((n) => `${v.id}: ${n.target} ${n.html.slice(0, 160)} ${n.failureSummary}`));
}"""


@lru_cache
def source() -> str:
    """Return axe-core's script; the test is skipped where the front end's tools are not installed."""
    if not SOURCE.is_file():
        pytest.skip("axe-core is not installed: make install")
    return SOURCE.read_text()


def violations(page: Page, only: str = "") -> list[str]:
    """Return what axe-core finds in the page as it is now, a line for each element; `only` by rules with this tag."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(source())
    # the bar at the top covers whatever the page was scrolled to; at the top it covers nothing
    page.evaluate("window.scrollTo(0, 0)")
    found: list[str] = page.evaluate(RUN, only)
    return [line.replace("\n", " ") for line in found]


def assert_accessible(page: Page) -> None:
    """See that axe-core finds nothing in the page as it is now."""
    found = violations(page)
    assert not found, "\n".join(found)


def violations_light_and_dark(page: Page) -> list[str]:
    """Return what axe-core finds in a light page as it is now, and in its colours for the night."""
    found = violations(page)
    page.emulate_media(color_scheme="dark")
    two_frames(page)
    assert page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    found += [f"dark: {line}" for line in violations(page, "cat.color")]  # the page is the same but for these
    page.emulate_media(color_scheme="light")
    return found


def assert_accessible_light_and_dark(page: Page) -> None:
    """See that axe-core finds nothing in a light page as it is now, nor in its colours for the night."""
    found = violations_light_and_dark(page)
    assert not found, "\n".join(found)
