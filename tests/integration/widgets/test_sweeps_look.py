"""The monitor of a sweep in a page like JupyterLab's: live, stopped, extended, and saved."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import expect

from support.clients.sweep_shapes import curves, sweep, trial
from support.front.browser import shot
from support.front.pages import LOOKS, Pages, fits
from support.front.service import FrontService

EVIL = '<img src=x onerror="window.owned=1">'


@pytest.mark.parametrize("look", LOOKS)
def test_a_sweep_shows_all_its_trials_and_dims_those_that_were_stopped(
    pages: Pages, front: FrontService, look: str
) -> None:
    dark, width = LOOKS[look]
    page = pages.widget("search@1", dark=dark, width=width if width < 900 else 1000, kind="sweep")
    monitor = page.locator(".mlp-monitor")
    expect(monitor).to_have_attribute("data-live", "true")
    plot = page.get_by_role("group", name="Curves of all trials")
    expect(plot.locator(".mlp-trial-line")).to_have_count(4)
    expect(plot.locator(".mlp-trial-dim")).to_have_attribute("data-trial", "2")
    expect(plot.locator(".mlp-trial-best")).to_have_attribute("data-trial", "1")
    expect(
        page.get_by_role("group", name="Parameters of all trials").locator(".mlp-trial-line")
    ).to_have_count(4)
    expect(monitor.get_by_role("table").locator("tbody tr")).to_have_count(5)
    expect(page.get_by_role("progressbar")).to_have_attribute("aria-valuenow", "50")
    shot(page, f"sweep-{look}", full=True)
    assert fits(page)
    assert pages.unexpected() == []


def test_the_page_of_a_trial_leads_back_to_its_sweep(pages: Pages, front: FrontService) -> None:
    front.data.jobs["ann", "digits"] |= {"sweep": "search@1", "trial": 3}
    page = pages.panel("jobs/ann/digits")
    way = page.locator(".mlp-crumbs").get_by_role("link", name="sweep search@1")
    expect(way).to_have_attribute("href", "/services/mlp/sweeps/ann/search%401")
    shot(page, "panel-trial")
    way.click()
    expect(page.get_by_role("heading", name="search", level=1)).to_be_visible()


def test_a_sweep_stops_after_a_confirmation_and_extends_by_the_entered_number(
    pages: Pages, front: FrontService
) -> None:
    page = pages.widget("search@1", kind="sweep")
    monitor = page.locator(".mlp-monitor")
    page.get_by_role("button", name="Extend").click()
    page.get_by_label("More trials").fill("4")
    page.get_by_role("dialog").get_by_role("button", name="Extend").click()
    expect(monitor).to_contain_text("of 10 trials have ended")
    page.get_by_role("button", name="Stop sweep").click()
    page.get_by_role("dialog").get_by_role("button", name="Let it continue").click()
    expect(monitor).to_have_attribute("data-state", "running")
    page.get_by_role("button", name="Stop sweep").click()
    page.get_by_role("dialog").get_by_role("button", name="Stop sweep").click()
    expect(monitor).to_have_attribute("data-state", "ending")


def test_a_saved_one_is_drawn_where_the_service_knows_it_no_more_and_its_text_is_text(
    pages: Pages, front: FrontService
) -> None:
    saved = sweep(
        "gone", "finished", trials=[trial(0), trial(1, params={"width": EVIL, "lr": 0.1})], message=EVIL
    )
    page = pages.widget("search@1", kind="sweep")
    page.evaluate(
        "s => sessionStorage.setItem('snapshot', s)", json.dumps({"sweep": saved, "curves": curves()[:2]})
    )
    page.goto(page.url.replace("name=search@1", "name=gone@1"))
    monitor = page.locator(".mlp-monitor")
    expect(monitor).to_have_attribute("data-live", "false")
    expect(monitor).to_contain_text("Saved picture")
    expect(monitor.locator(".mlp-actions")).to_have_count(0)
    expect(monitor).to_contain_text(EVIL)
    assert page.evaluate("window.owned") is None
