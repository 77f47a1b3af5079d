"""A way through the panel: jobs and their runs, the queue, logins that end, what others wrote."""

from __future__ import annotations

import pytest
from playwright.sync_api import Request, expect

from support.front.browser import shot, two_frames
from support.front.pages import LOOKS, Pages, fits
from support.front.service import FrontService
from support.front.shapes import job, when
from support.waiting import wait_for

EVIL = '<img src=x onerror="window.owned=1">'


def test_the_queue_follows_hints(pages: Pages, front: FrontService) -> None:
    pages.still = True
    page = pages.panel("admin/queue")
    gone = page.get_by_role("link", name="digits-4")
    expect(page.locator(".mlp-live")).to_have_text("Live")
    expect(gone).to_be_visible()
    front.data.queue = [e for e in front.data.queue if e["name"] != "digits-4"]
    front.push({"type": "changed"})
    expect(gone).to_have_count(0)


def test_an_answer_that_comes_late_does_not_replace_a_newer_one(pages: Pages, front: FrontService) -> None:
    pages.still = True
    page = pages.panel("admin/queue")
    gone = page.get_by_role("link", name="digits-4")
    expect(page.locator(".mlp-live")).to_have_text("Live")
    expect(gone).to_be_visible()
    late: list[Request] = []
    with page.expect_response(lambda r: r.request in late) as answered, front.kept_back("GET /queue"):
        with page.expect_request("**/api/v1/queue?*") as asked:
            front.push({"type": "changed"})
        late.append(asked.value)
        wait_for(lambda: front.waiting, message="for the answer to be made")
        front.gates.clear()  # only that one is kept back
        front.data.queue = [e for e in front.data.queue if e["name"] != "digits-4"]
        front.push({"type": "changed"})
        expect(gone).to_have_count(0)
        assert front.waiting
    answered.value.finished()
    two_frames(page)
    expect(gone).to_have_count(0)


def test_the_address_and_the_back_key_lead_where_they_say(pages: Pages, front: FrontService) -> None:
    page = pages.panel("admin/tenants/red")
    page.get_by_role("link", name="Queue").click()
    page.get_by_role("link", name="digits-5").click()
    expect(page).to_have_url(f"{front.url}/services/mlp/jobs/ann/digits-5%401")
    expect(page.get_by_role("heading", name="digits-5")).to_be_visible()
    page.go_back()
    page.go_back()
    expect(page.get_by_role("heading", name="red", exact=True)).to_be_visible()


def test_runs_of_a_name_are_listed_and_lead_to_each_other(pages: Pages, front: FrontService) -> None:
    ended = {"phase": "finished", "state": "finished", "finished_at": when(-60)}
    front.data.jobs["ann", "Lr-0.001@1"] = job("Lr-0.001", run=1, uid="u-lr-1", **ended)
    front.data.jobs["ann", "Lr-0.001"] = job("Lr-0.001", run=2, uid="u-lr-2", **ended)
    page = pages.panel("")
    rows = page.get_by_role("row").filter(has=page.get_by_role("link", name="Lr-0.001"))
    expect(rows).to_have_count(2)
    for run in ("run 1", "run 2"):
        expect(rows.filter(has_text=run)).to_have_count(1)
    rows.filter(has_text="run 1").get_by_role("link").click()
    expect(page).to_have_url(f"{front.url}/services/mlp/jobs/ann/Lr-0.001%401")
    expect(page.locator(".mlp-title")).to_contain_text("run 1")
    runs = page.get_by_role("group", name="Runs of Lr-0.001")
    expect(runs.get_by_role("link")).to_have_text(["run 1", "run 2"])
    expect(runs.locator("[aria-current]")).to_have_text("run 1")
    runs.get_by_role("link", name="run 2").click()
    expect(page.locator(".mlp-title")).to_contain_text("run 2")
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("dialog")).to_contain_text("Delete Lr-0.001 run 2?")
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page).to_have_url(f"{front.url}/services/mlp/")
    assert "DELETE /users/ann/jobs/Lr-0.001@2" in front.seen
    assert ("ann", "Lr-0.001@1") in front.data.jobs


def test_a_deleted_job_leads_back_to_the_list(pages: Pages, front: FrontService) -> None:
    page = pages.panel("jobs/ann/mnist-tf")
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page).to_have_url(f"{front.url}/services/mlp/")
    expect(page.get_by_role("link", name="big")).to_be_visible()
    expect(page.get_by_role("link", name="mnist-tf")).to_have_count(0)


def test_tokens_are_made_on_the_hubs_own_page(pages: Pages) -> None:
    page = pages.panel("quota")
    expect(page.get_by_role("link", name="Make a token")).to_have_attribute("href", "/hub/token")


def test_an_expired_login_shows_a_login_link_and_uses_no_frame(pages: Pages, front: FrontService) -> None:
    page = pages.panel("admin/users")
    expect(page.get_by_role("heading", name="Users")).to_be_visible()
    front.data.logged_in = False
    expect(page.get_by_role("alert").get_by_role("link", name="Log in")).to_have_attribute(
        "href", "/services/mlp/login?next=%2Fservices%2Fmlp%2F"
    )
    expect(page.locator("iframe")).to_have_count(0)
    front.data.logged_in = True
    page.get_by_role("button", name="Try again").first.click()
    expect(page.get_by_role("alert")).to_have_count(0)


