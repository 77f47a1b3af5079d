"""Runs in the panel: ten thousand in a table that is searched, sorted, chosen from; two over each other; one run again."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from support.front.axe import assert_accessible
from support.front.browser import shot
from support.front.pages import LOOKS, Pages, fits, story
from support.front.service import FrontService
from support.waiting import wait_for


def rows(page: Page) -> list[str]:
    """The runs that are drawn."""
    return page.locator(".mlp-run-row .mlp-col-name").all_inner_texts()


@pytest.mark.parametrize("look", LOOKS)
def test_runs_are_listed_and_compared_in_every_look(pages: Pages, front: FrontService, look: str) -> None:
    dark, width = LOOKS[look]
    page = pages.panel("runs", dark=dark, width=width)
    expect(page.locator(".mlp-run-row")).to_have_count(4)
    expect(page.locator("main")).to_contain_text('<b>odd</b> & "quoted"')
    expect(page.locator("main b")).to_have_count(0)
    for number in (0, 2):
        page.locator(".mlp-run-row input").nth(number).check()
    expect(page.get_by_role("group", name="With the selected runs")).to_contain_text("2 selected")
    shot(page, f"panel-runs-{look}")
    assert fits(page)
    page.get_by_role("button", name="Compare").click()
    expect(page.locator(".mlp-overlay canvas")).to_have_count(2)
    expect(page.get_by_role("list", name="Runs that are compared")).to_contain_text("digits@2")
    expect(page.get_by_role("table", name="Packages that differ")).to_contain_text("2.4")
    expect(page.get_by_label("Programs, line by line")).to_contain_text("loss=1 / (step + 2)")
    page.get_by_label("Smoothing").select_option("0.9")
    shot(page, f"panel-compare-{look}", full=True)
    assert fits(page)
    assert not pages.unexpected()


def test_a_trial_that_its_sweep_stopped_early_is_not_said_to_be_cancelled(
    pages: Pages, front: FrontService
) -> None:
    front.data.runs.rows[0] |= {"state": "error", "phase": "cancelled", "reason": "StoppedEarly"}
    front.data.runs.rows[1] |= {"state": "error", "phase": "cancelled"}
    page = pages.panel("runs")
    expect(page.locator(".mlp-run-row .mlp-badge")).to_have_text(
        ["Stopped early", "Cancelled", "Finished", "Finished"]
    )
    page.set_viewport_size({"width": 360, "height": 700})
    state = page.locator(".mlp-run-row td", has=page.locator(".mlp-badge"))
    expect(state.first).to_have_css("display", "flex")
    assert state.evaluate_all("cells => cells.filter((td) => td.scrollWidth > td.clientWidth).length") == 0


def test_ten_thousand_are_searched_sorted_and_only_those_in_view_are_drawn(
    pages: Pages, front: FrontService
) -> None:
    front.data.runs.rows = front.data.runs.some(10_000)
    page = pages.panel("runs")
    expect(page.locator("main")).to_contain_text(re.compile("10,?000 runs"))
    assert len(rows(page)) < 60
    page.locator(".mlp-runs-box").evaluate("box => { box.scrollTop = box.scrollHeight }")
    expect(page.locator(".mlp-run-row .mlp-col-name", has_text="run 1").last).to_be_visible()
    page.get_by_label("Search runs").fill("lr<0.0101 digits")
    expect(page.locator("main")).to_contain_text(re.compile("9,?991 runs"))
    page.get_by_role("button", name="lr", exact=True).click()
    expect(page.locator(".mlp-run-row").first).to_contain_text("run 10")
    expect(page.get_by_role("columnheader", name="lr")).to_have_attribute("aria-sort", "descending")
    page.get_by_role("button", name="lr ↓").click()
    expect(page.locator(".mlp-run-row").first).to_contain_text("run 10000")
    page.get_by_label("Search runs").fill("nowhere")
    expect(page.locator(".mlp-empty")).to_contain_text("No run matches this search")


def test_columns_are_chosen_and_kept(pages: Pages, front: FrontService) -> None:
    page = pages.panel("runs")
    expect(page.get_by_role("columnheader", name="opt")).to_be_visible()
    page.get_by_text("Columns", exact=True).click()
    page.get_by_role("checkbox", name="opt").uncheck()
    page.get_by_role("checkbox", name="Last loss").check()
    expect(page.get_by_role("columnheader", name="opt")).to_have_count(0)
    page.get_by_role("checkbox", name="Core-hours").check()
    page.reload()
    expect(page.get_by_role("columnheader", name="Last loss")).to_be_visible()
    expect(page.locator('.mlp-run-row [data-title="Core-hours"]').first).to_have_text("0.03417")
    with page.expect_request(lambda asked: "sort=-core_hours" in asked.url):
        page.get_by_role("columnheader", name="Core-hours").get_by_role("button").click()
    expect(page.get_by_role("columnheader", name="opt")).to_have_count(0)


def test_many_are_tagged_and_deleted_by_keyboard_and_who_stays_is_told(
    pages: Pages, front: FrontService
) -> None:
    page = pages.panel("runs")
    first = page.get_by_role("checkbox", name="Select digits run 4")
    first.focus()
    page.keyboard.press("Space")
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("checkbox", name="Select digits run 3")).to_be_focused()
    page.keyboard.press("Space")
    page.get_by_role("button", name="Tag", exact=True).press("Enter")
    page.get_by_role("textbox", name="Tags").fill("keep, later")
    page.keyboard.press("Enter")
    expect(page.locator(".mlp-run-row").first).to_contain_text("keep later")
    assert front.data.runs.acts == [
        {"act": "tag", "runs": ["digits@4", "digits@3"], "tags": ["keep", "later"]}
    ]
    page.get_by_role("checkbox", name="Select all 4 runs").check()
    page.get_by_role("button", name="Delete", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("alert")).to_contain_text("digits@1: it is running; cancel it first")
    expect(page.locator(".mlp-run-row")).to_have_count(1)


def test_a_service_that_is_away_and_no_runs_are_told(pages: Pages, front: FrontService) -> None:
    front.data.runs.rows.clear()
    page = pages.panel("runs")
    expect(page.locator(".mlp-empty")).to_contain_text("%%mlp submit --param lr=0.1")
    front.data.forced["GET /users/ann/runs"] = (503, {"msg": "the database is away"})
    page = pages.panel("runs")
    expect(page.get_by_role("alert")).to_contain_text("the database is away")


def test_a_zoom_is_of_all_charts_and_escape_shows_all_again(pages: Pages, front: FrontService) -> None:
    page = pages.panel("compare/ann/digits@1,digits@2,digits@3")
    expect(page.locator(".mlp-overlay canvas")).to_have_count(2)
    plot = page.locator(".mlp-overlay .u-over").first
    box = plot.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 50, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 150, box["y"] + 60, steps=4)
    page.mouse.up()
    again = page.get_by_role("button", name="Show all")
    expect(again).to_be_visible()
    again.focus()
    page.keyboard.press("Escape")
    expect(again).to_have_count(0)
    page.get_by_role("button", name="digits@2").click()
    expect(page.get_by_role("button", name="digits@2")).to_have_attribute("aria-pressed", "false")


def test_charts_that_compare_runs_are_read_and_zoomed_by_keyboard(pages: Pages, front: FrontService) -> None:
    page = pages.panel("compare/ann/digits@1,digits@2,digits@3")
    plots = page.locator(".mlp-overlay .mlp-plot")
    expect(page.locator(".mlp-overlay canvas")).to_have_count(2)
    plot = plots.first
    for _ in range(80):
        if plot.evaluate("e => e === document.activeElement"):
            break
        page.keyboard.press("Tab")
    expect(plot).to_be_focused()
    expect(plot).to_have_role("slider")
    expect(plot).to_have_accessible_name(re.compile("^Curves of .* of 3 runs$"))
    page.keyboard.press("Home")
    expect(plot).to_have_attribute("aria-valuetext", re.compile("^step .*: digits@1 .*, digits@3 "))
    expect(plot).to_have_attribute("aria-valuenow", "0")
    page.keyboard.press("ArrowRight")
    expect(plot).to_have_attribute("aria-valuenow", "1")
    all_of_it = int(plot.get_attribute("aria-valuemax") or 0)
    page.keyboard.press("+")
    for each in (0, 1):  # one zoom is of all charts
        expect(plots.nth(each)).not_to_have_attribute("aria-valuemax", str(all_of_it))
    assert int(plot.get_attribute("aria-valuemax") or 0) < all_of_it
    shot(page, "panel-compare-keys")
    page.keyboard.press("-")
    expect(plot).to_have_attribute("aria-valuemax", str(all_of_it))
    page.keyboard.press("+")
    page.keyboard.press("Escape")
    expect(plot).to_have_attribute("aria-valuemax", str(all_of_it))
    expect(plot).to_have_attribute("aria-valuetext", re.compile("^arrow keys read"))
    assert_accessible(page)


ROOM = """plot => {
  const pen = document.createElement('canvas').getContext('2d');
  pen.font = '11px sans-serif';
  const [all, drawn] = [plot.getBoundingClientRect(), plot.querySelector('.u-over').getBoundingClientRect()];
  return all.right - drawn.right - pen.measureText('1h 30m').width / 2;
}"""


@pytest.mark.parametrize("path", ["jobs/ann/digits", "compare/ann/digits@1,digits@3"])
def test_the_last_label_below_a_chart_is_not_cut(pages: Pages, front: FrontService, path: str) -> None:
    story(front)
    page = pages.panel(path)
    plot = page.locator(".mlp-plot:has(canvas)").first
    expect(plot).to_be_visible()
    assert plot.evaluate(ROOM) >= 0  # it stands around the plot's right edge


@pytest.mark.parametrize("look", LOOKS)
def test_runs_of_several_people_are_told_apart_by_their_users(
    pages: Pages, front: FrontService, look: str
) -> None:
    dark, width = LOOKS[look]
    page = pages.panel("compare/ann/bob:digits@1,digits@1,digits@3", dark=dark, width=width)
    expect(page.locator(".mlp-overlay canvas")).to_have_count(2)
    runs = page.get_by_role("list", name="Runs that are compared").get_by_role("button")
    expect(runs).to_have_text(["bob/digits@1", "ann/digits@1", "ann/digits@3"])
    differ = page.get_by_role("region", name="Packages that differ")
    if look == "narrow":  # a card for each package, with a line for each run
        first = differ.locator("tbody tr").first.locator("td")
        expect(first.first).to_be_visible()
        titles = first.evaluate_all("found => found.map((td) => td.dataset.title)")
        assert titles == ["bob/digits@1", "ann/digits@1", "ann/digits@3"]
    else:
        expect(differ.get_by_role("columnheader")).to_have_text(
            ["What", "bob/digits@1", "ann/digits@1", "ann/digits@3"]
        )
    expect(page.get_by_role("table", name="Datasets that differ")).to_contain_text("checksum")
    runs.first.click()
    expect(runs.first).to_have_attribute("aria-pressed", "false")
    expect(runs.nth(1)).to_have_attribute("aria-pressed", "true")
    shot(page, f"panel-compare-people-{look}", full=True)
    assert fits(page)
    assert not pages.unexpected()


def test_curves_and_their_legend_follow_the_theme(pages: Pages, front: FrontService) -> None:
    page = pages.panel("compare/ann/digits@1,digits@3")
    expect(page.locator(".mlp-overlay canvas")).to_have_count(2)
    picture = "canvas => canvas.toDataURL()"
    light = page.locator(".mlp-overlay canvas").first.evaluate(picture)
    legend = page.get_by_role("list", name="Runs that are compared").locator("i").first
    color = legend.evaluate("i => getComputedStyle(i).backgroundColor")
    page.emulate_media(color_scheme="dark")
    expect(legend).not_to_have_css("background-color", color)
    script = "light => document.querySelector('.mlp-overlay canvas')?.toDataURL() !== light"
    page.wait_for_function(script, arg=light)


def test_a_run_runs_again_with_another_parameter(pages: Pages, front: FrontService) -> None:
    story(front)
    front.data.runs.rows[0] |= {"run": 1, "params": {"lr": 0.1, "opt": "adam"}}
    page = pages.panel("jobs/ann/digits")
    part = page.get_by_role("region", name="Details of this run")
    expect(part).to_contain_text("lr=0.1, opt=adam")
    part.get_by_role("button", name="Run again with").click()
    page.get_by_label("lr", exact=True).fill("0.2")
    page.get_by_role("dialog").get_by_role("button", name="Run again").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    part.get_by_role("button", name="Run again exactly").click()
    expect(page.locator(".mlp-toast").last).to_contain_text("Submitted again")
    wait_for(lambda: len(front.data.runs.again) == 2, message="for it to be asked for a second time")
    assert front.data.runs.again == [{"params": {"lr": 0.2}}, {"exactly": True}]


def test_a_card_on_a_phone_shows_all_of_many_parameters_and_those_below_stay_in_step(
    pages: Pages, front: FrontService
) -> None:
    names = [f"parameter_{n}" for n in range(12)]
    front.data.runs.rows = [run | {"params": dict.fromkeys(names, 0.5)} for run in front.data.runs.some(300)]
    front.data.runs.params = names
    page = pages.panel("runs", width=420)
    page.get_by_text("Columns", exact=True).click()
    for name in names:
        page.get_by_role("checkbox", name=name, exact=True).check()
    page.get_by_text("Columns", exact=True).click()
    card = page.locator(".mlp-run-row").first
    cut = """card => [...card.querySelectorAll("td")].filter(td => td.offsetTop + td.offsetHeight > card.offsetTop + card.offsetHeight)"""
    expect(card.locator("td[data-title=parameter_11]")).to_be_visible()
    assert card.evaluate(f"card => ({cut})(card).length") == 0
    page.locator(".mlp-runs-box").evaluate("box => { box.scrollTop = box.scrollHeight }")
    last = page.locator(".mlp-run-row .mlp-col-name", has_text=re.compile(r"run 1$"))
    expect(last).to_be_in_viewport()
    shot(page, "panel-runs-many-narrow")
    assert fits(page)
