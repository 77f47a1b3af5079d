"""Accounts for programs on a tenant's page: made by keyboard, their tokens shown once, turned and ended after a question."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from support.front.axe import assert_accessible, assert_accessible_light_and_dark
from support.front.browser import shot
from support.front.pages import LOOKS, Pages, fits
from support.front.programs import account_of, token_of
from support.front.service import FrontService
from support.front.shapes import when


def region(page: Page) -> Locator:
    return page.get_by_role("region", name="Accounts for programs")


def test_an_account_is_made_by_keyboard_and_its_token_is_shown_once(
    pages: Pages, front: FrontService
) -> None:
    page = pages.panel("admin/tenants/red#people")
    expect(region(page)).to_contain_text("This team has no accounts for programs")
    page.get_by_role("button", name="New account").press("Enter")
    expect(page.get_by_label("Name", exact=True)).to_be_focused()
    page.keyboard.press("Enter")
    expect(region(page).get_by_role("alert").first).to_have_text("a name is needed")
    page.keyboard.type("Night build")
    expect(region(page).get_by_role("alert").first).to_contain_text("such as night-build")
    page.keyboard.press("Control+A")
    page.keyboard.type("nightly")
    page.get_by_label("Days its token is valid").fill("400")
    expect(region(page).get_by_role("alert")).to_have_text("a whole number from 1 to 365")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Days its token is valid")).to_be_focused()
    page.get_by_label("Days its token is valid").fill("30")
    assert_accessible(page)
    shot(page, "panel-programs-new", full=True)
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Token of svc-nightly")
    shown = dialog.get_by_label("Its program sets it as MLP_TOKEN")
    expect(shown).to_have_value("secret-nightly-1")
    expect(shown).to_be_focused()
    expect(dialog).to_contain_text("is shown only once")
    assert_accessible(page)
    shot(page, "panel-programs-token")
    dialog.get_by_role("button", name="I have stored it").click()
    expect(dialog).to_have_count(0)
    row = region(page).get_by_role("row").filter(has_text="svc-nightly")
    expect(row).to_contain_text("never used")
    expect(page.locator("body")).not_to_contain_text("secret-nightly-1")


def test_another_token_leaves_the_old_ones_a_while_and_an_end_is_asked_for_twice(
    pages: Pages, front: FrontService
) -> None:
    front.data.programs["red"] = {"nightly": account_of("nightly", token_of(1))}
    page = pages.panel("admin/tenants/red#people")
    row = region(page).get_by_role("row").filter(has_text="svc-nightly")
    expect(row).to_contain_text("used 5 min ago from 10.1.2.3")
    page.get_by_role("button", name="New token for nightly").press("Enter")
    expect(page.get_by_label("Days the new token is valid")).to_be_focused()
    page.get_by_label("Hours the old tokens stay valid").fill("2")
    page.get_by_role("button", name="Make token").click()
    dialog = page.get_by_role("dialog", name="Token of svc-nightly")
    expect(dialog).to_contain_text("Earlier tokens are valid until")
    page.keyboard.press("Escape")
    expect(row.get_by_role("listitem")).to_have_count(2)
    page.get_by_role("button", name="End account nightly").click()
    question = page.get_by_role("dialog", name="End account nightly?")
    expect(question).to_contain_text("All its tokens become invalid")
    question.get_by_role("button", name="Cancel").click()
    assert "nightly" in front.data.programs["red"]
    page.get_by_role("button", name="End account nightly").click()
    question.get_by_role("button", name="End account").click()
    expect(region(page)).to_contain_text("This team has no accounts for programs")


def test_an_old_login_is_told_where_the_password_is_entered_and_what_was_typed_stays(
    pages: Pages, front: FrontService
) -> None:
    page = pages.panel("admin/tenants/red#people")
    page.get_by_role("button", name="New account").click()
    page.get_by_label("Name", exact=True).fill("nightly")
    refusal = {"msg": "this needs a password", "reason": "LoginTooOld"}
    front.data.forced["POST /tenants/red/services"] = (403, refusal)
    page.get_by_role("button", name="Make account and token").click()
    way = region(page).get_by_role("link", name="Enter your password")
    expect(way).to_have_attribute("href", "/hub/confirm")
    expect(page.get_by_label("Name", exact=True)).to_have_value("nightly")
    front.data.forced.clear()
    page.get_by_role("button", name="Make account and token").click()
    expect(page.get_by_role("dialog", name="Token of svc-nightly")).to_be_visible()


def test_a_name_that_is_taken_is_told_at_its_field(pages: Pages, front: FrontService) -> None:
    page = pages.panel("admin/tenants/red#people")
    page.get_by_role("button", name="New account").click()
    page.get_by_label("Name", exact=True).fill("nightly")
    refusal = {"msg": "the name nightly is taken; choose another one", "reason": "Conflict"}
    front.data.forced["POST /tenants/red/services"] = (403, refusal)
    page.get_by_role("button", name="Make account and token").click()
    expect(region(page).get_by_role("alert")).to_have_text(refusal["msg"])
    expect(page.get_by_label("Name", exact=True)).to_be_focused()


def test_a_fault_of_the_list_is_shown_beside_the_rest_of_the_page(pages: Pages, front: FrontService) -> None:
    front.data.forced["GET /tenants/red/services"] = (503, {"msg": "the database is busy"})
    page = pages.panel("admin/tenants/red#people")
    expect(region(page).get_by_role("alert")).to_contain_text("the database is busy")
    expect(page.get_by_role("region", name="Members", exact=True)).to_contain_text("bob")
    front.data.forced.clear()
    region(page).get_by_role("button", name="Try again").click()
    expect(region(page)).to_contain_text("This team has no accounts for programs")


def test_a_user_who_does_not_administer_the_tenant_sees_no_program_accounts(
    pages: Pages, front: FrontService
) -> None:
    front.data.session |= {"admin": False, "tenant_admin": []}
    page = pages.panel("tenants/red")
    expect(page.get_by_role("region", name="Quota in use")).to_be_visible()
    expect(region(page)).to_have_count(0)
    assert "GET /tenants/red/services" not in front.seen


def test_a_program_account_cannot_be_changed_like_a_personal_member(
    pages: Pages, front: FrontService
) -> None:
    place = {"tenant": "red", "user": "svc-nightly", "role": "member", "source": "manual"}
    front.data.members["red"]["svc-nightly"] = place
    page = pages.panel("admin/tenants/red#people")
    row = (
        page.get_by_role("region", name="Members", exact=True)
        .get_by_role("row")
        .filter(has_text="svc-nightly")
    )
    expect(row).to_contain_text("account for a program")
    expect(row.get_by_role("button")).to_have_count(0)
    expect(row.get_by_role("combobox")).to_have_count(0)


@pytest.mark.parametrize("look", LOOKS)
def test_accounts_look_well(pages: Pages, front: FrontService, look: str) -> None:
    dark, width = LOOKS[look]
    front.data.programs["red"] = {
        "nightly": account_of(
            "nightly",
            token_of(1, expires=when(7200), ends_soon=True),
            token_of(2, last_used=None, last_from=""),
        ),
        "a-name-of-28-letters-at-most": account_of("a-name-of-28-letters-at-most"),
        "release": account_of("release", token_of(3, last_from="2001:db8:85a3:8d3:1319:8a2e:370:7348")),
    }
    page = pages.panel("admin/tenants/red#people", dark=dark, width=width)
    expect(region(page)).to_contain_text("no valid token")
    region(page).scroll_into_view_if_needed()
    shot(page, f"panel-programs-{look}", full=True)
    assert fits(page)
    if look == "light":
        page.evaluate("scrollTo(0, 0)")  # where it was scrolled to, the bar on top may lie on half of a row
        assert_accessible_light_and_dark(page)


def test_accounts_are_told_in_chinese(pages: Pages, front: FrontService) -> None:
    front.data.programs["red"] = {"nightly": account_of("nightly", token_of(1))}
    page = pages.panel("admin/tenants/red#people", width=420, language="zh-CN")
    here = page.get_by_role("region", name="程序账户")
    expect(here).to_contain_text("10.1.2.3")
    page.get_by_role("button", name="新建账户").click()
    expect(page.get_by_label("令牌有效天数")).to_have_value("90")
    shot(page, "panel-programs-chinese", full=True)
    assert fits(page)
    page.evaluate("scrollTo(0, 0)")  # where it was scrolled to, the bar on top may lie on half of a row
    assert_accessible(page)
