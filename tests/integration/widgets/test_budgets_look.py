"""Budgets on the pages of quota, usage and teams: bars with words, on a phone, in the dark and in Chinese."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from support.front.browser import shot, two_frames
from support.front.pages import LOOKS, Pages, fits
from support.front.service import FrontService


def test_the_pages_of_use_show_what_is_spent_and_forecast(pages: Pages) -> None:
    page = pages.panel("usage")
    card = page.get_by_role("region", name="Budgets")
    expect(card).to_contain_text("412.25 of 500 EUR (82.4 %)")
    expect(card).to_contain_text("at this rate 530.10 EUR by 2031-04-01")
    expect(card).to_contain_text("New work is refused until 2031-04-01")
    expect(card).to_contain_text("org: 1000 EUR. Nothing is counted: this hub has no price list.")
    expect(card.get_by_role("img", name="231.50 of 200 EUR (115.7 %)")).to_be_visible()
    page = pages.panel("quota")
    expect(page.get_by_role("region", name="Team red")).to_contain_text("412.25 of 500 EUR (82.4 %)")
    page = pages.panel("admin/tenants/red")
    expect(page.get_by_role("region", name="Quota in use")).to_contain_text("412.25 of 500 EUR")


@pytest.mark.parametrize(
    ("name", "dark", "width", "language"),
    [("light", False, 1280, "en-US"), ("dark", True, 1280, "en-US"), ("phone", False, 420, "zh-CN")],
)
def test_nothing_is_cut_off(pages: Pages, name: str, dark: bool, width: int, language: str) -> None:
    page = pages.panel("usage", dark=dark, width=width, language=language)
    bar = page.locator(".mlp-budgets .mlp-quota").first
    expect(bar).to_be_visible()
    shot(page, f"budgets-{name}", full=True)
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= width
    assert bar.evaluate("e => e.scrollWidth <= e.clientWidth")


@pytest.mark.parametrize("dark", [False, True])
def test_the_used_part_of_a_day_has_the_look_that_the_legend_shows(pages: Pages, dark: bool) -> None:
    chart = pages.panel("usage", dark=dark).get_by_role("region", name="By day")
    legend = chart.get_by_role("listitem")
    expect(legend).to_have_text(["used, as far as it was measured", "held"])
    looks = (
        "e => [getComputedStyle(e).opacity, getComputedStyle(e).fill, getComputedStyle(e).backgroundColor]"
    )
    held, used = (
        bar.evaluate(looks) for bar in chart.locator("g:has(rect + rect)").first.locator("rect").all()
    )
    for at, bar in ((0, used), (1, held)):
        swatch = legend.nth(at).locator("i").evaluate(looks)
        assert (swatch[0], swatch[2]) == (bar[0], bar[1])
    assert used[0] != held[0]


def test_a_team_without_budgets_has_no_card(pages: Pages, front: FrontService) -> None:
    front.data.accounting.empty = True
    page = pages.panel("usage")
    expect(page.locator(".mlp-empty")).to_be_visible()
    expect(page.get_by_role("region", name="Budgets")).to_have_count(0)


@pytest.mark.parametrize("who", ["member", "team admin", "platform admin"])
def test_no_request_for_a_budget_is_refused(pages: Pages, front: FrontService, who: str) -> None:
    """A team without a budget leaves no line in the browser's console."""
    front.data.session |= {"admin": who == "platform admin", "tenants": ["default", "teal"]}
    front.data.session["tenant_admin"] = ["teal"] if who == "team admin" else []
    page = pages.panel("tenants/teal")
    expect(page.get_by_role("region", name="Quota in use")).to_be_visible()
    expect(page.locator(".mlp-budgets")).to_have_count(0)
    assert [one for one in front.seen if "budget" in one] == [
        "GET /budgets" if who == "platform admin" else "GET /users/ann/budgets"
    ]


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("language", ["en-US", "zh-CN"])
def test_without_prices_a_platform_admin_reads_how_to_set_them(
    pages: Pages, front: FrontService, look: str, language: str
) -> None:
    front.data.accounting.priced = False
    dark, width = LOOKS[look]
    page = pages.panel("admin/usage", dark=dark, width=width, language=language)
    card = page.get_by_role("region", name="Set up costs" if language == "en-US" else "设置费用")
    expect(card).to_contain_text("mlp-hub prices put prices.json")
    expect(card).to_contain_text("mlp-hub budget set TEAM 500")
    links = card.get_by_role("link")
    assert [str(link.get_attribute("href")).rpartition("/")[2] for link in links.all()] == [
        "costs#set-prices",
        "costs#set-budgets",
    ]
    two_frames(page)
    shot(page, f"budgets-none-{look}-{language}", full=True)
    assert fits(page)


def test_people_who_may_not_set_prices_read_nothing_of_them(pages: Pages, front: FrontService) -> None:
    front.data.accounting.priced = False
    front.data.session |= {"admin": False, "tenant_admin": ["red"]}
    for path in ("usage", "tenants/red/usage"):
        expect(pages.panel(path).get_by_role("region", name="By day")).to_be_visible()
        expect(pages.panel(path).get_by_text("mlp-hub")).to_have_count(0)


def test_the_page_of_a_job_has_its_cost(pages: Pages) -> None:
    page = pages.panel("jobs/ann/digits")
    expect(page.locator(".mlp-facts").first).to_contain_text("0.31 EUR so far; 0.42 EUR an hour")
