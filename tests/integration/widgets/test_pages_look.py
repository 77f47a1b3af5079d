"""Pages that have nothing to show, that cannot have it, wait for it, or are not for everybody."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from support.front.pages import Pages
from support.front.service import FrontService

EMPTY = {
    "": "No jobs yet",
    "quota": "You are in no team yet",
    "usage": "Nothing was held in this span",
    "admin/queue": "Nothing is running or waiting",
    "admin/over-time": "Nothing is known of this span yet",
    "admin/audit": "No changes yet",
    "admin/alerts": "No alert fires",
}


@pytest.mark.parametrize("path", EMPTY)
def test_a_page_without_data_says_so(pages: Pages, front: FrontService, path: str) -> None:
    front.data.jobs.clear()
    front.data.queue.clear()
    front.data.audit.clear()
    front.data.accounting.empty = front.data.over_time.empty = True
    front.data.alerts.alerts.clear()
    front.data.session["tenants"] = []
    expect(pages.panel(path).locator(".mlp-empty")).to_contain_text(EMPTY[path])


FAULTS = {
    "": "GET /users/ann/jobs",
    "runs": "GET /users/ann/runs",
    "sweeps": "GET /users/ann/sweeps",
    "datasets": "GET /users/ann/datasets",
    "models": "GET /users/ann/models",
    "environments": "GET /tenants/default/environments",
    "apps": "GET /users/ann/apps",
    "me": "GET /users/ann/tokens",
    "admin": "GET /overview",
    "admin/requests": "GET /quota_requests",
    "admin/runs": "GET /runs",
    "quota": "GET /users/ann/quota",
    "usage": "GET /users/ann/accounting",
    "admin/usage": "GET /accounting",
    "admin/over-time": "GET /over-time",
    "tenants/red/over-time": "GET /tenants/red/over-time",
    "admin/tenants": "GET /tenants",
    "admin/tenants/red": "GET /tenants/red/usage",
    "admin/tenants/teal#settings": "GET /tenants/teal/bookings",
    "admin/users": "GET /users",
    "admin/queue": "GET /queue",
    "admin/nodes": "GET /nodes",
    "admin/what-if": "GET /nodes",
    "admin/audit": "GET /audit",
    "admin/alerts": "GET /alerts",
    "tenants/red/alerts": "GET /tenants/red/alerts",
}


@pytest.mark.parametrize("path", FAULTS)
def test_a_fault_is_shown_and_tried_again(pages: Pages, front: FrontService, path: str) -> None:
    front.data.forced[FAULTS[path]] = (503, {"msg": "the database is busy"})
    pages.still, front.accept = True, False  # nothing but the click lets the page ask again
    page = pages.panel(path)
    expect(page.get_by_role("alert")).to_contain_text("the database is busy")
    front.data.forced.clear()
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("alert")).to_have_count(0)


def test_a_slow_page_shows_that_it_loads(pages: Pages, front: FrontService) -> None:
    with front.kept_back("GET /tenants"):
        page = pages.panel("admin/tenants")
        expect(page.get_by_label("Loading teams")).to_be_visible()
    expect(page.locator("main")).to_contain_text("blue")
    expect(page.get_by_label("Loading teams")).to_have_count(0)


def test_a_user_without_admin_rights_sees_only_their_own_pages(pages: Pages, front: FrontService) -> None:
    front.data.session |= {"admin": False, "tenant_admin": ["red"]}
    page = pages.panel("admin/users")
    expect(page.locator("main")).to_contain_text("you may not see it")
    nav = page.get_by_role("navigation", name="Pages")
    expect(nav.get_by_role("link")).to_have_text(
        [
            "Jobs",
            "Runs",
            "Sweeps",
            "Datasets",
            "Models",
            "Environments",
            "Apps",
            "Quota",
            "Usage",
            "My account",
            re.compile("^Team red"),  # with how many ask to join
        ]
    )
    # the hub starts the server first if it does not run
    expect(page.get_by_role("banner").get_by_role("link", name="Notebook", exact=True)).to_have_attribute(
        "href", "/hub/spawn"
    )
    nav.get_by_role("link", name="Team red").click()
    page.get_by_role("tab", name="People").click()
    expect(page.get_by_role("region", name="Members", exact=True)).to_contain_text("bob")
    expect(page.get_by_role("button", name="Edit quota")).to_have_count(0)
    page.get_by_role("link", name="Hub home").click()
    expect(page.get_by_role("heading", name="Hub home")).to_be_visible()
