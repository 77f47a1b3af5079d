"""The card of the first steps: three steps, ticked by what there is, gone when all is done or it is dismissed."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from support.front.axe import assert_accessible_light_and_dark
from support.front.browser import shot
from support.front.pages import LOOKS, Pages, fits
from support.front.service import FrontService
from support.front.shapes import holding


def expect_done(page: Page, *steps: str) -> None:
    """Wait until these steps are ticked, and no other."""
    expect(page.locator(".mlp-first-done .mlp-link")).to_have_text(steps)


@pytest.mark.parametrize("look", LOOKS)
def test_somebody_new_sees_three_steps(pages: Pages, front: FrontService, look: str) -> None:
    dark, width = LOOKS[look]
    front.data.jobs.clear()
    page = pages.panel(dark=dark, width=width)
    card = page.get_by_role("region", name="First steps")
    expect(card.get_by_role("link", name="Start a notebook")).to_have_attribute("href", "/hub/spawn")
    lab = "/hub/user-redirect/lab/tree/"
    for text, to in (
        ("Run the sample", "01-digits-mpi.ipynb"),
        ("a sweep", "04-digits-sweep.ipynb"),
        ("Keras", "05-digits-keras.ipynb"),
    ):
        expect(card.get_by_role("link", name=text)).to_have_attribute("href", lab + to)
    expect_done(page)
    shot(page, f"panel-first-steps-{look}", full=True)
    assert fits(page)
    if look == "light":
        assert_accessible_light_and_dark(page)


def test_a_step_is_ticked_once_it_is_done_and_the_card_goes_with_the_last(
    pages: Pages, front: FrontService
) -> None:
    jobs = dict(front.data.jobs)
    front.data.jobs.clear()
    front.data.holdings["red"] = [holding("ann's notebook", "ann", applier="sp")]
    page = pages.panel()
    expect(page.locator(".mlp-first-done")).to_have_text(
        ["Start a notebook (done)Choose its size, or use the suggestion."]
    )
    front.data.holdings["red"] = []  # a server that has gone was seen all the same
    for name, job in jobs.items():
        front.data.jobs[name] = {**job, "phase": "cancelled", "state": "error"}
    page.reload()
    expect(page.locator("main")).to_contain_text("mnist-tf")
    expect_done(page, "Start a notebook")  # what was cancelled showed nobody how it goes
    front.data.jobs |= jobs
    page.reload()
    expect_done(page, "Start a notebook", "Run the sample")
    page.get_by_role("link", name="See your quota").click()
    expect(page.get_by_role("heading", name="Quota", exact=True)).to_be_visible()
    page.get_by_role("link", name="Jobs", exact=True).click()
    expect(page.locator("main")).to_contain_text("mnist-tf")
    expect(page.locator(".mlp-first")).to_have_count(0)
    sweep = page.get_by_role("link", name="a sweep over its parameters")  # the samples stay, below the jobs
    expect(sweep).to_have_attribute("href", "/hub/user-redirect/lab/tree/04-digits-sweep.ipynb")
    shot(page, "panel-jobs-samples", full=True)


def test_a_dismissed_card_stays_away_and_users_with_jobs_never_see_it(
    pages: Pages, front: FrontService
) -> None:
    page = pages.panel()
    expect(page.locator("main")).to_contain_text("mnist-tf")
    expect(page.locator(".mlp-first")).to_have_count(0)
    front.data.jobs.clear()
    page.reload()
    page.get_by_role("button", name="Dismiss").click()
    expect(page.locator(".mlp-first")).to_have_count(0)
    expect(page.locator(".mlp-empty").get_by_role("link", name="a first distributed job")).to_be_visible()
    page.reload()
    expect(page.locator(".mlp-empty")).to_contain_text("No jobs yet")
    expect(page.locator(".mlp-first")).to_have_count(0)
