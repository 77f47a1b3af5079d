"""The card of notifications on one's own page: channels tried, added and removed, quiet hours, and what is refused."""

from __future__ import annotations

from playwright.sync_api import expect

from support.front.browser import shot
from support.front.pages import Pages
from support.front.service import FrontService
from support.waiting import wait_for


def test_a_channel_is_tried_changed_and_removed_after_a_question(pages: Pages, front: FrontService) -> None:
    page = pages.panel("me")
    card = page.get_by_role("region", name="Notifications")
    expect(card).to_contain_text("It answered with status 404")
    card.get_by_role("button", name="Test mail").click()
    expect(card).to_contain_text("mail accepted it")
    card.get_by_role("button", name="Test team").click()
    expect(card).to_contain_text("team did not accept it: it answers 404 Not Found")
    events = card.get_by_role("group", name="team (hooks.example.org)")
    events.get_by_role("checkbox", name="late start").check()
    expect(events.get_by_role("checkbox", name="late start")).to_be_checked()
    card.get_by_role("button", name="Remove team").click()
    dialog = page.get_by_role("dialog")
    shot(page, "panel-notifications-remove")
    dialog.get_by_role("button", name="Cancel").click()
    expect(events).to_be_visible()
    card.get_by_role("button", name="Remove team").click()
    dialog.get_by_role("button", name="Remove").click()
    expect(events).to_have_count(0)
    assert [one["name"] for one in front.data.notices.chosen["channels"]] == ["mail"]


def test_a_new_channel_is_added_by_keyboard_and_a_refusal_keeps_what_was_typed(
    pages: Pages, front: FrontService
) -> None:
    page = pages.panel("me")
    card = page.get_by_role("region", name="Notifications")
    card.get_by_label("Name of a new channel").fill("phone")
    address = card.get_by_label("Its address")
    address.fill("ftp://example.net")
    address.press("Enter")
    expect(card.get_by_role("alert")).to_contain_text("an address begins with mailto:")
    expect(address).to_have_value("ftp://example.net")
    address.fill("https://example.net/hook")
    address.press("Enter")
    expect(card.get_by_role("group", name="phone (example.net)")).to_be_visible()
    expect(card.get_by_role("alert")).to_have_count(0)
    expect(address).to_have_value("")


def test_quiet_hours_are_set_whole_and_given_up(pages: Pages, front: FrontService) -> None:
    page = pages.panel("me")
    card = page.get_by_role("region", name="Notifications")
    begin, keep = card.get_by_label("Quiet from"), card.get_by_role("button", name="Keep quiet hours")
    expect(begin).to_have_value("22:00")
    begin.fill("")
    expect(keep).to_be_disabled()
    begin.fill("21:30")
    keep.click()
    expect(card.get_by_role("button", name="No quiet hours")).to_be_visible()
    wait_for(lambda: front.data.notices.chosen["quiet"] == {"begin": "21:30", "until": "07:00"})
    card.get_by_role("button", name="No quiet hours").click()
    expect(card.get_by_role("button", name="No quiet hours")).to_have_count(0)
    expect(begin).to_have_value("")
    assert front.data.notices.chosen["quiet"] is None
