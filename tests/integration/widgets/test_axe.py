"""axe-core finds nothing on pages of the documentation, on the monitor in a cell, nor below what is announced.

`test_every_page.py` judges the panel's pages.
"""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from mlp_hub.web import docs
from support.clients.sweep_shapes import curves, sweep
from support.front.admin import an_announcement
from support.front.axe import assert_accessible, assert_accessible_light_and_dark
from support.front.pages import PAGES, Pages, story
from support.front.service import FrontService

FEW = """() => {
  const seen = new Map(), more = (shape) => (seen.set(shape, (seen.get(shape) ?? 0) + 1), seen.get(shape) > 3);
  const shape = (e) => e.tagName + [...e.attributes].map((a) => a.name === "class" ? `.${a.value}` : `${a.name}${!a.value}`)
    + (e.textContent.trim() || e.tagName === "TD" ? "t" : "") + `(${[...new Set([...e.children].map(shape))]})`;
  for (const row of document.querySelectorAll("main tbody tr, main li")) if (more(shape(row))) row.remove();
  const sections = [];
  for (const e of [...document.querySelector("main h2")?.parentElement.children ?? []])
    if (/^H[2-6]$/.test(e.tagName)) sections.push([e]); else sections.at(-1)?.push(e);
  for (const section of sections) if (more(String(section.map(shape)))) section.forEach((e) => e.remove());
}"""
"""Leaves three rows, items and sections of each shape: in a list of five hundred axe finds nothing that it does not in three."""


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
    page = pages.open(f"/services/mlp/docs/{name}")
    expect(page.locator("main h1")).to_be_visible()
    page.evaluate(FEW)
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
