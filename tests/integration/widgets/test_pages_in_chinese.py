"""Panel and monitor in Chinese: no sentence of the catalogue is left in English, and nothing is cut in a narrow window."""

from __future__ import annotations

import json
import re
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, Request, expect

from support.front.axe import assert_accessible
from support.front.browser import shot, two_frames
from support.front.pages import PAGES, Pages, fits, restyle, story
from support.front.service import PANEL, FrontService
from support.front.shapes import when
from support.waiting import wait_for

CHINESE = "zh-CN"
NAMES = {"default", "notebook", "data", "job", "user", "admin", "low", "normal", "high"}
"""Words that are names in the stand-in's data, or of the contract."""
SAID = """() => {
  const said = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) if (!walk.currentNode.parentElement.closest("script, code, pre, [role=log], .mlp-line")) said.push(walk.currentNode.data);
  for (const name of ["aria-label", "title", "placeholder", "alt", "data-title", "aria-valuetext"])
    for (const at of document.querySelectorAll(`[${name}]`)) said.push(at.getAttribute(name));
  return [...new Set(said.map((text) => text.trim()).filter(Boolean))];
}"""


@pytest.fixture(scope="module")
def english() -> re.Pattern[str]:
    """What fits the sentences of the catalogue in English, and nothing that a person or a program wrote."""
    found: dict[str, list[str]] = json.loads((PANEL / f"front.{CHINESE}.json").read_text())
    sentences = []
    for sentence, forms in found.items():
        letters = len(re.findall(r"[A-Za-z]", re.sub(r"\{\w+\}", "", sentence)))
        if sentence in NAMES or sentence in forms or letters < 4:
            continue
        # what is short would fit much that it is not
        sentences.append(re.sub(r"\\\{\w+\\\}", ".*" if letters > 12 else r"\\S+", re.escape(sentence)))
    assert sentences
    return re.compile("|".join(sentences), re.DOTALL)


def left(page: Page, english: re.Pattern[str]) -> list[str]:
    """Return what a page says in English though the catalogue has it in Chinese."""
    return [text for text in page.evaluate(SAID) if english.fullmatch(text)]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_all_chinese_and_fits(
    pages: Pages, front: FrontService, english: re.Pattern[str], name: str
) -> None:
    story(front)
    page = pages.panel(PAGES[name][0], width=420, language=CHINESE)
    expect(page.locator("html")).to_have_attribute("lang", CHINESE)
    expect(page.locator("main h1")).to_be_visible()
    expect(page.locator(".mlp-loading")).to_have_count(0)
    in_both_widths(page, english, f"chinese-{name}", 1280)


def in_both_widths(page: Page, english: re.Pattern[str], picture: str, wide: int) -> None:
    for width in (420, wide):
        restyle(page, width=width)
        two_frames(page)
        shot(page, f"{picture}-{width}", full=True)
        assert left(page, english) == [], width
        assert fits(page), width


@pytest.mark.parametrize("name", ["digits", "digits-5", "mnist-tf"])
def test_the_monitor_in_a_cell_is_all_chinese_and_fits(
    pages: Pages, front: FrontService, english: re.Pattern[str], name: str
) -> None:
    story(front)
    front.data.why = {
        "job": "digits-5",
        "phase": "queued",
        "reasons": [],
        "position": 2,
        "queue_length": 5,
        "expected_start": when(600),
        "expected_because": "因为",
        "how_sure": "sure",
        "sure_because": "因为",
        "would_start_now": ["--cpu 0.4", "--workers 1 --cpu 0.8"],
    }
    page = pages.widget(name, width=420, language=CHINESE)
    expect(page.locator(".mlp-monitor")).to_have_attribute("data-synced", "true")
    in_both_widths(page, english, f"chinese-monitor-{name}", 1000)


def test_the_language_is_chosen_on_any_page_takes_effect_at_once_and_is_kept(
    pages: Pages, front: FrontService
) -> None:
    story(front)
    page = pages.panel("admin/tenants/new")
    page.get_by_label("Name").fill("blau")
    page.get_by_role("combobox", name="Language").select_option(CHINESE)
    expect(page.get_by_role("heading", level=1)).to_have_text("新建租户")
    expect(page.locator("html")).to_have_attribute("lang", CHINESE)
    expect(page.get_by_label("名称")).to_have_value("blau")  # the page stays as it was
    expect(page).to_have_title("新建租户 · MLP Hub")
    assert page.url.endswith("/admin/tenants/new")
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_have_text("新建租户")
    (kept,) = [c for c in page.context.cookies() if c["name"] == "mlp-language"]
    assert (kept["value"], kept["path"], kept["sameSite"]) == (CHINESE, "/", "Lax")
    wait_for(
        lambda: front.data.session["language"] == CHINESE
    )  # and stored, for other browsers, notebooks and commands
    page.get_by_role("combobox", name="语言").select_option("en")
    expect(page.get_by_role("heading", level=1)).to_have_text("New team")
    page.get_by_role("combobox", name="Language").select_option("")
    expect(page.get_by_role("combobox", name="Language")).to_have_value("")
    wait_for(lambda: front.data.session["language"] == "")
    wait_for(lambda: all(c["name"] != "mlp-language" for c in page.context.cookies()))


def test_the_users_setting_goes_before_the_browsers_language(pages: Pages, front: FrontService) -> None:
    front.data.session["language"] = CHINESE
    page = pages.panel("admin/tenants/new")
    expect(page.get_by_role("heading", level=1)).to_have_text("新建租户")
    expect(page.get_by_role("combobox", name="语言")).to_have_value(CHINESE)


def test_the_monitor_speaks_as_the_magics_beside_it_whatever_the_page_does(
    pages: Pages, front: FrontService, english: re.Pattern[str]
) -> None:
    story(front)
    front.data.session["language"] = CHINESE
    page = pages.widget("digits", language="en")
    expect(page.locator(".mlp-monitor")).to_have_attribute("data-synced", "true")
    assert left(page, english) == []


def test_the_service_is_asked_again_in_the_chosen_language(pages: Pages, front: FrontService) -> None:
    page = pages.panel("admin/queue")
    expect(page.locator(".mlp-loading")).to_have_count(0)

    def anew(request: Request) -> bool:  # news may have made the page ask once more before the choice
        return (
            urlsplit(request.url).path.endswith("/api/v1/queue")
            and request.headers["accept-language"] == CHINESE
        )

    with page.expect_request(anew) as asked:
        page.get_by_role("combobox", name="Language").select_option(CHINESE)
    assert asked.value.headers["time-zone"] == "UTC"
    assert "mlp-language=zh-CN" in asked.value.all_headers()["cookie"]


def test_english_loads_no_catalogue(pages: Pages, front: FrontService) -> None:
    loaded: list[str] = []
    page = pages.panel()
    page.on("request", lambda request: loaded.append(request.url))
    page.reload()
    expect(page.get_by_role("link", name="mnist-tf")).to_be_visible()
    expect(page.locator(".mlp-loading")).to_have_count(0)
    assert [url for url in loaded if "front." in url] == []


@pytest.mark.parametrize("name", ["job", "tenant", "what-if"])
def test_axe_finds_nothing_in_chinese_either(pages: Pages, front: FrontService, name: str) -> None:
    story(front)
    page = pages.panel(PAGES[name][0], language=CHINESE)
    expect(page.locator("main h1")).to_be_visible()
    expect(page.locator(".mlp-loading")).to_have_count(0)
    assert_accessible(page)
