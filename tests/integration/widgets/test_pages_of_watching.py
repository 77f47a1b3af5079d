"""Usage by own report, alerts with silences and failed deliveries, hidden mail addresses, and a team's files, as people see them."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from support.front.alerts import alert
from support.front.axe import assert_accessible
from support.front.browser import shot
from support.front.pages import Pages, fits
from support.front.service import FrontService
from support.front.shapes import audited, when

LOOKS = {
    "light": (False, 1280, "en-US"),
    "dark": (True, 1280, "en-US"),
    "phone": (False, 420, "en-US"),
    "dark-phone-zh": (True, 420, "zh-CN"),
    "zh": (False, 1280, "zh-CN"),
}
OLD = "was recorded by an older version"
REPORTED = "The use of 8 core-hours and 24 GiB-hours of memory is known by the jobs' own reports alone."


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("path", ["admin/usage", "tenants/red/usage"])
def test_use_by_own_report_has_its_column_and_a_sentence(pages: Pages, look: str, path: str) -> None:
    dark, width, language = LOOKS[look]
    page = pages.panel(path, dark=dark, width=width, language=language)
    if language == "en-US":
        card = page.get_by_role("region", name="By owner and kind of work")
        expect(card).to_contain_text(REPORTED)
        expect(card).not_to_contain_text(OLD)
        expect(card.get_by_role("row").filter(has_text="a100")).to_contain_text("8.00")
        if width > 1000:
            expect(card.get_by_role("columnheader", name="by own report")).to_be_visible()
            expect(card.get_by_role("columnheader", name="of unknown source")).to_have_count(0)
    shot(page, f"watch-{path.replace('/', '-')}-{look}", full=True)
    assert fits(page)
    assert_accessible(page)


@pytest.mark.parametrize("look", ["light", "dark-phone-zh"])
def test_use_of_an_unknown_source_is_named_and_measured_use_needs_no_words(
    pages: Pages, front: FrontService, look: str
) -> None:
    dark, width, language = LOOKS[look]
    front.data.accounting.older = True
    page = pages.panel("admin/usage", dark=dark, width=width, language=language)
    shot(page, f"watch-usage-older-{look}", full=True)
    assert fits(page)
    if language == "en-US":
        expect(page.locator("main")).to_contain_text(OLD)
        expect(page.get_by_role("columnheader", name="of unknown source")).to_be_visible()
    front.data.accounting.older, front.data.accounting.measured = False, True
    page = pages.panel("admin/usage", language="en-US")
    expect(page.get_by_role("columnheader", name="not measured")).to_be_visible()
    for words in ("by own report", "of unknown source", "own reports", OLD):
        expect(page.locator("main")).not_to_contain_text(words)


@pytest.mark.parametrize("look", LOOKS)
def test_alerts_have_their_since_silences_their_ends_and_failed_deliveries_are_on_top(
    pages: Pages, front: FrontService, look: str
) -> None:
    dark, width, language = LOOKS[look]
    text = "Alertmanager could not deliver these notifications in the last hour: email (3), webhook (12)"
    front.data.alerts.delivery = {"state": "failed", "text": text, "failed": {"email": 3}, "checked_at": None}
    front.data.alerts.alerts[2] |= {"silence": 1, "state_since": when(-7300)}
    front.data.alerts.alerts.append(
        alert(9, "MLPBackupOld", severity="critical", since=when(-200_000), state_since=when(-180_000))
    )
    page = pages.panel("admin/alerts", dark=dark, width=width, language=language)
    expect(page.locator(".mlp-note")).to_contain_text(text)
    shot(page, f"watch-alerts-{look}", full=True)
    assert fits(page)
    assert_accessible(page)


@pytest.mark.parametrize("look", LOOKS)
def test_mail_addresses_are_hidden_where_people_and_admins_read_them(
    pages: Pages, front: FrontService, look: str
) -> None:
    dark, width, language = LOOKS[look]
    page = pages.panel("me", dark=dark, width=width, language=language)
    expect(page.locator("main")).to_contain_text("***@example.org")
    shot(page, f"watch-me-{look}", full=True)
    assert fits(page)
    listed = "work (***@example.org), hook (https://hooks.example.org)"
    front.data.audit.append(audited(5, "ann", "notifications.set", "ann", None, channels=listed))
    page = pages.panel("admin/audit", dark=dark, width=width, language=language)
    expect(page.locator("main")).to_contain_text("***@example.org")
    shot(page, f"watch-audit-{look}", full=True)
    assert fits(page)


@pytest.mark.parametrize("look", LOOKS)
def test_a_teams_page_gives_files_of_its_entries(pages: Pages, front: FrontService, look: str) -> None:
    dark, width, language = LOOKS[look]
    front.data.session |= {"admin": False, "tenant_admin": ["red"]}
    page = pages.panel("tenants/red#log", dark=dark, width=width, language=language)
    base = "/services/mlp/api/v1/tenants/red/audit"
    for name, form, ending in (("CSV", "csv", "csv"), ("JSON", "lines", "jsonl")):
        link = page.locator(f"a[href='{base}:{form}']")
        expect(link).to_contain_text(name)
        expect(link).to_have_attribute("download", f"audit-red.{ending}")
    shot(page, f"watch-team-{look}", full=True)
    assert fits(page)


@pytest.mark.parametrize("look", LOOKS)
def test_a_budget_without_prices_says_what_is_missing(pages: Pages, look: str) -> None:
    dark, width, language = LOOKS[look]
    page = pages.panel("usage", dark=dark, width=width, language=language)
    expect(page.locator(".mlp-budgets")).to_contain_text("this hub has no price list")
    shot(page, f"watch-budgets-{look}", full=True)
    assert fits(page)
