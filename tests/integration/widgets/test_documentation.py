"""Pages of the documentation in a browser, under the hub's policy: navigation, search, theme, narrow windows, keyboard, Chinese."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from mlp.grammar.job_options import SUBMIT
from mlp_hub.domain.errors import Reason
from mlp_hub.settings import table
from support.front.browser import shot
from support.front.pages import Pages
from support.front.service import FrontService

DOCS = "/services/mlp/docs/"
DARK = "rgb(21, 24, 27)"
LIGHT = "rgb(255, 255, 255)"
SETTINGS = [row.variable for row in table()]
OPTIONS = [option.flags[0] for option in SUBMIT]


def searching(page: Page) -> tuple[Locator, Locator]:
    """Open the search by its key, and return its field and its results."""
    expect(page.get_by_role("button", name=re.compile("Search|查找"))).to_be_visible()
    page.keyboard.press("/")
    field = page.get_by_role("dialog").locator("input").last
    expect(field).to_be_focused()
    return field, page.get_by_role("dialog").locator("li a[href]")


@pytest.fixture
def index(pages: Pages) -> Page:
    page = pages.open(DOCS)
    expect(page.locator("article h1")).to_have_text(re.compile("MLP Hub documentation"))
    return page


def test_each_reason_some_settings_and_some_options_are_found_by_their_names(
    index: Page, front: FrontService
) -> None:
    field, results = searching(index)
    for words, place in (
        *((str(reason), f"reference/reasons.html#{str(reason).lower()}") for reason in Reason),
        *((name, f"reference/settings.html#{name.lower()}") for name in SETTINGS[:: len(SETTINGS) // 12]),
        *((name, "reference/submit.html") for name in ("--checkpoint-every", "--time-limit", "--retries")),
        ("waits for room on the disk", "reference/reasons.html#diskfull"),
        ("Sweeps and arrays", "how-to/sweeps.html"),
        ("checkpoint", "how-to/train.html"),
    ):
        field.fill(words)
        there = index.get_by_role("dialog").locator(f'li a[href*="{place.partition("#")[0]}"]')
        if "#" in place:
            there = there.and_(index.locator(f'a[href$="#{place.partition("#")[2]}"]'))
        expect(there.first).to_be_visible()
    field.fill("nothing-has-this-name-anywhere")
    expect(results).to_have_count(0)


def test_a_result_is_opened_by_keyboard_and_leads_to_its_row(index: Page, front: FrontService) -> None:
    field, results = searching(index)
    field.fill("WaitingForQuota")
    expect(results.first).to_have_attribute("href", re.compile("#waitingforquota$"))
    index.keyboard.press("Enter")
    index.wait_for_url(re.compile("reference/reasons.*#waitingforquota$"))
    expect(index.locator("#waitingforquota")).to_be_in_viewport()


def test_the_navigation_is_by_reader_and_pages_follow_each_other(index: Page, front: FrontService) -> None:
    bar = index.get_by_role("navigation", name="Navigation")
    for reader in ("Data scientist", "Team admin", "Platform admin", "Operator", "Developer"):
        expect(bar.get_by_text(reader, exact=True).first).to_be_visible()
    bar.get_by_role("link", name="Write a training program").click()
    expect(index.locator("article h1")).to_have_text(re.compile("Write a training program"))
    index.get_by_role("link", name="Next: Run a notebook as a job").click()
    expect(index.locator("article h1")).to_have_text(re.compile("Run a notebook as a job"))
    index.get_by_role("link", name="Previous: Write a training program").click()
    expect(index.locator("article h1")).to_have_text(re.compile("Write a training program"))
    index.get_by_role("link", name="Back to the hub").click()
    index.wait_for_url(f"{front.url}/services/mlp/")


@pytest.mark.parametrize("place", ["reference/alerts", "reference/alerts.html"])
def test_addresses_with_and_without_a_suffix_are_one_page(
    pages: Pages, front: FrontService, place: str
) -> None:
    page = pages.open(f"{DOCS}{place}#mlpdiskfull")
    expect(page.locator("#mlpdiskfull")).to_be_in_viewport()
    page.get_by_role("link", name="Glossary").first.click()
    expect(page.locator("article h1")).to_have_text(re.compile("Glossary"))


def test_the_theme_of_the_panel_is_that_of_the_pages(pages: Pages, front: FrontService) -> None:
    page = pages.open(f"{DOCS}how-to/train")
    ground = page.locator("body")
    expect(ground).to_have_css("background-color", LIGHT)
    page.evaluate("localStorage.setItem('mlp-theme', 'dark')")
    page.reload()
    expect(ground).to_have_css("background-color", DARK)
    shot(page, "docs-dark")
    page.get_by_title("Dark; switch to the theme of the system").click()
    expect(ground).to_have_css("background-color", LIGHT)
    assert page.evaluate("localStorage.getItem('mlp-theme')") is None
    page.get_by_title("Theme of the system; switch to light").click()
    assert page.evaluate("localStorage.getItem('mlp-theme')") == "light"
    page.emulate_media(color_scheme="dark")
    expect(ground).to_have_css("background-color", LIGHT)
    shot(page, "docs-light")


@pytest.mark.parametrize("name", ["how-to/train", "reference/settings", "reference/submit", "index"])
def test_a_narrow_window_has_all_of_it(pages: Pages, front: FrontService, name: str) -> None:
    page = pages.open(f"{DOCS}{name}", width=420)
    expect(page.locator("article h1")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (
        "the page is wider than its window"
    )
    shot(page, f"docs-{name.rpartition('/')[2]}-narrow")
    drawer = page.get_by_role("button", name="Navigation")
    drawer.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("Data scientist", exact=True).first).to_be_in_viewport()


def test_the_frame_is_chinese_for_chinese_readers(pages: Pages, front: FrontService) -> None:
    page = pages.open(f"{DOCS}quickstart", language="zh-CN")
    expect(page.get_by_text("数据科学家", exact=True).first).to_be_visible()
    expect(page.get_by_role("link", name="返回平台")).to_have_attribute("href", "../")
    expect(page.locator("article[lang=en] h1")).to_have_text(re.compile("Quickstart"))
    field, results = searching(page)
    field.fill("MLP_HOME")
    expect(results.first).to_be_visible()
    shot(page, "docs-chinese")
