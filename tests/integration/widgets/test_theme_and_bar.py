"""The pages' frame: a theme of one's own choice, and a navigation bar that is all there on a small screen."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from support.front.browser import shot, two_frames
from support.front.pages import WINDOWS, Pages, cut_off, fits, restyle, story
from support.front.service import FrontService
from support.front.shapes import entry, fact

DARK = "rgb(21, 24, 27)"
LIGHT = "rgb(255, 255, 255)"


def has_ground(page: Page, color: str) -> None:
    expect(page.locator("#app")).to_have_css("background-color", color)


@pytest.mark.parametrize("system", ["light", "dark"])
def test_a_theme_is_chosen_against_the_system_s_and_kept(
    pages: Pages, front: FrontService, system: str
) -> None:
    story(front)
    other = {"light": "dark", "dark": "light"}[system]
    mine, theirs = (LIGHT, DARK) if system == "light" else (DARK, LIGHT)
    page = pages.panel("jobs/ann/digits", dark=system == "dark")
    theme = page.get_by_label("Theme")
    expect(theme).to_have_value("system")
    has_ground(page, mine)
    theme.select_option(other)
    has_ground(page, theirs)
    page.reload()
    expect(theme).to_have_value(other)
    expect(page.locator(".mlp-chart canvas")).to_have_count(3)
    has_ground(page, theirs)
    two_frames(page)
    shot(page, f"panel-theme-{other}-on-{system}", full=True)
    theme.select_option("system")
    has_ground(page, mine)
    page.emulate_media(color_scheme="light" if system == "dark" else "dark")
    has_ground(page, theirs)


PEOPLE = {
    "member": {"admin": False, "tenant_admin": []},
    "team-admin": {"admin": False, "tenant_admin": ["red", "speech-recognition"]},
    "admin": {"admin": True},
}
WIDTHS = (1920, 1441, 1440, 1366, 1341, 1280, *WINDOWS, 861, 860, 420, 360)


@pytest.mark.parametrize(("who", "language"), [*((who, "en-US") for who in PEOPLE), ("admin", "zh-CN")])
def test_the_bar_is_all_there_at_every_width(
    pages: Pages, front: FrontService, who: str, language: str
) -> None:
    story(front)
    front.data.session |= PEOPLE[who] | {"username": "maximiliane-von-droste"}
    page = pages.panel("quota", language=language)
    expect(page.get_by_role("banner")).to_be_visible()
    for width in WIDTHS:
        restyle(page, width=width)
        two_frames(page)
        if width == max(WINDOWS):
            shot(page, f"panel-bar-{who}-{language}")
        assert cut_off(page) == [], width
        assert fits(page), width
        for choice in page.get_by_role("banner").get_by_role("combobox").all():
            cut = choice.evaluate(
                "e => { const had = e.offsetWidth; e.style.maxWidth = 'none'; return e.offsetWidth - had; }"
            )
            assert cut == 0, width


@pytest.mark.parametrize("language", ["en-US", "zh-CN"])
def test_counts_of_waiting_requests_leave_an_administrators_navigation_in_one_row(
    pages: Pages, front: FrontService, language: str
) -> None:
    new = next(user for user in front.data.users if user["new"])
    front.data.users += [{**new, "username": f"new-{i}"} for i in range(24)]
    front.data.teams.requests *= 30
    page = pages.panel("quota", language=language, width=1200)
    expect(page.locator(".mlp-count")).to_have_text([re.compile(r"^\d\d\D"), re.compile(r"^25\D")])
    rows = "nav => new Set([...nav.querySelectorAll('a')].map((a) => Math.round(a.getBoundingClientRect().bottom))).size"
    for width in (1280, 1200, 1180):
        restyle(page, width=width)
        two_frames(page)
        assert page.get_by_role("banner").get_by_role("navigation").evaluate(rows) == 1, (
            f"{width} px: an administrator's navigation is full; give a new page no entry there, but a link on another page"
        )
        shot(page, f"panel-bar-counts-{language}-{width}")
        assert cut_off(page) == [], width


def test_the_queue_says_why_no_start_is_known(pages: Pages, front: FrontService) -> None:
    page = pages.panel("admin/queue")
    row = page.get_by_role("row", name="digits-5")
    expect(row).to_contain_text("No time can be estimated: digits-3 of bob has no time limit.")
    expect(row).to_contain_text("not known")


def test_a_notebook_server_that_waits_is_in_the_queue_with_its_reason(
    pages: Pages, front: FrontService
) -> None:
    asked = fact("asked", "asked", "4 cpu")
    server = entry("gpu", kind="server", user="carol", run=0, tenant="blue", position=1, facts=[asked])
    front.data.queue.append({**server, "reason": "WaitingForQuota", "message": "Needs 4 cpu, 1 free."})
    page = pages.panel("admin/queue")
    row = page.get_by_role("row", name="Notebook server")
    expect(row).to_contain_text("Needs 4 cpu, 1 free.")
    expect(row).to_contain_text("gpu")
    expect(row.get_by_role("link", name="blue")).to_be_visible()
    row.get_by_role("button", name="Numbers for notebook server gpu of carol").click()
    expect(row.locator(".mlp-numbers")).to_contain_text(
        "4 cpu"
    )  # told without asking for a job, which it is not
