"""Members whom the login's provider puts into a tenant: the panel says who manages them, and offers nothing that would be refused."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from support.front.browser import shot, two_frames
from support.front.pages import LOOKS, Pages, fits, restyle
from support.front.service import FrontService

WORDS = {
    "en-US": ("managed by Keycloak", "Member", "Remove bob"),
    "zh-CN": ("由 Keycloak 管理", "成员", "移除 bob"),
}


@pytest.mark.parametrize("language", WORDS)
def test_a_managed_membership_shows_text_instead_of_buttons(
    pages: Pages, front: FrontService, language: str
) -> None:
    managed, member, remove = WORDS[language]
    for user in ("carol", "christopher-montgomery-2"):
        front.data.members["red"][user] = {
            "tenant": "red", "user": user, "role": "member", "source": "group", "managed_by": "Keycloak",
        }  # fmt: skip
    page = pages.panel("admin/tenants/red#people", language=language)
    row = page.get_by_role("row").filter(has_text="carol").filter(has_text=managed)
    expect(row).to_contain_text(managed)
    expect(row).to_contain_text(member)
    expect(row.get_by_role("button")).to_have_count(0)
    expect(row.get_by_role("combobox")).to_have_count(0)
    expect(page.get_by_role("button", name=remove)).to_be_visible()
    for look, (dark, width) in LOOKS.items():
        restyle(page, dark=dark, width=width)
        two_frames(page)
        expect(row.get_by_text(managed)).to_be_visible()
        shot(page, f"panel-managed-{language}-{look}", full=True)
        assert fits(page), look
