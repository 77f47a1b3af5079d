"""Curves over time in a browser: read by keys, as a table, for a member, and on from the pages where people look."""

from __future__ import annotations

from playwright.sync_api import expect

from support.front.pages import Pages
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
