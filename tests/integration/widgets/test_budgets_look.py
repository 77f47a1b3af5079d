"""Budgets on the pages of quota, usage and teams: bars with words, on a phone, in the dark and in Chinese."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from support.front.browser import shot
from support.front.pages import Pages
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


def test_the_page_of_a_job_has_its_cost(pages: Pages) -> None:
    page = pages.panel("jobs/ann/digits")
    expect(page.locator(".mlp-facts").first).to_contain_text("0.31 EUR so far; 0.42 EUR an hour")
