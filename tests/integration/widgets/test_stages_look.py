"""Where the time of a job's attempts went: a bar of parts, and what they are in words, on the page and in a cell."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from support.front.axe import assert_accessible
from support.front.browser import shot
from support.front.pages import LOOKS, Pages, fits, story
from support.front.service import FrontService
from support.front.shapes import attempt

WAY = (("queued", 0.0), ("admitted", 125.0), ("created", 0.4), ("bound", 0.1))
WHOLE = (*WAY, ("pulled", 3.2), ("started", 0.8), ("first-line", 1.1))
GROUP = "Time to first output, by step"


def two_attempts(front: FrontService) -> None:
    """One that was stopped for another job, and one whose image is still fetched."""
    story(front)
    attempts = [attempt(1, -900, *WHOLE, ended="requeued"), attempt(2, -200, *WAY)]
    front.data.keep({"type": "attempts", "attempts": attempts})


@pytest.mark.parametrize("look", LOOKS)
def test_a_page_shows_where_the_time_of_each_attempt_went(
    pages: Pages, front: FrontService, look: str
) -> None:
    two_attempts(front)
    dark, width = LOOKS[look]
    page = pages.panel("jobs/ann/digits", dark=dark, width=width)
    box = page.get_by_role("group", name=GROUP)
    ways = box.locator(".mlp-stages-one")
    expect(ways).to_have_count(2)
    expect(ways.nth(0)).to_contain_text("Attempt 2")
    expect(ways.nth(0)).to_contain_text("Images and containers: 1 min")
    expect(ways.nth(0).locator("li").last).to_contain_text("so far")
    expect(ways.nth(1)).to_contain_text("Attempt 1 2 min 11 s to first output")
    expect(ways.nth(1).locator("li")).to_have_text(
        [
            "In the queue: 2 min 5 s",
            "Making its pods: 0.4 s",
            "Finding their nodes: 0.1 s",
            "Images and containers: 3.2 s",
            "Starting its program: 0.8 s",
            "Waiting for output: 1.1 s",
        ]
    )
    expect(ways.nth(1).locator(".mlp-stages-bar .mlp-stage")).to_have_count(6)
    narrowest = (
        ways.nth(1)
        .locator(".mlp-stages-bar .mlp-stage")
        .evaluate_all("parts => Math.min(...parts.map(p => p.getBoundingClientRect().width))")
    )
    assert narrowest > 1
    shot(page, f"panel-stages-{look}", full=True)
    assert fits(page)
    if look != "narrow":
        assert_accessible(page)


def test_a_cell_shows_it_with_the_timeline_which_keys_open(pages: Pages, front: FrontService) -> None:
    story(front)
    page = pages.widget()
    box = page.get_by_role("group", name=GROUP)
    expect(box).to_be_hidden()
    page.locator(".mlp-timeline summary").press("Enter")
    expect(box).to_be_visible()
    expect(box).to_contain_text("7.6 s to first output")
    # what comes live takes the place of what there was
    front.push(
        {
            "type": "attempts",
            "attempts": [attempt(1, -9, ("queued", 0.0), ("admitted", 2.0), ("started", 1.0))],
        }
    )
    expect(box).to_contain_text("3 s until it ran; it has written nothing yet")
    shot(page, "widget-stages", full=True)
