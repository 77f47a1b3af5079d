"""The what-if page: a form prefilled with what is, both runs beside each other; and "why?" on a job's timeline."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from support.front.browser import shot
from support.front.pages import LOOKS, Pages, fits, story
from support.front.service import FrontService
from support.front.shapes import WAITS, unmoved, waited, work


@pytest.mark.parametrize("look", LOOKS)
def test_a_run_shows_both_sides_and_what_moves(pages: Pages, front: FrontService, look: str) -> None:
    dark, width = LOOKS[look]
    page = pages.panel("admin/what-if", dark=dark, width=width)
    expect(
        page.get_by_text("Policy in force: fair (share of the machines, current and recent use).")
    ).to_be_visible()
    policies = page.get_by_label("Policy").locator("option")
    expect(policies.first).to_have_text("As it is (fair)")
    expect(policies.filter(has_text="fifo (first come, first served)")).to_have_count(1)
    page.get_by_label("CPU of red").fill("16")
    expect(page.get_by_text("1 change")).to_be_visible()
    page.get_by_label("CPU of red").press("Enter")
    region = page.get_by_role("region", name="In all")
    expect(region).to_contain_text("2 h 30 min")
    expect(region).to_contain_text("better")
    expect(page.get_by_role("region", name="Changed start times")).to_contain_text("2 h earlier")
    moves = page.get_by_role("region", name="Changed start times")
    expect(moves).to_contain_text("With the changes: blue may use 1 cpu in all")
    expect(moves).to_contain_text("As it is: red may use 4 cpu; 4 in use by job long of ann (4)")
    expect(region).to_contain_text(
        "4 jobs were already running and wait no longer. Waits of the 8 other jobs that start"
    )
    expect(page.get_by_role("region", name="Per team")).to_contain_text("4 already running")
    expect(page.get_by_role("region", name="Over time").get_by_role("img")).to_have_js_property(
        "naturalWidth", 96
    )
    assert front.data.simulated[0]["changes"]["tenants"] == {"red": {"cpu": 16}}
    page.get_by_role("button", name="As it is").press("Enter")
    expect(page.get_by_role("button", name="As it is")).to_have_attribute("aria-pressed", "true")
    shot(page, f"panel-what-if-result-{look}", full=True)
    assert fits(page)
    assert not pages.unexpected()


def test_an_invalid_value_is_reported_at_its_field_and_nothing_is_sent(
    pages: Pages, front: FrontService
) -> None:
    page = pages.panel("admin/what-if")
    page.get_by_label("Memory of red").fill("much")
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("alert")).to_contain_text("not an amount of memory")
    expect(page.get_by_label("Memory of red")).to_be_focused()
    assert not front.data.simulated
    page.get_by_role("button", name="Sharing of red").click()
    expect(page.get_by_role("group", name="Sharing of red")).to_be_visible()
    page.get_by_role("button", name="Start over").click()
    expect(page.get_by_text("No change yet")).to_be_visible()
    expect(page.get_by_role("group", name="Sharing of red")).to_have_count(0)
    expect(page.get_by_role("alert")).to_have_count(0)


@pytest.mark.parametrize("look", LOOKS)
def test_with_whom_a_tenant_shares_can_be_other(pages: Pages, front: FrontService, look: str) -> None:
    dark, width = LOOKS[look]
    page = pages.panel("admin/what-if", dark=dark, width=width)
    page.get_by_role("button", name="Sharing of red").press("Enter")
    sharing = page.get_by_role("group", name="Sharing of red")
    sharing.get_by_label("Lend CPU").fill("9")
    page.get_by_role("button", name="Run").click()
    expect(sharing.get_by_role("alert")).to_have_text("needs a cohort or a parent")
    expect(sharing.get_by_label("Lend CPU")).to_be_focused()
    sharing.get_by_label("Cohort").fill("main")
    expect(sharing.get_by_role("alert")).to_have_text("is above the quota")
    shot(page, f"panel-what-if-sharing-{look}", full=True)
    assert fits(page)
    assert not front.data.simulated
    sharing.get_by_label("Lend CPU").fill("1")
    sharing.get_by_label("Borrow memory").fill("4 GiB")
    page.get_by_role("button", name="Sharing of blue").click()
    blue = page.get_by_role("group", name="Sharing of blue")
    blue.get_by_label("Borrow memory").fill("")
    expect(blue).to_contain_text("now 8 GiB")
    expect(page.get_by_text("4 changes")).to_be_visible()
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("region", name="In all")).to_be_visible()
    assert front.data.simulated[0]["changes"]["tenants"] == {
        "red": {"cohort": "main", "borrowing_limit": {"ram": 4096}, "lending_limit": {"cpu": 1}},
        "blue": {"borrowing_limit": None},
    }
    assert not pages.unexpected()


def test_where_nothing_changes_it_says_what_is_waited_for(pages: Pages, front: FrontService) -> None:
    nodes = "2 ranks of 2 cpu fit on no node together; node-1 has 1 cpu free"
    then = [waited("WaitingForResources", 2, nodes), waited("Reserved", 1, "kept for blue", never=1)]
    unmoved(front.data.simulation, [waited("WaitingForQuota", 3, WAITS, never=1)], then)
    page = pages.panel("admin/what-if")
    page.get_by_label("CPU of red").fill("16")
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("note")).to_have_text(
        "Nothing changes: the changes do not affect any start time, because something else then holds the jobs back. "
        "As it is, they wait for: 3 jobs (1 of them never started): waits for quota. With the changes: 2 jobs: waits "
        "for room on the nodes; 1 job (never started): the free room is reserved. digits-5 of ann, with the changes: "
        f"{nodes}."
    )
    shot(page, "panel-what-if-same")
    assert not pages.unexpected()


def test_a_refused_run_is_shown_and_tried_again(pages: Pages, front: FrontService) -> None:
    msg = "this would be a run of 30000 jobs; the limit here is 20000"
    front.data.forced["POST /simulate"] = (403, {"msg": msg, "reason": "Invalid"})
    page = pages.panel("admin/what-if")
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("alert")).to_contain_text("the limit here is 20000")
    front.data.forced.clear()
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("region", name="In all")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)


def test_a_run_shows_that_it_runs_and_nothing_to_run_says_so(pages: Pages, front: FrontService) -> None:
    front.data.forced["POST /simulate"] = (503, {"msg": "too late"})
    page = pages.panel("admin/what-if")
    with front.kept_back("POST /simulate"):
        page.get_by_role("button", name="Run").click()
        expect(page.get_by_label("Loading both runs")).to_be_visible()
        expect(page.get_by_role("button", name="Run")).to_be_disabled()
    expect(page.get_by_role("alert")).to_contain_text("too late")
    front.data.forced.clear()
    for side in ("before", "after"):
        front.data.simulation[side] |= work(0.0, 0, jobs=0)
    page.get_by_role("button", name="Run").click()
    expect(page.locator(".mlp-empty")).to_contain_text("No jobs to compare")


def test_the_timeline_tells_why(pages: Pages, front: FrontService) -> None:
    story(front)
    admitted = front.data.frames["events"][0]["events"][1]
    victim = {
        "job": None,
        "user": None,
        "tenant": None,
        "priority": 50,
        "lost_work": 12.5,
        "lost_unit": "core-seconds",
    }
    front.data.decisions = [
        {
            "time": admitted["time"],
            "kind": "admitted",
            "summary": "admitted on node node-1: the best place with room",
            "waited_for": "waits for quota",
            "waited_reason": "WaitingForQuota",
            "changed": ["job digits-3 of bob ended"],
            "position": 1,
            "policy": "fair",
            "share": 0.25,
            "nodes": [
                {"node": "node-1", "ranks": 2, "chosen": True, "free_after": "2 cpu", "score": [0.0]},
                {"node": "node-2", "ranks": 2, "chosen": False, "free_after": "6 cpu", "score": [1.0]},
            ],
            "only": False,
            "victims": [victim | {"over_nominal": True, "chosen": True, "why": "loses the least work"}],
            "spared": ["2 jobs have no lower priority"],
            "passed": [{"job": None, "user": None, "tenant": None, "reason": "WaitingForQuota"}],
            "passed_count": 1,
            "order": "priority",
            "rule": "fgd",
        }
    ]
    page = pages.panel("jobs/ann/digits")
    button = page.get_by_role("button", name="Why admitted?")
    button.press("Enter")
    told = page.get_by_role("group", name="Why admitted")
    expect(told.get_by_title("WaitingForQuota")).to_have_text("Until then: waits for quota.")
    for text in (
        "job digits-3 of bob ended",
        "node-2",
        "a job of another team",
        "2 jobs have no lower",
        "12.5 core-seconds",
        "low",
        "Work lost, at most",
    ):
        expect(told).to_contain_text(text)
    button.press("Enter")
    expect(told).to_have_count(0)
    front.data.decisions = []
    button.click()
    expect(told).to_contain_text("no longer stored")
    assert not pages.unexpected()
