"""Curves over time in a browser: read by keys, as a table, for a member, and on from the pages where people look."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from support.front.browser import shot, two_frames
from support.front.pages import LOOKS, Pages, fits
from support.front.service import FrontService


def test_single_values_are_read_by_keys_and_as_a_table(pages: Pages) -> None:
    page = pages.panel("admin/over-time")
    plot = page.get_by_role("slider", name="Curve of CPU")
    plot.focus()
    page.keyboard.press("Home")
    expect(page.locator("[data-chart=cpu] .mlp-chart-at")).to_contain_text(" to ")
    page.keyboard.press("Escape")
    expect(page.locator("[data-chart=cpu] .mlp-chart-at")).to_have_text("")
    page.get_by_text("Values as a table").click()
    table = page.get_by_role("table", name="CPU")
    expect(table.get_by_role("row")).to_have_count(1 + 144)
    page.get_by_label("Curves", exact=True).last.select_option("waits")
    expect(page.get_by_role("table", name="Waits of admitted jobs")).to_contain_text("min")
    assert not pages.unexpected()


def test_another_span_is_another_question(pages: Pages, front: FrontService) -> None:
    page = pages.panel("admin/over-time")
    with page.expect_request(lambda request: "over-time?span=week" in request.url):
        page.get_by_label("Span", exact=True).select_option("week")
    expect(page.locator(".mlp-time-chart canvas").first).to_be_visible()
    front.data.over_time.idle = True
    page.get_by_label("Span", exact=True).select_option("hour")
    expect(page.locator("[data-chart=cpu]")).to_contain_text("held 0 cores")


def test_members_see_their_team_from_its_page_and_no_cluster(pages: Pages, front: FrontService) -> None:
    front.data.session |= {"admin": False, "tenant_admin": [], "tenants": ["red"]}
    page = pages.panel("tenants/red")
    page.get_by_role("link", name="Over time").click()
    expect(page.get_by_role("heading", name="red over time")).to_be_visible()
    expect(page.locator("[data-chart=cpu]")).to_contain_text("quota 16 cores")
    assert not pages.unexpected()
    for path in ("admin/over-time", "tenants/blue/over-time"):
        expect(pages.panel(path).locator("main")).to_contain_text("you may not see it")


def test_the_overview_leads_to_the_cluster(pages: Pages) -> None:
    page = pages.panel("admin")
    page.get_by_role("link", name="Over time").click()
    expect(page.locator("[data-chart=cpu]")).to_contain_text("capacity 16 cores")


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("language", ["en-US", "zh-CN"])
def test_the_axis_of_a_new_hub_begins_with_its_first_sample(
    pages: Pages, front: FrontService, look: str, language: str
) -> None:
    front.data.over_time.begun = 138  # of 144 steps of a day
    dark, width = LOOKS[look]
    page = pages.panel("admin/over-time", dark=dark, width=width, language=language)
    words = "Nothing was measured before" if language == "en-US" else "之前没有测量"
    expect(page.get_by_text(words)).to_be_visible()
    page.get_by_text("Values as a table" if language == "en-US" else "以表格显示数值").click()
    # on a phone each row is a card, and there is no head
    rows = page.get_by_role("table", name="CPU").get_by_role("row").filter(has=page.get_by_role("cell"))
    expect(rows).to_have_count(12)
    two_frames(page)
    shot(page, f"panel-over-time-new-{look}-{language}", full=True)
    assert fits(page)


def test_a_hub_that_ran_all_the_time_has_no_words_about_its_begin(pages: Pages) -> None:
    page = pages.panel("admin/over-time")
    expect(page.locator(".mlp-time-chart canvas").first).to_be_visible()
    expect(page.get_by_text("Nothing was measured before")).to_have_count(0)
