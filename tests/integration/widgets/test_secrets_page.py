"""Secrets on the pages of datasets and of a team: set by keyboard, shown to nobody, set anew, removed after a question."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from support.front.axe import assert_accessible
from support.front.browser import shot
from support.front.pages import LOOKS, Pages, fits
from support.front.secrets import secret_of
from support.front.service import FrontService

KEY, OPENS = "AKIAIOSFODNN7", "not/to/be+shown"


def region(page: Page) -> Locator:
    return page.get_by_role("region", name="Secrets", exact=True)


def set_by_keyboard(page: Page) -> None:
    page.get_by_role("button", name="New secret").press("Enter")
    expect(page.get_by_label("Name", exact=True)).to_be_focused()
    page.keyboard.press("Enter")
    expect(region(page).get_by_role("alert")).to_have_text(["a name is needed", "needed", "needed"])
    page.keyboard.type("lab")
    for typed in (KEY, OPENS):
        page.keyboard.press("Tab")
        page.keyboard.type(typed)
    expect(page.get_by_label("Secret access key")).to_have_attribute("type", "password")
    assert_accessible(page)
    page.keyboard.press("Enter")
    row = region(page).get_by_role("row").filter(has_text="lab")
    expect(row).to_contain_text("access_key_id, secret_access_key")
    assert OPENS not in page.content()


def test_a_personal_secret_is_set_offered_for_a_copy_replaced_and_removed(
    pages: Pages, front: FrontService
) -> None:
    front.data.secrets[front.data.session["tenants"][0]] = {
        "shared": secret_of("shared", "tenant", "access_key_id")
    }
    page = pages.panel("datasets")
    expect(region(page)).to_contain_text("No secrets yet")
    set_by_keyboard(page)
    page.get_by_role("button", name="Use an object store").click()
    expect(page.locator("datalist option[value=lab]")).to_have_count(1)
    expect(page.locator("datalist option[value=shared]")).to_have_count(1)
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Set lab again").click()
    expect(page.get_by_label("Name", exact=True)).to_be_disabled()
    expect(page.get_by_label("Access key's id")).to_have_value("")
    page.get_by_label("Access key's id").fill("other")
    page.get_by_label("Secret access key").fill("one")
    page.get_by_label("Session token").fill("for a while")
    page.get_by_role("button", name="Set secret").click()
    row = region(page).get_by_role("row").filter(has_text="lab")
    expect(row).to_contain_text("session_token")
    page.get_by_role("button", name="Remove lab").click()
    question = page.get_by_role("dialog", name="Remove secret lab?")
    expect(question).to_contain_text("Its contents are deleted")
    question.get_by_role("button", name="Remove").click()
    expect(region(page)).to_contain_text("No secrets yet")
    assert not pages.unexpected()


@pytest.mark.parametrize("look", LOOKS)
def test_a_teams_secrets_on_its_page(pages: Pages, front: FrontService, look: str) -> None:
    dark, width = LOOKS[look]
    page = pages.panel("admin/tenants/red#settings", dark=dark, width=width)
    set_by_keyboard(page)
    assert list(front.data.secrets) == ["red"]
    front.data.forced["PUT /tenants/red/secrets/lab"] = (403, {"msg": "there are 50 secrets; remove one that nobody needs", "reason": "Invalid"})  # fmt: skip
    page.get_by_role("button", name="Set lab again").click()
    page.get_by_label("Access key's id").fill("a")
    page.get_by_label("Secret access key").fill("b")
    page.get_by_role("button", name="Set secret").click()
    expect(region(page).get_by_role("alert")).to_contain_text("there are 50 secrets")
    region(page).scroll_into_view_if_needed()
    shot(page, f"panel-secrets-{look}", full=True)
    assert fits(page)
