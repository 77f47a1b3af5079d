"""Every page of the panel in light, dark, narrow, and between: it shows its data, nothing is too wide, and axe-core finds nothing.

Who walks through them loads the panel once, as people do; `test_pages_in_chinese.py` opens each by its address.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from support.front.axe import assert_accessible_light_and_dark
from support.front.browser import shot, two_frames
from support.front.pages import LOOKS, PAGES, WINDOWS, Pages, Tabs, cut_off, fits, restyle, story
from support.front.service import FrontService
from support.ports import PAGES as PORTS
from support.ports import free_port

# on a phone each row of a table is a card: nothing is cut off, no word is broken, and no title stands alone;
# a word may be broken at its dashes; one that is wider than the page has to be broken somewhere
FAULTS = """() => {
  const out = [];
  for (const box of document.querySelectorAll('.mlp-table-box'))
    if (box.scrollWidth > box.clientWidth + 1) out.push(`wider than the page: ${box.querySelector('caption').textContent}`);
  for (const cell of document.querySelectorAll('.mlp-table td, .mlp-table th')) {
    if (!cell.offsetParent) continue;
    if (cell.matches('.mlp-stack td.mlp-col-num') && !cell.textContent.trim() && !cell.querySelector('button, input, a'))
      out.push(`a title without a value: ${cell.dataset.title}`);
    const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    for (let text = texts.nextNode(); text; text = texts.nextNode()) {
      if (text.parentElement.closest('.mlp-hidden, code')) continue;
      for (const word of text.data.matchAll(/[\\p{L}\\p{N}.:_@]{2,}/gu)) {
        if (word[0].length > 24) continue;
        const range = document.createRange();
        range.setStart(text, word.index);
        range.setEnd(text, word.index + word[0].length);
        const lines = new Set([...range.getClientRects()].filter((r) => r.width > 0).map((r) => Math.round(r.top)));
        if (lines.size > 1) out.push(`broken: ${word[0]}`);
      }
    }
  }
  return out;
}"""
GO = """(path) => { history.pushState(null, "", path); dispatchEvent(new PopStateEvent("popstate")); }"""


@pytest.fixture(scope="module")
def walk(tabs: Tabs) -> Iterator[tuple[Pages, Page]]:
    """The panel of a job's owner who is an admin, at its first page."""
    service = FrontService(free_port(PORTS))
    service.start()
    story(service)
    pages = Pages(tabs, service)
    yield pages, pages.panel("admin/nothing")
    tabs.forget()
    service.stop()


@pytest.fixture
def page(walk: tuple[Pages, Page]) -> Iterator[Page]:
    pages, page = walk
    pages.complaints.clear()
    restyle(page)
    yield page
    page.evaluate("0")  # what it complained of until now comes first
    assert pages.unexpected() == []


@pytest.mark.parametrize("name", PAGES)
def test_a_page_shows_its_data_fits_and_has_no_violation_in_every_look(page: Page, name: str) -> None:
    path, text = PAGES[name]
    page.evaluate(GO, f"/services/mlp/{path}")
    for look, (dark, width) in LOOKS.items():
        restyle(page, dark=dark, width=width)
        expect(page.locator("main")).to_contain_text(text)
        expect(page.locator(".mlp-loading")).to_have_count(0)
        two_frames(page)
        shot(page, f"panel-{name}-{look}", full=True)
        assert fits(page), look
    assert page.evaluate(FAULTS) == []
    for width in WINDOWS:
        restyle(page, width=width)
        two_frames(page)
        shot(page, f"panel-{name}-{width}", full=True)
        assert fits(page), width
        assert cut_off(page) == [], width
    restyle(page)
    assert_accessible_light_and_dark(page)
