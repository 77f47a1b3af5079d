"""Who works without a mouse goes on where they are, whatever goes away, moves or cannot be used for a moment."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from support.front.pages import Pages, story
from support.front.service import FrontService


def press(page: Page, name: str) -> None:
    """Press a button by the keyboard."""
    page.get_by_role("button", name=name, exact=True).last.focus()
    page.keyboard.press("Enter")


def test_typed_input_stays_when_the_job_ends_meanwhile_and_the_focus_has_a_place(
    pages: Pages, front: FrontService
) -> None:
    page = pages.panel("admin/queue")
    page.get_by_role("button", name="Change digits-5").focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Change digits-5")
    dialog.get_by_label("Time limit").fill("2h")
    front.data.queue[:] = [e for e in front.data.queue if e["name"] != "digits-5"]
    front.push({"type": "changed"})
    expect(page.locator("main")).not_to_contain_text("digits-5")
    expect(dialog.get_by_label("Time limit")).to_have_value("2h")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("heading", level=1)).to_be_focused()  # the button that opened it is gone


def test_a_button_that_cannot_be_pressed_for_a_moment_keeps_the_focus(
    pages: Pages, front: FrontService
) -> None:
    page = pages.panel("admin/tenants/red")
    row = page.get_by_role("row").filter(has_text="digits-5")
    row.get_by_role("button", name="Put first: digits-5").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("digits-5 is first in the queue of red")).to_be_visible()
    expect(row.get_by_role("button", name=re.compile("digits-5")).last).to_be_focused()


def test_after_a_job_was_cancelled_one_is_still_at_its_actions(pages: Pages, front: FrontService) -> None:
    story(front)
    page = pages.panel("jobs/ann/digits")
    press(page, "Cancel job")
    expect(page.get_by_role("button", name="Let it continue")).to_be_focused()
    press(page, "Cancel job")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator(":focus")).to_have_count(1)
    assert page.evaluate("document.activeElement.closest('[role=group]')?.ariaLabel") == "Actions on digits"


def test_a_form_that_is_done_leaves_the_focus_at_its_card(pages: Pages, front: FrontService) -> None:
    page = pages.panel("admin")
    card = page.get_by_role("region", name="Announcements")
    card.get_by_role("button", name="Announce").focus()
    page.keyboard.press("Enter")
    expect(card.get_by_label("Text")).to_be_focused()
    page.keyboard.type("Red meets at four.")
    page.keyboard.press("Enter")
    expect(card).to_contain_text("Red meets at four.")
    expect(card.get_by_role("heading", name="Announcements")).to_be_focused()
    assert front.data.admin.announcements


def test_focus_that_the_user_moved_elsewhere_is_not_taken_back(pages: Pages, front: FrontService) -> None:
    story(front)
    pages.still = True
    page = pages.panel("admin/queue")
    page.get_by_role("button", name="Change digits-5").focus()
    page.locator("main h1").click()
    front.data.queue[:] = [e for e in front.data.queue if e["name"] != "digits-5"]
    front.push({"type": "changed"})
    expect(page.locator("main")).not_to_contain_text("digits-5")
    expect(page.locator("main h1")).to_be_focused()
