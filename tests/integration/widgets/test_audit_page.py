"""The audit page: who changed what, what the scheduler decided and why; filters, pages, empty, error, keyboard."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Response, expect

from support.front.browser import shot
from support.front.pages import LOOKS, Pages, fits
from support.front.service import FrontService
from support.front.shapes import audited, decided


def asked_for(response: Response) -> dict[str, list[str]]:
    """Return what an answer's request asked for."""
    return parse_qs(urlsplit(response.url).query)


@pytest.mark.parametrize("look", LOOKS)
def test_changes_are_listed_with_their_actors_and_user_input_stays_text(
    pages: Pages, front: FrontService, look: str
) -> None:
    dark, width = LOOKS[look]
    page = pages.panel("admin/audit", dark=dark, width=width)
    main = page.locator("main")
    expect(main).to_contain_text("5 changes")
    rows = page.get_by_role("row")
    expect(rows.filter(has_text="booking.short")).to_contain_text("conference-demo in teal")
    expect(rows.filter(has_text="booking.short")).to_contain_text("needs 8 cpu, 6 are left")
    changed = "cpu 3 -> 0.5 · borrowing limit cpu 1 -> 2 · cohort none -> main"
    expect(rows.filter(has_text="tenant.update").locator("td").last).to_have_text(changed)
    expect(rows.filter(has_text="member.set")).to_contain_text("role member · was admin · 7 times, last ")
    expect(rows.filter(has_text="tenant.create")).to_contain_text("<b>x</b>")
    expect(page.locator("main b")).to_have_count(0)
    more = page.get_by_role("button", name="Details of tenant.create")
    more.press("Enter")
    expect(more).to_have_attribute("aria-expanded", "true")
    shot(page, f"panel-audit-changes-{look}", full=True)
    assert fits(page)
    more.press("Enter")
    page.get_by_role("link", name="red", exact=True).click()
    expect(page.get_by_role("heading", name="red", level=1)).to_be_visible()
    assert not pages.unexpected()


def test_the_page_shows_the_chain_and_gives_files_of_its_entries(pages: Pages, front: FrontService) -> None:
    page = pages.panel("admin/audit")
    main = page.locator("main")
    expect(main).to_contain_text("Head of the chain: link 1204, 3f9a3f9a3f9a")
    expect(main).to_contain_text(": no break")
    page.get_by_label("To", exact=True).fill("a&b")
    page.get_by_label("To", exact=True).press("Enter")
    base = "/services/mlp/api/v1/audit"
    link = page.get_by_role("link", name="CSV")
    expect(link).to_have_attribute("href", f"{base}:csv?object=a%26b")
    expect(link).to_have_attribute("download", "audit.csv")
    expect(page.get_by_role("link", name="JSON lines")).to_have_attribute(
        "href", f"{base}:lines?object=a%26b"
    )
    front.data.audit_head |= {"sound": False}
    again = pages.panel("admin/audit")
    expect(again.get_by_role("alert")).to_contain_text(
        "entries were changed or removed; run mlp-hub audit --verify"
    )
    again.get_by_label("Show", exact=True).select_option("decisions")
    expect(again.get_by_role("link", name="CSV")).to_have_count(0)
    assert not pages.unexpected()


def test_filters_are_asked_for_on_enter_and_can_be_taken_back(pages: Pages, front: FrontService) -> None:
    page = pages.panel("admin/audit")
    expect(page.locator("main")).to_contain_text("5 changes")
    front.data.audit.clear()
    page.get_by_label("Who", exact=True).fill("a&b")
    page.get_by_label("Who", exact=True).press("Enter")
    expect(page.locator(".mlp-empty")).to_contain_text("No entry matches these filters")
    page.get_by_label("What", exact=True).fill("tenant.")
    page.get_by_label("To", exact=True).fill("red")
    page.get_by_label("To", exact=True).press("Enter")
    with page.expect_response(lambda r: "since=" in r.url and "object=red" in r.url) as answered:
        page.get_by_label("Since").select_option("86400")
    asked = asked_for(answered.value)
    assert set(asked) == {"limit", "actor", "action", "object", "since"}
    assert (asked["actor"], asked["action"], asked["object"]) == (["a&b"], ["tenant."], ["red"])
    front.data.audit.append(audited(1, "ann", "tenant.create", "red", "red"))
    with page.expect_response(lambda r: "/audit?" in r.url and "actor=" not in r.url) as answered:
        page.get_by_role("button", name="Show all").press("Enter")
    assert set(asked_for(answered.value)) == {"limit"}
    expect(page.locator("main")).to_contain_text("1 change")
    expect(page.get_by_label("Who", exact=True)).to_have_value("")
    assert not pages.unexpected()


