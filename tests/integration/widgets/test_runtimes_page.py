"""Runtimes on a tenant's page: registered by keyboard, with what is wrong said at its field; reviewed by a platform admin."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from support.front.axe import assert_accessible
from support.front.browser import shot
from support.front.pages import Pages, fits
from support.front.service import FrontService
from support.front.tenants import runtime_of


def region(page: Page):
    return page.get_by_role("region", name="Runtimes")


def test_a_runtime_is_registered_by_keyboard_changed_and_removed_after_a_question(
    pages: Pages, front: FrontService
) -> None:
    page = pages.panel("admin/tenants/red#settings")
    expect(region(page)).to_contain_text("This team has not registered any runtimes")
    page.get_by_role("button", name="Register a runtime").press("Enter")
    expect(page.get_by_label("Name", exact=True)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Name", exact=True)).to_be_focused()
    expect(region(page).get_by_role("alert").first).to_have_text("a name is needed")
    page.keyboard.type("ps-workers")
    page.get_by_label("Title").fill("Parameter servers")
    page.get_by_label("Command of a rank").fill("{python}\n-u\n{entry}\n{args}")
    page.get_by_label("Roles").fill("chief 1, worker, ps")
    assert_accessible(page)
    shot(page, "panel-register-runtime", full=True)
    fits(page)
    refusal = {"msg": "program: {entri} does not exist; available: {python}", "reason": "Invalid"}
    front.data.forced["PUT /tenants/red/runtimes/ps-workers"] = (403, refusal)
    page.get_by_role("button", name="Register", exact=True).click()
    expect(region(page).get_by_role("alert")).to_contain_text("{entri} does not exist")
    expect(page.get_by_label("Command of a rank")).to_be_focused()
    front.data.forced.clear()
    page.get_by_role("button", name="Register", exact=True).click()
    row = region(page).get_by_role("row").filter(has_text="ps-workers")
    expect(row).to_contain_text("{python} -u {entry} {args}")
    made = front.data.runtimes["red"]["ps-workers"]
    assert [(r["name"], r["count"]) for r in made["roles"]] == [("chief", 1), ("worker", None), ("ps", None)]

    page.get_by_role("button", name="Edit runtime ps-workers").click()
    expect(page.get_by_label("Name", exact=True)).to_be_disabled()
    page.get_by_label("Title").fill("Servers")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(row).to_contain_text("Servers")
    page.get_by_role("button", name="Remove runtime ps-workers").click()
    expect(page.get_by_role("dialog")).to_contain_text("Jobs that were submitted with it keep it.")
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(region(page)).to_contain_text("This team has not registered any runtimes")


def test_a_platform_admin_reads_what_waits_for_review_and_decides(pages: Pages, front: FrontService) -> None:
    front.data.runtimes["red"] = {"mine": runtime_of("red", "mine")}
    page = pages.panel("admin/tenants/red#settings")
    row = region(page).get_by_role("row").filter(has_text="mine")
    expect(row).to_contain_text("waits for review")
    page.get_by_role("button", name="Approve runtime mine").click()
    expect(row).to_contain_text("approved")
    page.get_by_role("button", name="Disable runtime mine").click()
    expect(row).to_contain_text("disabled")


def test_a_fault_of_the_list_is_shown_beside_the_rest_of_the_page(pages: Pages, front: FrontService) -> None:
    front.data.forced["GET /tenants/red/runtimes"] = (503, {"msg": "the database is busy"})
    page = pages.panel("admin/tenants/red#settings")
    expect(region(page).get_by_role("alert")).to_contain_text("the database is busy")
    front.data.forced.clear()
    region(page).get_by_role("button", name="Try again").click()
    expect(region(page)).to_contain_text("has not registered any runtimes")
