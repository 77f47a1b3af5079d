"""What a team's admin does on the team's page, what people ask on theirs, and where a platform admin answers."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from support.front.axe import assert_accessible
from support.front.browser import shot, two_frames
from support.front.pages import LOOKS, Pages, fits, restyle
from support.front.service import FrontService

TEAM = "admin/tenants/red"


def test_a_waiting_job_is_put_first_and_changed_where_the_queue_is_shown(
    pages: Pages, front: FrontService
) -> None:
    page = pages.panel(TEAM)
    row = page.get_by_role("row").filter(has_text="digits-5")
    row.get_by_role("button", name="Put first: digits-5").click()
    expect(page.get_by_text("digits-5 is first in the queue of red")).to_be_visible()
    row.get_by_role("button", name="Change digits-5").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Time limit").fill("soon")
    dialog.get_by_role("button", name="Change").click()
    expect(dialog).to_contain_text("a length of time such as 90s")
    dialog.get_by_label("Time limit").fill("2h")
    dialog.get_by_label("Priority").select_option("high")
    two_frames(page)
    shot(page, "team-change-dialog")
    dialog.get_by_role("button", name="Change").click()
    expect(dialog).to_have_count(0)
    changed = [body for path, body in front.data.teams.bodies if path.startswith("update ")]
    assert changed == [{"place": "first"}, {"priority": "high", "time_limit": 7200}]


def test_weekly_usage_of_a_team_is_drawn_below_its_quota(pages: Pages, front: FrontService) -> None:
    page = pages.panel(TEAM)
    card = page.get_by_role("region", name="Use in the last 7 days")
    expect(card.get_by_role("img")).to_have_accessible_name(
        re.compile(r"^\d+(\.\d+)? core-hours of jobs, at most 8 cores")
    )
    assert card.locator("rect").count() == 7 * 24 - 9, "hours in which nothing was seen are left out"
    card.get_by_label("Shown resource").select_option("ram")
    expect(card).to_contain_text("at most 6 GiB")
    for look, (dark, width) in LOOKS.items():
        restyle(page, dark=dark, width=width)
        two_frames(page)
        card.scroll_into_view_if_needed()
        shot(page, f"team-use-{look}")
        assert fits(page), look
    page.evaluate("() => scrollTo(0, 0)")  # or the bar lies above buttons that were scrolled half below it
    assert_accessible(page)
    front.data.tenants["default"] |= {"gpu": 0}
    page = pages.panel("admin/tenants/default")
    expect(page.get_by_role("region", name="Use in the last 7 days")).to_contain_text("Nothing is known yet")


def test_a_job_that_waits_is_changed_on_its_page(pages: Pages, front: FrontService) -> None:
    front.data.session["admin"] = False
    front.data.session["tenant_admin"] = []
    page = pages.panel("jobs/ann/digits-5")
    # it never ran: there is no directory to list
    expect(page.get_by_role("region", name="Files")).to_have_count(0)
    assert not [one for one in front.seen if "/files" in one]
    card = page.get_by_role("region", name="Changes")
    expect(card.get_by_role("button", name=re.compile("first"))).to_have_count(0)
    card.get_by_role("button", name="Change digits-5").click()
    expect(page.get_by_role("dialog").get_by_label("Priority").locator("option")).to_have_text(
        ["low", "normal"]
    )


def test_caps_quota_and_places_are_seen_to_on_the_teams_page(pages: Pages, front: FrontService) -> None:
    front.data.tenants["red"]["joining"] = "asked"
    page = pages.panel(f"{TEAM}#people")
    caps = page.get_by_role("region", name="Caps of members")
    expect(caps).to_contain_text("Each other member")
    caps.get_by_role("button", name="Set a cap").click()
    caps.get_by_label("Cap of", exact=True).select_option("bob")
    caps.get_by_label("Cores").fill("2")
    caps.get_by_label("Jobs at once").fill("1.5")
    caps.get_by_role("button", name="Set", exact=True).click()
    expect(caps).to_contain_text("a whole number")
    caps.get_by_label("Jobs at once").fill("3")
    caps.get_by_role("button", name="Set", exact=True).click()
    expect(caps.get_by_role("row").filter(has_text="bob")).to_contain_text("3")
    page.get_by_role("tab", name="Now").click()
    joins = page.get_by_role("region", name="Requests to join")
    joins.get_by_role("button", name="Accept carol").click()
    expect(joins).to_contain_text("No open requests now.")
    page.get_by_role("tab", name="People").click()
    expect(page.get_by_role("region", name="Members", exact=True)).to_contain_text(
        "carol"
    )  # without a reload
    page.get_by_role("tab", name="Settings").click()
    quota = page.get_by_role("region", name="More quota")
    quota.get_by_role("button", name="Take back").click()
    quota.get_by_role("button", name="Ask for more").click()
    quota.get_by_label("Memory").fill("64 GiB")
    quota.get_by_role("button", name="Ask", exact=True).click()
    expect(quota).to_contain_text("enter the purpose")
    quota.get_by_label("Purpose").fill("a paper")
    two_frames(page)
    shot(page, "team-asks", full=True)
    quota.get_by_role("button", name="Ask", exact=True).click()
    expect(quota.get_by_role("row").filter(has_text="a paper")).to_contain_text("waits for an answer")
    sent = dict(front.data.teams.bodies)
    assert sent["POST quota_requests:"] == {"ram": 65536, "reason": "a paper"}
    assert sent["PUT caps:"] == {"user": "bob", "cpu": 2, "gpu": None, "jobs": 3}
    assert "PUT joins/carol:approve" in sent


def test_a_platform_admin_sees_what_a_request_would_do_and_answers(pages: Pages, front: FrontService) -> None:
    page = pages.panel("admin/requests")
    card = page.get_by_role("region", name="Request of red")
    expect(card.locator(".mlp-note")).to_be_visible()
    assert front.data.previews[-1]["cpu"] == 16
    card.get_by_role("button", name="Accept the request of red").click()
    page.get_by_role("dialog").get_by_label("A message to the people who asked").fill("till May")
    page.get_by_role("dialog").get_by_role("button", name="Accept").click()
    expect(page.get_by_text("No open requests")).to_be_visible()
    assert front.data.teams.requests[0]["word"] == "till May"


def test_a_person_asks_a_team_for_a_place_in_every_look(pages: Pages, front: FrontService) -> None:
    page = pages.panel("me")
    teams = page.get_by_role("region", name="Teams")
    expect(teams).to_contain_text("speech and other sounds")
    for look, (dark, width) in LOOKS.items():
        restyle(page, dark=dark, width=width)
        two_frames(page)
        shot(page, f"team-me-{look}", full=True)
        assert fits(page), look
    teams.get_by_role("button", name="Ask to join blue").click()
    page.get_by_role("dialog").get_by_role("button", name="Ask to join").click()
    expect(teams.get_by_role("button", name="Take back the request to blue")).to_be_visible()


def test_where_a_provider_decides_nobody_is_asked_here(pages: Pages, front: FrontService) -> None:
    front.data.teams.managed_by = "Keycloak"
    teams = pages.panel("me").get_by_role("region", name="Teams")
    expect(teams).to_contain_text("The groups of Keycloak decide who is in which team.")
    expect(teams.get_by_role("button")).to_have_count(0)


def test_requests_that_wait_for_a_platform_admin_are_counted(pages: Pages, front: FrontService) -> None:
    page = pages.panel("admin")
    entry = page.get_by_role("banner").get_by_role("link", name="Requests")
    expect(entry).to_have_accessible_name("Requests 1 to answer")
    tops = "links => links.map((link) => Math.round(link.getBoundingClientRect().top))"
    lines = set(page.get_by_role("navigation", name="Pages").get_by_role("link").evaluate_all(tops))
    assert len(lines) == 1, "with what they count the entries have room in one line"
    figure = page.get_by_role("list", name="Running and waiting work").get_by_role("link", name="request")
    expect(figure).to_have_accessible_name("1 request to answer")
    assert_accessible(page)
    figure.click()
    page.get_by_role("button", name="Decline the request of red").click()
    page.get_by_role("dialog").get_by_role("button", name="Decline").click()
    expect(entry).to_have_accessible_name("Requests")


def test_requests_to_join_are_counted_beside_the_team(pages: Pages, front: FrontService) -> None:
    front.data.session |= {"admin": False, "tenants": ["red"], "tenant_admin": ["red"]}
    front.data.tenants["red"]["joining"] = "asked"
    page = pages.panel()
    entry = page.get_by_role("banner").get_by_role("link", name="Team red")
    expect(entry).to_have_accessible_name("Team red 1 ask to join")
    shot(page, "team-counted")
    entry.click()
    page.get_by_role("button", name="Accept carol").click()
    expect(entry).to_have_accessible_name("Team red")
    assert "GET /quota_requests" not in front.seen, "what is only a platform admin's is not asked for"


def test_a_user_accepted_meanwhile_sees_the_team_without_a_reload(pages: Pages, front: FrontService) -> None:
    front.data.session |= {"admin": False, "tenants": ["red"], "tenant_admin": []}
    page = pages.panel("me")
    teams = page.get_by_role("region", name="Teams")
    expect(teams).to_contain_text("asked")
    front.data.teams.open = [t for t in front.data.teams.open if t["tenant"] != "teal"]
    front.data.session["tenants"] = ["red", "teal"]
    teams.get_by_role("button", name="Ask to join blue").click()  # so that it need not wait for the next look
    page.get_by_role("dialog").get_by_role("button", name="Ask to join").click()
    expect(teams.get_by_role("link", name="teal")).to_be_visible()
    expect(teams.get_by_role("button", name="Take back the request to teal")).to_have_count(0)


def test_the_page_of_a_team_has_tabs_that_keys_and_links_reach(pages: Pages, front: FrontService) -> None:
    page = pages.panel(TEAM)
    tabs = page.get_by_role("tablist", name="Parts of the page of red").get_by_role("tab")
    expect(tabs).to_have_text(["Now", "People", "Settings", "Log"])
    members = page.get_by_role("region", name="Members", exact=True)
    expect(members).to_have_count(0)
    tabs.first.focus()
    page.keyboard.press("ArrowRight")
    expect(members).to_contain_text("bob")
    expect(tabs.nth(1)).to_be_focused()
    expect(tabs.nth(1)).to_have_attribute("aria-selected", "true")
    assert page.url.endswith("/admin/tenants/red#people")
    page.reload()  # a link to a part stays one
    expect(members).to_contain_text("bob")
    page.keyboard.press("Tab")
    tabs.nth(1).press("ArrowLeft")
    tabs.first.press("ArrowLeft")
    expect(tabs.last).to_be_focused()
    tabs.last.press("Home")
    expect(page.get_by_role("region", name="Quota in use")).to_be_visible()
    # an unknown part, and an address without one, show the first
    expect(pages.panel(f"{TEAM}#nothing").get_by_role("region", name="Quota in use")).to_be_visible()
    assert not pages.unexpected()


def test_no_tab_of_a_team_is_long(pages: Pages, front: FrontService) -> None:
    for key in ("now", "people", "settings", "log"):
        page = pages.panel(f"{TEAM}#{key}")
        expect(page.get_by_role("tabpanel").get_by_role("region").first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollHeight") < 1800, key


def test_a_member_who_does_not_manage_the_team_has_no_tabs(pages: Pages, front: FrontService) -> None:
    front.data.session |= {"admin": False, "tenants": ["red"], "tenant_admin": []}
    page = pages.panel("tenants/red")
    expect(page.get_by_role("region", name="Quota in use")).to_be_visible()
    expect(page.get_by_role("tab")).to_have_count(0)
    expect(page.get_by_role("region", name="Runtimes")).to_be_visible()


def test_a_member_reads_their_cap_beside_the_quota(pages: Pages, front: FrontService) -> None:
    front.data.teams.caps["red"] = [{"user": None, "cpu": 4, "gpu": None, "jobs": None}]
    page = pages.panel("quota")
    expect(page.get_by_role("region", name="Team red")).to_contain_text("Your cap in this team: Cores 4.")
    front.data.teams.caps["red"].append({"user": "ann", "cpu": 2, "gpu": None, "jobs": None})
    page = pages.panel("quota")
    expect(page.get_by_role("region", name="Team red")).to_contain_text("Your cap in this team: Cores 2.")
    front.data.teams.caps.clear()
    page = pages.panel("quota")
    expect(page.get_by_role("region", name="Team red")).to_be_visible()
    expect(page.get_by_text("Your cap in this team")).to_have_count(0)
