"""On a phone each row of a table is a card: nothing is cut off, no word is broken, and no title stands alone."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from browser import shot
from front_pages import PAGES, Pages, fits, story
from front_service import FrontService

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


@pytest.mark.parametrize("name", PAGES)
def test_a_row_is_a_card(pages: Pages, front: FrontService, name: str) -> None:
    story(front)
    path, text = PAGES[name]
    page = pages.panel(path, width=420)
    expect(page.locator("main")).to_contain_text(text)
    expect(page.locator(".mlp-loading")).to_have_count(0)
    assert page.evaluate(FAULTS) == []
    assert fits(page)


def test_what_is_compared_has_a_line_for_each_run(pages: Pages, front: FrontService) -> None:
    page = pages.panel(PAGES["compare"][0], width=420)
    card = page.get_by_role("region", name="Metrics").locator("tbody tr").first
    expect(card.locator("td").first).to_be_visible()
    lines = card.locator("td").evaluate_all("found => found.map((td) => td.getBoundingClientRect().top)")
    assert lines == sorted(set(lines))  # each below the one before
    named = card.locator("td").first.evaluate("td => getComputedStyle(td, '::before').content")
    assert named == '"run 1"' or "digits" in named


def test_a_member_s_card_begins_with_the_name(pages: Pages, front: FrontService) -> None:
    page = pages.panel("admin/tenants/red", width=420)
    members = page.get_by_role("region", name="Members", exact=True)
    row = members.get_by_role("row").filter(has_text="bob")
    name, role = row.get_by_role("cell", name="bob", exact=True), row.get_by_label("Role of bob")
    expect(name).to_be_visible()
    [its, of_role] = [name.bounding_box(), role.bounding_box()]
    assert its is not None
    assert of_role is not None
    assert its["y"] < of_role["y"] + of_role["height"]
    assert its["x"] < of_role["x"]
    look = "e => [getComputedStyle(e).color, getComputedStyle(e).fontSize]"
    assert name.evaluate(look) == members.get_by_role("heading").evaluate(
        "e => [getComputedStyle(e).color, getComputedStyle(document.querySelector('main')).fontSize]"
    ), "it is no small grey text"
    shot(page, "panel-members-narrow", full=True)
