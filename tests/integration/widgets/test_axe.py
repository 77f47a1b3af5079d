"""axe-core finds nothing on any page of the panel, on those of the documentation, and on the monitor in a cell."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from axe import assert_accessible, assert_accessible_light_and_dark
from front_admin import an_announcement
from front_pages import PAGES, Pages, story
from front_service import FrontService
from mlp_hub.web import docs
from sweep_shapes import curves, sweep


@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_the_panel_has_no_violation(pages: Pages, front: FrontService, name: str) -> None:
    story(front)
    path, text = PAGES[name]
    page = pages.panel(path)
    expect(page.locator("main")).to_contain_text(text)
    expect(page.locator(".mlp-loading")).to_have_count(0)
    assert_accessible_light_and_dark(page)


@pytest.mark.parametrize("name", ["overview", "tenant"])
def test_a_page_on_which_something_is_announced_has_no_violation(
    pages: Pages, front: FrontService, name: str
) -> None:
    front.data.admin.announcements += [
        an_announcement(1, "Maintenance on Sunday."),
        an_announcement(2, "The disk is full.", level="critical", tenant="red"),
    ]
    page = pages.panel(PAGES[name][0])
    expect(page.get_by_role("region", name="Announced now")).to_contain_text("Maintenance on Sunday.")
    expect(page.locator(".mlp-loading")).to_have_count(0)
    assert_accessible_light_and_dark(page)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", ["digits", "mnist-tf"])
def test_the_monitor_in_a_cell_has_no_violation(
    pages: Pages, front: FrontService, name: str, dark: bool
) -> None:
    story(front)
    page = pages.widget(name, dark=dark)
    page.evaluate("name => window.output(name)", name)  # people show a job twice in a notebook
    expect(page.locator(".mlp-monitor .mlp-title .mlp-badge")).to_have_count(2)
    expect(page.locator(".mlp-plot canvas")).to_have_count(6)
    assert_accessible(page)


def test_two_monitors_of_sweeps_in_one_notebook_have_no_violation(pages: Pages, front: FrontService) -> None:
    front.data.forced["GET /users/ann/sweeps/other@1"] = (200, sweep("other"))
    front.data.forced["GET /users/ann/sweeps/other@1/curves"] = (200, curves())
    page = pages.widget("search@1", kind="sweep")
    page.evaluate("window.output('other@1', 'sweep')")
    expect(page.get_by_role("group", name="Trials of search")).to_be_visible()
    expect(page.get_by_role("group", name="Trials of other")).to_be_visible()
    assert_accessible(page)


@pytest.mark.parametrize("name", sorted(docs.pages()))
def test_a_page_of_the_documentation_has_no_violation(pages: Pages, front: FrontService, name: str) -> None:
    front.documents[name] = docs.rendered(name, "en") or ""
    page = pages.open(f"/services/mlp/docs/{name}")
    expect(page.locator("main h1")).to_be_visible()
    assert_accessible_light_and_dark(page)


def test_a_curve_is_read_by_keyboard(pages: Pages, front: FrontService) -> None:
    story(front)
    page = pages.widget()
    plot = page.locator(".mlp-chart[data-metric=loss] .mlp-plot")
    expect(plot.locator("canvas")).to_be_visible()
    for _ in range(60):
        if plot.evaluate("e => e === document.activeElement"):
            break
        page.keyboard.press("Tab")
    expect(plot).to_be_focused()
    expect(plot).to_have_accessible_name("Curve of loss")
    page.keyboard.press("Home")
    expect(plot).to_have_attribute("aria-valuetext", re.compile("^step 0: mean "))
    first = plot.get_attribute("aria-valuetext") or ""
    page.keyboard.press("ArrowRight")
    expect(plot).not_to_have_attribute("aria-valuetext", first)
    page.keyboard.press("ArrowLeft")
    expect(plot).to_have_attribute("aria-valuetext", first)
    page.keyboard.press("End")
    expect(plot).to_have_attribute("aria-valuenow", plot.get_attribute("aria-valuemax") or "")
    page.keyboard.press("Tab")
    expect(plot).to_have_attribute("aria-valuetext", re.compile("^last value"))
