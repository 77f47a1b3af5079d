"""Unused GPUs in a browser: the countdown of a job with its button, and a team's list of all that is idle."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from support.front.browser import shot
from support.front.pages import LOOKS, Pages
from support.front.service import FrontService
from support.front.shapes import idle_holding, job

COUNTS = {"idle_s": 7260.0, "left_s": 540.0, "kept_s": 0.0, "ends": "suspend"}


def counting(front: FrontService) -> None:
    """Let the job count down, and a request to keep it be answered."""
    front.data.keep({"type": "job", "job": job("digits", gpu=2.0, idle=dict(COUNTS), version=2)})


@pytest.mark.parametrize("look", LOOKS)
def test_a_job_that_does_not_use_its_gpus_is_kept_with_one_click(
    pages: Pages, front: FrontService, look: str
) -> None:
    counting(front)
    dark, width = LOOKS[look]
    page = pages.panel("jobs/ann/digits", dark=dark, width=width)
    note = page.locator(".mlp-note", has_text="Its GPUs were not used for 2 h")
    expect(note).to_contain_text("it is suspended in 9 min")
    shot(page, f"idle-job-{look}")
    with page.expect_request(lambda r: r.method == "PUT" and r.url.endswith(":keep")) as asked:
        note.get_by_role("button", name="Keep it 4 hours").click()
    assert asked.value.post_data_json == {"hours": 4}
    kept = page.locator(".mlp-note", has_text="It is kept for 4 h, whether it uses its GPUs or not.")
    expect(kept).to_be_visible()
    expect(kept.get_by_role("button")).to_have_count(0)
    assert not pages.unexpected()


def test_a_report_of_work_that_nobody_measures_is_said_to_the_owner_and_to_admins(
    pages: Pages, front: FrontService
) -> None:
    claims = {"idle_s": 0.0, "left_s": None, "kept_s": 0.0, "ends": "suspend", "claims": True}
    front.data.keep({"type": "job", "job": job("digits", gpu=2.0, idle=claims, version=2)})
    page = pages.panel("jobs/ann/digits")
    expect(page.locator(".mlp-note", has_text="It reports that it works")).to_contain_text("measures no work")
    front.data.idle_work = [
        idle_holding("job", "ann", "digits", 1, 0.0, gpu=2.0, ends="suspend", claims=True)
    ]
    page = pages.panel("admin/tenants/red")
    card = page.get_by_role("region", name="Idle servers and GPUs")
    expect(card).to_contain_text("reports work that the cluster does not measure")
    assert not pages.unexpected()


def test_a_refusal_is_shown_where_one_clicked(pages: Pages, front: FrontService) -> None:
    counting(front)
    page = pages.panel("jobs/ann/digits")
    front.data.keeps = False
    page.get_by_role("button", name="Keep it 4 hours").click()
    expect(page.locator(".mlp-monitor")).to_contain_text("was kept for 1 d without using its GPUs")


@pytest.mark.parametrize("look", LOOKS)
def test_admins_see_who_holds_what_since_when_and_what_comes(pages: Pages, look: str) -> None:
    dark, width = LOOKS[look]
    page = pages.panel("admin/tenants/red", dark=dark, width=width)
    card = page.get_by_role("region", name="Idle servers and GPUs")
    for text in (
        "pretrain@2",
        "2 GPUs, 16 CPU, 64 GiB",
        "suspended in 9 min",
        "stopped in 25 min",
        "kept for 2 h",
        "no policy",
    ):
        expect(card).to_contain_text(text)
    card.scroll_into_view_if_needed()
    shot(page, f"idle-team-{look}")
    page.get_by_role("tab", name="Settings").click()
    for title in ("Idle notebook servers", "Unused GPUs of jobs"):
        expect(page.get_by_role("region", name=title)).to_be_visible()
    assert not pages.unexpected()


def test_a_policy_of_jobs_is_saved_apart_from_that_of_servers(pages: Pages) -> None:
    page = pages.panel("admin/tenants/red#settings")
    form = page.get_by_role("region", name="Unused GPUs of jobs")
    form.get_by_label("Suspend after hours without use of GPUs").fill("1.5")
    with page.expect_request(lambda r: r.method == "PUT" and r.url.endswith("red/idle_job_policy")) as asked:
        form.get_by_role("button", name="Save policy").click()
    assert asked.value.post_data_json == {"after_minutes": 90, "grace_minutes": 30}


def test_a_team_without_idle_work_says_so_and_members_see_no_list(pages: Pages, front: FrontService) -> None:
    front.data.idle_work.clear()
    page = pages.panel("admin/tenants/red")
    expect(page.get_by_role("region", name="Idle servers and GPUs")).to_contain_text("Nobody leaves a server")
    front.data.session |= {"admin": False, "tenant_admin": [], "tenants": ["red"]}
    page = pages.panel("tenants/red")
    expect(page.get_by_role("heading", name="Quota in use")).to_be_visible()
    expect(page.get_by_role("region", name="Idle servers and GPUs")).to_have_count(0)