def test_older_entries_come_when_asked_for_and_a_fault_loses_nothing(
    pages: Pages, front: FrontService
) -> None:
    front.data.page_of["GET /audit"] = 2
    page = pages.panel("admin/audit")
    expect(page.locator("main")).to_contain_text("2 changes (the newest)")
    more = page.get_by_role("button", name="Show more")
    front.data.forced["GET /audit"] = (503, {"msg": "the database is busy"})
    more.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("the database is busy")
    expect(page.get_by_role("row")).to_have_count(3)
    front.data.forced.clear()
    page.get_by_role("button", name="Try again").click()
    expect(page.locator("main")).to_contain_text("4 changes (the newest)")
    more.press("Enter")
    expect(page.locator("main")).to_contain_text("5 changes")
    expect(page.locator("main")).not_to_contain_text("(the newest)")
    expect(more).to_have_count(0)
    assert not pages.unexpected()


@pytest.mark.parametrize("look", LOOKS)
def test_any_jobs_decision_tells_why_then_why_there_and_why_this_victim(
    pages: Pages, front: FrontService, look: str
) -> None:
    front.data.made = [
        decided("bob", "digits-4"),
        decided("carol", "lstm", kind="preempted", summary="stopped to make room for job digits-4 of bob"),
        decided("ann", "digits", kind="resized", summary="continues with 3 workers", nodes=[], victims=[]),
    ]
    dark, width = LOOKS[look]
    page = pages.panel("admin/audit", dark=dark, width=width)
    page.get_by_label("Show", exact=True).select_option("decisions")
    expect(page.locator("main")).to_contain_text("3 decisions")
    button = page.get_by_role("button", name="Why admitted, digits-4 of bob")
    button.press("Enter")
    told = page.get_by_role("group", name="Why digits-4 of bob was admitted")
    for text in (
        "Until then: waits for quota.",
        "job digits-3 of bob ended",
        "node-2",
        "lstm of carol",
        "2 jobs have",
    ):
        expect(told).to_contain_text(text)
    shot(page, f"panel-audit-decisions-{look}", full=True)
    assert fits(page)
    button.press("Enter")
    expect(told).to_have_count(0)
    page.get_by_label("Kind").select_option("preempted")
    page.get_by_label("User").fill("carol")
    page.get_by_label("Job", exact=True).fill("lstm")
    with page.expect_response(lambda r: "job=lstm" in r.url) as answered:
        page.get_by_label("Job", exact=True).press("Enter")
    asked = asked_for(answered.value)
    assert {k: asked[k] for k in ("kind", "user", "job")} == {
        "kind": ["preempted"],
        "user": ["carol"],
        "job": ["lstm"],
    }
    assert not pages.unexpected()


def test_without_decisions_it_says_so(pages: Pages) -> None:
    page = pages.panel("admin/audit")
    page.get_by_label("Show", exact=True).select_option("decisions")
    expect(page.locator(".mlp-empty")).to_contain_text("No decisions in the last days")


def test_while_it_loads_it_shows_that(pages: Pages, front: FrontService) -> None:
    with front.kept_back("GET /audit"):
        page = pages.panel("admin/audit")
        expect(page.get_by_label("Loading the audit log")).to_be_visible()
    expect(page.locator("main")).to_contain_text("5 changes")
    expect(page.get_by_label("Loading the audit log")).to_have_count(0)


def test_a_user_without_admin_rights_does_not_see_the_audit_page(pages: Pages, front: FrontService) -> None:
    front.data.session |= {"admin": False}
    page = pages.panel("admin/audit")
    expect(page.locator("main")).to_contain_text("you may not see it")
    expect(page.get_by_role("link", name="Audit")).to_have_count(0)
    assert not any("/audit" in seen for seen in front.seen)


def test_the_jobs_page_says_how_long_jobs_are_kept(pages: Pages, front: FrontService) -> None:
    page = pages.panel()
    expect(page.locator("main")).to_contain_text(
        "Jobs that have ended are deleted, with their files, after 90 days."
    )
    front.data.session["keeping"] = {"job_days": None, "jobs": None, "job_mib": None}
    again = pages.panel()
    expect(again.get_by_role("link", name="mnist-tf")).to_be_visible()
    expect(again.locator("main")).not_to_contain_text("deleted")
