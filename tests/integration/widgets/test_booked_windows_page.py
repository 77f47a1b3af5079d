"""Booked windows on a tenant's page: by keyboard, with what is wrong said at its field."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from support.front.browser import shot
from support.front.pages import Pages, fits
from support.front.service import FrontService


def region(page: Page):
    return page.get_by_role("region", name="Booked windows")


def test_a_window_is_booked_by_keyboard_and_removed_after_a_question(
    pages: Pages, front: FrontService
) -> None:
    page = pages.panel("admin/tenants/red#settings")
    expect(region(page)).to_contain_text("No windows are booked")
    page.get_by_role("button", name="Book a window").press("Enter")
    expect(page.get_by_label("Window name")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Window name")).to_be_focused()
    page.keyboard.type("demo")
    page.get_by_label("From").fill("2031-03-01T08:00")
    page.get_by_label("Until").fill("2031-03-01T07:00")
    page.get_by_label("Keep CPU free").fill("3")
    expect(page.get_by_role("alert")).to_have_text("is not after the start")
    shot(page, "panel-book-window", full=True)
    page.get_by_label("Until").fill("2031-03-01T18:00")
    msg = "the nodes have 2 cpu, of which at 2031-03-01T09:00:00Z 1 cpu is kept; this window asks for 3. Book less"
    refusal = {"msg": msg, "reason": "ExceedsMaxQuota"}
    front.data.forced["POST /tenants/red/bookings"] = (403, refusal)
    page.get_by_role("button", name="Book", exact=True).click()
    here = page.evaluate("() => new Date('2031-03-01T09:00:00Z').toTimeString().slice(0, 5)")
    told = page.get_by_role("alert")
    expect(told).to_contain_text(
        f"of which at 2031-03-01 {here} 1 cpu is kept; this window asks for 3. Book less"
    )
    front.data.forced.clear()
    page.get_by_role("button", name="Book", exact=True).click()
    expect(region(page)).to_contain_text("2031-03-01 08:00 to 2031-03-01 18:00")
    made = front.data.bookings["red"][0]
    assert (made["name"], made["amount"], made["start"][-1]) == ("demo", {"cpu": 3}, "Z")

    page.get_by_role("button", name="Remove window demo").click()
    expect(page.get_by_role("dialog")).to_contain_text(
        "3 cpu are no longer kept free for red. Running work continues."
    )
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(region(page)).to_contain_text("No windows are booked")
    assert front.data.bookings["red"] == []


def test_a_window_that_no_longer_fits_says_so_and_why(pages: Pages) -> None:
    page = pages.panel("admin/tenants/teal#settings")
    row = region(page).get_by_role("row").filter(has_text="conference-demo")
    expect(row).to_contain_text("has not fit since")
    expect(row).to_contain_text("needs 8 cpu, but 6 is left: the quota of teal is 6 cpu")
    expect(region(page).get_by_role("row").filter(has_text="review")).not_to_contain_text("has not fit since")
    note = "A notebook server that runs into the window keeps its resources until it is stopped"
    expect(region(page).get_by_text(note)).to_have_count(1)
    shot(page, "panel-window-that-no-longer-fits", full=True)


def test_the_form_fits_a_narrow_window(pages: Pages) -> None:
    page = pages.panel("admin/tenants/teal#settings", dark=True, width=420)
    page.get_by_role("button", name="Book a window").click()
    shot(page, "panel-book-window-narrow", full=True)
    assert fits(page)


def test_a_user_without_platform_admin_rights_can_only_read(pages: Pages, front: FrontService) -> None:
    front.data.session |= {"admin": False, "tenants": ["teal"], "tenant_admin": ["teal"]}
    page = pages.panel("tenants/teal#settings")
    expect(region(page)).to_contain_text("conference-demo")
    expect(region(page)).to_contain_text("8 cpu, 2 a100 gpu")
    expect(region(page).get_by_role("button")).to_have_count(0)


def test_windows_are_read_again_once_the_quota_is_saved(pages: Pages) -> None:
    pages.still = True
    page, front = pages.panel("admin/tenants/teal#settings"), pages.front
    row = region(page).get_by_role("row").filter(has_text="conference-demo")
    expect(row).to_contain_text("has not fit since")
    window = next(w for w in front.data.bookings["teal"] if w["name"] == "conference-demo")
    window["short"] = None
    page.get_by_role("button", name="Edit quota").click()
    page.get_by_label("CPU", exact=True).fill("16")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(row).not_to_contain_text("has not fit since")
