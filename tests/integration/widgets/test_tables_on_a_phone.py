"""On a phone each row of a table is a card (`test_every_page.py` judges those of all pages): what stands where in it."""

from __future__ import annotations

from playwright.sync_api import expect

from support.front.browser import shot
from support.front.pages import PAGES, Pages
from support.front.service import FrontService


def test_each_compared_metric_has_a_line_for_each_run(pages: Pages, front: FrontService) -> None:
    page = pages.panel(PAGES["compare"][0], width=420)
    card = page.get_by_role("region", name="Metrics").locator("tbody tr").first
    expect(card.locator("td").first).to_be_visible()
    lines = card.locator("td").evaluate_all("found => found.map((td) => td.getBoundingClientRect().top)")
    assert lines == sorted(set(lines))  # each below the one before
    named = card.locator("td").first.evaluate("td => getComputedStyle(td, '::before').content")
    assert named == '"run 1"' or "digits" in named


def test_a_member_s_card_begins_with_the_name(pages: Pages, front: FrontService) -> None:
    page = pages.panel("admin/tenants/red#people", width=420)
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