def test_an_administrator_reads_what_is_set_less_safe_than_it_could_be(
    pages: Pages, front: FrontService
) -> None:
    front.data.session["warnings"] = ["all pages are on one host name"]
    page = pages.panel("admin/tenants")
    expect(page.get_by_role("note", name="Settings are less safe")).to_contain_text(
        "all pages are on one host name"
    )
    page.goto(f"{front.url}/services/mlp/")
    expect(page.get_by_role("heading", name="Jobs")).to_be_visible()
    expect(page.get_by_role("note", name="Settings are less safe")).to_have_count(0)


def test_everybody_reads_in_the_panel_what_does_not_work_now_until_it_works_again(
    pages: Pages, front: FrontService
) -> None:
    said = "disk full: it has 900 MiB left <b>; no job is started"
    front.data.forced["GET /health"] = (200, {"status": "ok", "problems": [{"message": said}]})
    page = pages.panel("jobs")
    told = page.get_by_role("status", name="Current problems")
    expect(told).to_have_text(f"D{said[1:]}")  # as text, whoever had a hand in it
    front.data.forced["GET /health"] = (200, {"status": "ok", "problems": []})
    page.reload()
    expect(page.get_by_role("heading", name="Jobs")).to_be_visible()
    expect(told).to_have_count(0)


def test_a_break_of_the_audit_log_is_shown_to_platform_admins_only(pages: Pages, front: FrontService) -> None:
    broken = {"component": "audit", "reason": "AuditLogBroken", "message": "a check found missing entries"}
    other = {"component": "disk", "reason": "DiskFull", "message": "disk full"}
    front.data.forced["GET /health"] = (200, {"status": "degraded", "problems": [broken, other]})
    front.data.session["admin"] = False
    page = pages.panel("jobs")
    told = page.get_by_role("status", name="Current problems")
    expect(told).to_have_text("Disk full")
    front.data.session["admin"] = True
    page.reload()
    expect(told).to_have_text("A check found missing entries. Disk full")


def test_names_and_messages_stay_text(pages: Pages, front: FrontService) -> None:
    data = front.data
    data.jobs["ann", "x"] = job("x", message=EVIL, tenant=EVIL, runtime=EVIL)
    for row in data.queue:
        row |= {"message": EVIL, "user": EVIL, "tenant": EVIL}
    data.users[1]["username"] = EVIL
    data.tenants["red"]["description"] = EVIL
    data.nodes[0] |= {"name": EVIL}
    for path in (
        "",
        "quota",
        "admin/tenants",
        "admin/tenants/red",
        "admin/users",
        "admin/queue",
        "admin/nodes",
        EVIL,
    ):
        page = pages.panel(path)
        expect(page.locator("main h1, main .mlp-empty").first).to_be_visible()
        expect(page.locator(".mlp-loading")).to_have_count(0)
        assert page.evaluate("window.owned") is None
        assert page.locator("main img").count() == 0


def test_the_log_of_an_ended_job_is_painted_at_its_end(pages: Pages, front: FrontService) -> None:
    for n in range(60):
        front.data.keep(front.data.log(f"epoch {n} of sixty", n % 2))
    for _ in range(5):  # it was a race between drawing and listening
        page = pages.panel("")
        page.get_by_role("link", name="digits", exact=True).first.click()
        expect(page.get_by_text("epoch 59 of sixty")).to_be_visible()
        box = page.locator(".mlp-log")
        gap = "e => e.scrollHeight - e.scrollTop - e.clientHeight"
        wait_for(lambda: box.evaluate(gap) < 1, message="for the log to be at its end")  # noqa: B023
        place = box.bounding_box()
        assert place is not None
        picture = page.screenshot(full_page=True, clip={k: place[k] for k in ("x", "y", "width", "height")})
        assert len(picture) > 5000, "nothing is painted: an empty box is a picture of about 1 KiB"
        page.close()


def test_the_queue_shows_priorities_and_what_each_line_goes_by(pages: Pages, front: FrontService) -> None:
    front.data.tenants["red"]["queue_order"] = "fifo"
    page = pages.panel("admin/queue")
    waiting = page.get_by_role("table", name="Waiting jobs in their order")
    expect(waiting.get_by_role("row").nth(1)).to_be_visible()
    heads = waiting.get_by_role("columnheader")
    expect(heads.first).to_have_text("In its queue")
    expect(heads.filter(has_text="Priority")).to_have_count(1)
    expect(waiting.get_by_role("row").nth(1)).to_contain_text("normal")
    main = page.locator("main")
    expect(main).to_contain_text(
        "Each team has its own queue, and the policy decides which team is next. "
        "Order of the queues: priority, then age; red: age alone."
    )
    shot(page, "panel-queue-lines", full=True)
    front.data.scheduling["policy"] = "finish"
    page.reload()
    expect(main).to_contain_text("The jobs of all teams wait in one queue.")
    page = pages.panel("admin/tenants/red")
    expect(page.get_by_role("region", name="Queue")).to_contain_text("Order: age alone")
    assert not pages.unexpected()


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize(("language", "asks"), [("en", "numbers"), ("zh-CN", "数字")])
def test_the_queue_shows_the_facts_behind_a_reason_on_demand(
    pages: Pages, front: FrontService, language: str, asks: str, look: str
) -> None:
    dark, width = LOOKS[look]
    page = pages.panel("admin/queue", dark=dark, width=width, language=language)
    button = page.locator("main button.mlp-link", has_text=asks).first
    button.click()
    facts = page.locator(".mlp-behind .mlp-numbers")
    expect(facts).to_contain_text("its own")
    expect(facts).to_contain_text("job digits-3 of bob, the notebook of bob")
    expect(button).to_have_attribute("aria-expanded", "true")
    shot(page, f"panel-queue-facts-{language}-{look}", full=True)
    assert fits(page)
    button.click()
    expect(facts).to_have_count(0)
