"""The page of alerts: what fires and why, silences by mouse and keyboard, teams, hostile text, and the way from Overview."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from support.front.alerts import alert
from support.front.axe import assert_accessible
from support.front.browser import shot
from support.front.pages import LOOKS, Pages
from support.front.service import FrontService
from support.waiting import wait_for

MARKUP = "<img src=x onerror=document.title='hit'> <b>bold</b>"


@pytest.mark.parametrize("look", LOOKS)
def test_alerts_are_in_groups_with_their_meaning_value_and_runbook(
    pages: Pages, front: FrontService, look: str
) -> None:
    dark, width = LOOKS[look]
    page = pages.panel("admin/alerts", dark=dark, width=width)
    firing = page.get_by_role("region", name="Firing")
    expect(firing.get_by_role("row").filter(has_text="MLPDiskFull")).to_contain_text("8% < 10%")
    expect(firing).to_contain_text("Meaning of MLPTenantOverQuota.")
    expect(firing.get_by_role("link", name="What to do: MLPDiskFull")).to_have_attribute(
        "href", "/services/mlp/docs/reference/alerts#mlpdiskfull"
    )
    silenced = page.get_by_role("region", name="Silenced", exact=True)
    expect(silenced).to_contain_text("the node is being tested")
    expect(page.get_by_role("region", name="Pending")).to_contain_text("MLPNodeGpuHigh")
    expect(page.get_by_role("region", name="Recently over")).to_contain_text("MLPNodeLost")
    overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert overflow <= 0
    assert_accessible(page)
    shot(page, f"panel-alerts-{look}", full=True)


def test_an_alert_is_silenced_by_the_keyboard_with_a_reason_and_an_end(
    pages: Pages, front: FrontService
) -> None:
    page = pages.panel("admin/alerts")
    button = page.get_by_role("button", name="Silence: Team red holds more than its quota")
    button.focus()
    page.keyboard.press("Enter")
    form = page.get_by_role("form", name="Silence alerts")
    expect(form.get_by_label("Reason")).to_be_focused()
    expect(form.get_by_label("Alert")).to_have_value("MLPTenantOverQuota")
    expect(form.get_by_label("Alert").get_by_role("option")).to_have_text(
        ["Each alert", "The processors of node … are busy", "Team … holds more than its quota"]
    )
    expect(page.get_by_role("heading", name="Silence alerts")).to_be_visible()
    expect(page.get_by_role("region", name="Silences")).not_to_contain_text("MLP")
    expect(form.get_by_label("Team")).to_have_value("red")
    page.keyboard.press("Enter")
    expect(form).to_contain_text("Enter a reason")
    expect(form).to_contain_text("Choose when the silence ends")
    assert front.data.alerts.asked == []
    form.get_by_label("Reason").fill("they delete files")
    form.get_by_label("Lasts").select_option("28800")
    form.get_by_label("Reason").focus()
    page.keyboard.press("Enter")
    wait_for(lambda: front.data.alerts.asked)
    (asked,) = front.data.alerts.asked
    assert (asked["rule"], asked["tenant"], asked["reason"]) == (
        "MLPTenantOverQuota",
        "red",
        "they delete files",
    )
    expect(page.get_by_role("region", name="Silences")).to_contain_text("they delete files")
    expect(form).to_have_count(0)


def test_names_in_a_meaning_are_code_and_a_single_backtick_stays(pages: Pages, front: FrontService) -> None:
    front.data.alerts.alerts = [
        alert(1, "MLPNodeLost", meaning="Look at `mlp_nodes` and <b>`health`</b>."),
        alert(2, "MLPDiskFull", meaning="One ` alone."),
    ]
    page = pages.panel("admin/alerts")
    firing = page.get_by_role("region", name="Firing")
    expect(firing).to_contain_text("Look at mlp_nodes and <b>health</b>.")
    expect(firing.locator("code")).to_have_text(["mlp_nodes", "health"])
    expect(firing).to_contain_text("One ` alone.")


def test_a_refusal_is_shown_at_its_field(pages: Pages, front: FrontService) -> None:
    refused = {"msg": "team gone does not exist", "reason": "NotFound"}
    front.data.forced["POST /silences"] = (403, refused)
    page = pages.panel("admin/alerts")
    page.get_by_role("button", name="Silence alerts").click()
    form = page.get_by_role("form", name="Silence alerts")
    form.get_by_label("Reason").fill("x")
    form.get_by_label("Team").fill("gone")
    form.get_by_label("Lasts").select_option("3600")
    form.get_by_role("button", name="Silence").click()
    expect(form.get_by_role("alert")).to_contain_text("gone does not exist")
    expect(form.get_by_label("Team")).to_be_focused()


def test_notifications_that_alertmanager_could_not_deliver_are_above_all_and_not_for_teams(
    pages: Pages, front: FrontService
) -> None:
    page = pages.panel("admin/alerts")
    expect(page.get_by_role("heading", name="Alerts", exact=True)).to_be_visible()
    expect(page.locator(".mlp-note")).to_have_count(0)
    text = "Alertmanager could not deliver these notifications in the last hour: email (3) <b>"
    front.data.alerts.delivery = {"state": "failed", "text": text, "failed": {"email": 3}, "checked_at": None}
    page = pages.panel("admin/alerts")
    expect(page.locator(".mlp-note")).to_have_text(f"{text}.")
    front.data.alerts.delivery["state"] = "ok"
    page = pages.panel("admin/alerts")
    expect(page.get_by_role("heading", name="Alerts", exact=True)).to_be_visible()
    expect(page.locator(".mlp-note")).to_have_count(0)


def test_a_silence_is_ended_after_a_question(pages: Pages, front: FrontService) -> None:
    page = pages.panel("admin/alerts")
    page.get_by_role("button", name="End the silence of The processors of node … are busy").click()
    page.get_by_role("dialog").get_by_role("button", name="End the silence").click()
    expect(page.get_by_role("region", name="Silences")).not_to_contain_text("the node is being tested")
    assert [one["id"] for one in front.data.alerts.silences] == [2]


def test_an_admin_of_a_team_sees_and_silences_that_team(pages: Pages, front: FrontService) -> None:
    front.data.session |= {"admin": False, "tenant_admin": ["red"]}
    page = pages.panel("tenants/red")
    page.get_by_role("link", name="Alerts").click()
    expect(page.get_by_role("heading", name="Alerts of red")).to_be_visible()
    expect(page.get_by_role("region", name="Firing")).to_contain_text("Team red holds more than its quota")
    expect(page.locator("main")).not_to_contain_text("MLPDiskFull")
    page.get_by_role("button", name="Silence alerts").click()
    form = page.get_by_role("form", name="Silence alerts")
    expect(form.get_by_label("Team")).to_have_count(0)
    form.get_by_label("Reason").fill("we know")
    form.get_by_label("Lasts").select_option("3600")
    form.get_by_role("button", name="Silence").click()
    wait_for(lambda: front.data.alerts.asked)
    assert front.data.alerts.asked[0]["path"] == "red"
    assert "tenant" not in front.data.alerts.asked[0]


@pytest.mark.parametrize("path", ["admin/alerts", "tenants/red/alerts"])
def test_others_have_no_such_page(pages: Pages, front: FrontService, path: str) -> None:
    front.data.session |= {"admin": False, "tenant_admin": ["blue"]}
    page = pages.panel(path)
    expect(page.locator("main")).to_contain_text("you may not see it")


def test_text_of_others_is_shown_as_text(pages: Pages, front: FrontService) -> None:
    front.data.alerts.alerts = [alert(1, "MLPNodeLost", summary=MARKUP, description=MARKUP, meaning=MARKUP)]
    front.data.alerts.silences[0]["reason"] = MARKUP
    page = pages.panel("admin/alerts")
    expect(page.get_by_role("region", name="Firing")).to_contain_text(MARKUP)
    expect(page.get_by_role("region", name="Silences")).to_contain_text(MARKUP)
    assert page.title() != "hit"


def test_the_overview_counts_alerts_and_leads_to_them(pages: Pages, front: FrontService) -> None:
    page = pages.panel("admin")
    link = page.get_by_role("list", name="Running and waiting work").get_by_role("link", name="alerts fire")
    expect(link).to_contain_text("2")
    expect(link).to_contain_text("1 pending · 1 silenced")
    link.click()
    expect(page.get_by_role("heading", name="Alerts", exact=True)).to_be_visible()


def test_the_page_is_in_chinese(pages: Pages, front: FrontService) -> None:
    page = pages.panel("admin/alerts", language="zh-CN")
    expect(page.get_by_role("region", name="触发中")).to_contain_text("值与阈值")
    shot(page, "panel-alerts-zh", full=True)
