"""The job monitor in a page like JupyterLab's: live, cut off, logged out, saved, and under load."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from mlp.rendering.history import History
from support.front.browser import SHOTS, shot, two_frames
from support.front.pages import LOOKS, Pages, fits, story
from support.front.service import FrontService
from support.front.shapes import file, job, rank, when
from support.waiting import wait_for

EVIL = '<img src=x onerror="window.owned=1"><script>window.owned=1</script>&amp;'


def monitor(page: Page) -> Any:
    return page.locator(".mlp-monitor")


@pytest.mark.parametrize("look", LOOKS)
def test_a_running_job_shows_all_its_parts(pages: Pages, front: FrontService, look: str) -> None:
    story(front)
    dark, width = LOOKS[look]
    page = pages.widget(dark=dark, width=width if width < 900 else 1000)
    expect(monitor(page)).to_have_attribute("data-synced", "true")
    for region in ("Curves", "Ranks", "Log"):
        expect(page.get_by_role("group", name=region, exact=True)).to_be_visible()
    expect(page.locator(".mlp-chart canvas")).to_have_count(3)
    expect(page.get_by_role("group", name="Ranks").locator("tbody tr")).to_have_count(2)
    expect(page.get_by_role("progressbar")).to_have_attribute("aria-valuenow", "42")
    two_frames(page)
    shot(page, f"widget-running-{look}", full=True)
    assert fits(page)


@pytest.mark.parametrize("look", ["light", "dark"])
def test_a_waiting_job_says_why_and_until_when(pages: Pages, front: FrontService, look: str) -> None:
    reason = "red may use 4 cpu; 3.2 in use by bob's notebook (0.2) and job digits-3 of bob (3); this job asks for 2"
    numbers = {"cpu_limit": 4, "cpu_inuse": 3.2, "cpu_free": 0.8, "cpu_asked": 2}
    front.data.why = {
        "job": "digits-5",
        "phase": "queued",
        "reasons": [{"reason": "WaitingForQuota", "message": reason, "numbers": numbers}],
        "position": 2,
        "queue_length": 5,
        "expected_start": when(600),
        "expected_because": "job digits-3 ends",
        "would_start_now": ["--cpu 0.4", "--workers 1 --cpu 0.8"],
    }
    page = pages.widget("digits-5", dark=look == "dark")
    box = page.get_by_role("group", name="Why it waits")
    for text in (reason, "Position 2 of 5", "job digits-3 ends", "--workers 1 --cpu 0.8", "cpu free"):
        expect(box).to_contain_text(text)
    shot(page, f"widget-waiting-{look}", full=True)


@pytest.mark.parametrize("look", ["light", "dark"])
def test_a_failed_job_names_rank_cause_and_last_lines(pages: Pages, front: FrontService, look: str) -> None:
    front.data.history(40)
    front.data.keep(front.data.log("MemoryError", 1, "stderr"))
    page = pages.widget("big", dark=look == "dark")
    box = page.get_by_role("group", name="Cause of the failure")
    for text in ("Memory ran out", "rank 1", "SIGKILL", "512 MiB", "MemoryError"):
        expect(box).to_contain_text(text)
    expect(monitor(page)).to_have_attribute("data-connection", "ended")
    shot(page, f"widget-failed-{look}", full=True)


def test_an_ended_job_shows_its_usage_and_the_cause_of_its_failure(pages: Pages, front: FrontService) -> None:
    remedy = "jobs of team red have no network; an administrator of the hub can allow it"
    failure = {
        "cause": "program-error", "rank": 0, "exit_code": 1, "signal": None, "message": "rank 0: gaierror", "tail": "",
        "hint": "no-network", "remedy": remedy,
    }  # fmt: skip
    used = {"cpu": None, "ram": None, "cpu_mean": 0.7, "cpu_peak": 1.0, "ram_mean": 90, "ram_peak": 120}
    ranks = [rank(n, state="failed", exit_code=1, **used) for n in range(2)]
    ended = job("digits", ranks=ranks, phase="failed", state="error", failure=failure, finished_at=when(-1))
    front.push({"type": "job", "job": ended})
    page = pages.widget()
    grid = page.get_by_role("group", name="Ranks")
    expect(grid).to_contain_text(
        "Each rank requested 512 MiB, used at most 120 MiB; requested 1 cpu, used 0.7 on average."
    )
    for text in ("Mean CPU", "0.7 / 1", "Peak memory", "120 / 512 MiB"):
        expect(grid).to_contain_text(text)
    expect(page.get_by_role("group", name="Cause of the failure")).to_contain_text(f"J{remedy[1:]}.")


def test_the_table_of_ranks_is_not_cut_off_in_a_notebook(pages: Pages, front: FrontService) -> None:
    used = {"cpu": None, "ram": None, "cpu_mean": 0.16, "cpu_peak": 1.0, "ram_mean": 90, "ram_peak": 687}
    ranks = [rank(0, state="stopped", **used), rank(1, state="failed", exit_code=1, **used)]
    failure = {
        "cause": "program-error",
        "rank": 1,
        "exit_code": 1,
        "signal": None,
        "message": "rank 1: x",
        "tail": "",
    }
    ended = job(
        "digits", ranks=ranks, phase="failed", state="error", failure=failure, ram=1500, finished_at=when(-1)
    )
    front.push({"type": "job", "job": ended})
    page = pages.widget(width=850)
    box = page.locator(".mlp-ranks .mlp-table-box")
    expect(box).to_contain_text("stopped because rank 1 failed")
    assert box.evaluate("e => e.scrollWidth <= e.clientWidth")


def test_lines_longer_than_the_box_say_where_the_rest_is(pages: Pages, front: FrontService) -> None:
    story(front)
    page = pages.widget()
    more = page.get_by_text("Long lines continue to the right")
    expect(page.get_by_role("log")).to_contain_text("epoch")
    expect(more).to_have_count(0)
    front.push(front.data.log("x" * 400 + " the end"))
    expect(more).to_contain_text("print them with mlp logs digits")
    shot(page, "monitor-long-lines")


def test_data_that_has_not_arrived_yet_is_not_reported_as_missing(pages: Pages, front: FrontService) -> None:
    front.data.unsynced = True
    page = pages.widget()
    expect(page.get_by_role("log")).to_have_text("Loading")
    expect(monitor(page)).not_to_contain_text("No metrics yet")


def test_many_ranks_become_cells_that_filter_the_log(pages: Pages, front: FrontService) -> None:
    ranks = [
        rank(n, state="running" if n != 7 else "failed", exit_code=1 if n == 7 else None) for n in range(64)
    ]
    front.push({"type": "job", "job": job("digits", ranks=ranks, workers=64)})
    for n in range(64):
        front.data.keep(front.data.log(f"hello from {n}", n))
    page = pages.widget()
    page.get_by_role("button", name="Rank 7: failed on node-1").click()
    expect(page.get_by_role("log")).to_contain_text("hello from 7")
    expect(page.get_by_role("log")).not_to_contain_text("hello from 8")
    shot(page, "widget-many-ranks")


def test_a_lost_connection_shows_and_heals_without_loss_or_repeat(pages: Pages, front: FrontService) -> None:
    front.data.history(50)
    front.push(front.data.log("first"))
    page = pages.widget()
    expect(monitor(page)).to_have_attribute("data-synced", "true")
    front.accept = False
    front.drop()
    expect(page.get_by_text("Reconnecting")).to_be_visible()
    shot(page, "widget-reconnecting")
    front.push(front.data.log("second"), {"type": "metrics", "points": [front.data.point(50, 0)]})
    front.push({"type": "job", "job": job("digits", progress=77, version=2)})
    front.accept = True
    expect(page.get_by_text("Reconnecting")).to_have_count(0)
    expect(page.get_by_role("progressbar")).to_have_attribute("aria-valuenow", "77")
    expect(page.locator(".mlp-line-text")).to_have_text(["first", "second"])
    streams = [seen for seen in front.seen if seen.startswith("stream ")]
    assert streams[-1] == "stream ann/digits since 100"


def test_changes_of_state_are_announced(pages: Pages, front: FrontService) -> None:
    page = pages.widget("digits-5")
    status = page.locator(".mlp-monitor > [role=status]")
    expect(status).to_have_text("Job digits-5: Queued")
    front.push({"type": "job", "job": job("digits-5", version=2, progress=1)})
    expect(status).to_have_text("Job digits-5: Running")


def test_a_page_with_an_expired_login_asks_for_a_reload_and_uses_no_frame(
    pages: Pages, front: FrontService
) -> None:
    front.data.logged_in = False
    page = pages.widget()
    expect(page.get_by_role("alert")).to_contain_text("load the page again")
    expect(page.locator("iframe")).to_have_count(0)
    front.data.logged_in = True
    page.get_by_role("button", name="try once more").click()
    expect(monitor(page)).to_have_attribute("data-synced", "true")


def test_all_that_the_monitor_asks_goes_through_its_pages_notebook_server(
    pages: Pages, front: FrontService
) -> None:
    asked: list[str] = []
    page = pages.widget()
    page.on("request", lambda request: asked.append(request.url))
    page.on("websocket", lambda socket: asked.append(socket.url))
    page.reload()
    expect(monitor(page)).to_have_attribute("data-synced", "true")

    def data() -> list[str]:
        page.title()  # what the browser told meanwhile is taken note of
        return [url for url in asked if "/api/v1/" in url]

    wait_for(lambda: len(data()) >= 3, message="for all that is asked for")
    assert all(url.split("/", 3)[3].startswith("user/ann/mlp/api/v1/") for url in data()), data()


def test_a_saved_notebook_elsewhere_shows_the_last_picture(pages: Pages, front: FrontService) -> None:
    story(front)
    page = pages.widget()
    expect(monitor(page)).to_have_attribute("data-synced", "true")
    front.push(
        {"type": "job", "job": job("digits", phase="finished", state="finished", version=3)}, {"type": "end"}
    )
    seen = History()  # as the kernel does
    for frame in front.data.replay("ann", "digits", 0):
        seen.take(frame, replay=True)
    page.evaluate("it => sessionStorage.setItem('snapshot', JSON.stringify(it))", seen.snapshot())
    page.goto(f"{front.url}/harness/widget.html?base=/nowhere/")
    expect(page.get_by_text("Saved picture")).to_be_visible()
    expect(page.locator(".mlp-badge").first).to_have_text("Finished")
    expect(page.locator(".mlp-chart canvas")).to_have_count(3)
    expect(page.get_by_role("log")).to_contain_text("epoch")
    expect(page.get_by_role("button", name="Delete")).to_be_disabled()
    shot(page, "widget-saved")


def test_an_irreversible_action_asks_first(pages: Pages, front: FrontService) -> None:
    page = pages.widget()
    page.get_by_role("button", name="Cancel job").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("stopped for good")
    expect(dialog.get_by_role("button", name="Let it continue")).to_be_focused()
    shot(page, "widget-confirm")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    assert "PUT /users/ann/jobs/digits@1:cancel" not in front.seen
    page.get_by_role("button", name="Cancel job").click()
    expect(dialog.get_by_role("button", name="Let it continue")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(monitor(page)).to_have_attribute("data-phase", "cancelled")


def test_a_refused_action_is_shown_where_one_clicked(pages: Pages, front: FrontService) -> None:
    words = {"msg": "job digits is finishing and cannot be suspended", "reason": "WrongState"}
    front.data.forced["PUT /users/ann/jobs/digits@1:suspend"] = (403, words)
    page = pages.widget()
    page.get_by_role("button", name="Suspend").click()
    expect(page.get_by_role("group", name="Actions on digits").get_by_role("alert")).to_have_text(
        words["msg"]
    )


def test_whatever_a_job_says_is_text(pages: Pages, front: FrontService) -> None:
    failure = {"cause": EVIL, "rank": 0, "exit_code": 1, "signal": None, "message": EVIL, "tail": EVIL}
    ranks = [rank(0, node=EVIL, state=EVIL, role=EVIL)]
    evil = {"tenant": EVIL, "runtime": EVIL, "message": EVIL, "ranks": ranks, "priority": EVIL}
    front.push({"type": "job", "job": job("digits", failure=failure, phase="failed", **evil)})
    values = {EVIL: 1.0, "constructor": 2.0, "__proto__": 3.0}
    front.data.keep(
        {"type": "metrics", "points": [{"seq": 1, "time": 1.0, "rank": 0, "step": 1, "values": values}]}
    )
    front.data.keep(front.data.log(EVIL, 0, "stderr"))
    front.data.keep({"type": "events", "events": [front.data.event(1, EVIL, EVIL)]})
    for page in (pages.widget(), pages.panel("jobs/ann/digits")):
        expect(page.locator(".mlp-line-text").first).to_have_text(EVIL)
        expect(page.locator(".mlp-chart-name").first).to_be_visible()
        assert page.evaluate("window.owned") is None
        assert page.locator(".mlp-monitor img, .mlp-monitor script").count() == 0


def test_the_log_follows_pauses_and_filters(pages: Pages, front: FrontService) -> None:
    for n in range(400):
        front.data.keep(front.data.log(f"line {n}", n % 2, "stderr" if n == 17 else "stdout"))
    page = pages.widget()
    log = page.get_by_role("log")
    expect(log).to_contain_text("line 399")
    page.get_by_role("button", name="Following").click()
    front.push(front.data.log("later"), {"type": "job", "job": job("digits", progress=77, version=2)})
    expect(page.get_by_role("progressbar")).to_have_attribute("aria-valuenow", "77")
    two_frames(page)
    expect(log).not_to_contain_text("later")
    page.get_by_role("button", name="Follow", exact=True).click()
    expect(log).to_contain_text("later")
    page.get_by_role("button", name="stderr only").click()
    expect(page.locator(".mlp-line-text")).to_have_text(["line 17"])


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("language", ["en", "zh-CN"])
def test_only_a_traceback_is_red_and_the_owner_s_note_is_in_the_cell(
    pages: Pages, front: FrontService, look: str, language: str
) -> None:
    front.data.keep(
        {"type": "job", "job": job("digits", note="for the paper\n<b>second</b> line", version=2)}
    )
    texts = (
        "/x.py:3: UserWarning: old",
        "Traceback (most recent call last):",
        '  File "a.py", line 1',
        "KeyError: 'labels'",
        "continues",
    )
    for text in texts:
        front.data.keep(front.data.log(text, 0, "stderr"))
    dark, width = LOOKS[look]
    page = pages.widget(dark=dark, width=min(width, 1000), language=language)
    expect(page.locator(".mlp-line-err .mlp-line-text")).to_have_text(texts[1:4])
    expect(page.locator(".mlp-line-text")).to_have_count(5)
    expect(page.locator(".mlp-own-note")).to_contain_text("for the paper\n<b>second</b> line")
    two_frames(page)
    shot(page, f"widget-note-and-traceback-{look}-{language}", full=True)
    assert fits(page)


def test_arrow_keys_read_a_curve(pages: Pages, front: FrontService) -> None:
    front.data.history(20, ranks=1)
    page = pages.widget()
    plot = page.get_by_role("slider", name="Curve of loss")
    plot.focus()
    page.keyboard.press("End")
    expect(page.locator("[data-metric=loss] .mlp-chart-at")).to_have_text("step 19")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("[data-metric=loss] .mlp-chart-at")).to_have_text("step 18")


def test_a_key_pressed_right_after_another_scale_was_chosen_reads_the_new_curve(
    pages: Pages, front: FrontService
) -> None:
    front.data.history(20, ranks=1)
    page = pages.widget()
    expect(page.locator("[data-metric=loss] canvas")).to_have_count(1)
    page.evaluate(
        """async () => {
          const log = [...document.querySelectorAll('button')].find((b) => b.textContent === 'Log scale');
          log.click();
          while (log.ariaPressed !== 'true') await Promise.resolve();
          const plot = document.querySelector('[data-metric=loss] [role=slider]');
          plot.focus();
          plot.dispatchEvent(new KeyboardEvent('keydown', { key: 'End', bubbles: true }));
        }"""
    )
    two_frames(page)  # whatever was still to be done of the choice is done
    assert page.locator("[data-metric=loss] .mlp-chart-at").inner_text() == "step 19"


def test_from_report_to_drawn_at_a_thousand_points_a_second(pages: Pages, front: FrontService) -> None:
    """Says the numbers (build/front_latency.json); judged by the benchmark, not by a test on a shared machine."""
    front.data.history(6000)
    page = pages.widget()
    expect(monitor(page)).to_have_attribute("data-synced", "true")
    first = front.data.seq
    page.evaluate(
        """() => { window.seen = []; window.addEventListener('mlp-drawn', (e) => {
             const { seq, time } = e.detail;
             // the frame is shown at the earliest when the next one begins
             requestAnimationFrame(() => window.seen.push([seq, time, Date.now() / 1000])); }); }"""
    )
    front.feed(1000, 5)
    page.wait_for_function("last => window.seen.at(-1)?.[0] === last", arg=front.data.seq)
    seen = page.evaluate("window.seen")
    reports = {p["seq"]: p["time"] for f in front.data.frames["metrics"] for p in f["points"]}
    latencies, drawn = [], first
    for seq, _, at in seen:
        latencies += [(at - reports[n]) * 1000 for n in range(drawn + 1, seq + 1)]
        drawn = seq
    latencies.sort()
    found = {q: round(latencies[int(len(latencies) * float(q)) - 1], 1) for q in ("0.5", "0.99", "1")}
    SHOTS.parent.mkdir(parents=True, exist_ok=True)
    (SHOTS.parent / "front_latency.json").write_text(
        json.dumps({"unit": "ms", "points": len(latencies), "draws": len(seen), "quantiles": found})
    )
    print(f"report to drawn, ms: {found}, {len(latencies)} points in {len(seen)} draws")
    shot(page, "widget-fast")


def test_a_curve_out_of_view_keeps_updating(pages: Pages, front: FrontService) -> None:
    front.data.history(2, ranks=1)
    page = pages.widget(height=300)
    loss = page.locator("[data-metric=loss]")
    expect(loss.locator("canvas")).to_have_count(1)
    page.evaluate("document.getElementById('cell').style.marginTop = '4000px'")
    page.evaluate(
        """() => { window.seen = 0; window.addEventListener('mlp-drawn', (e) => { window.seen = e.detail.seq; }); }"""
    )
    expect(loss).not_to_be_in_viewport()
    point = front.data.point(7, 0) | {"values": {"loss": 0.0625, "epoch": 7}}
    front.push({"type": "metrics", "points": [point]})
    expect(loss.locator(".mlp-chart-value")).to_have_text("0.0625")
    page.wait_for_function("seq => window.seen === seq", arg=front.data.seq)
    expect(loss).not_to_be_in_viewport()


def test_a_curve_that_was_taken_out_of_the_page_is_drawn_when_it_comes_back(
    pages: Pages, front: FrontService
) -> None:
    front.data.history(2, ranks=1)
    page = pages.widget()
    loss = page.locator("[data-metric=loss]")
    expect(loss.locator("canvas")).to_have_count(1)
    page.evaluate("window.cell = document.getElementById('cell'); window.cell.remove()")
    front.push({"type": "metrics", "points": [front.data.point(7, 0) | {"values": {"loss": 0.0625}}]})
    page.wait_for_timeout(1500)
    page.evaluate("document.body.append(window.cell)")
    expect(loss.locator(".mlp-chart-value")).to_have_text("0.0625")


def test_curves_change_to_all_ranks_log_scale_and_time(pages: Pages, front: FrontService) -> None:
    story(front)
    page = pages.widget()
    for name in ("All ranks", "Log scale", "By time"):
        page.get_by_role("button", name=name).click()
        expect(page.get_by_role("button", name=name)).to_have_attribute("aria-pressed", "true")
        expect(page.locator(".mlp-chart canvas")).to_have_count(3)
    expect(page.locator("[data-metric=loss] .mlp-legend")).to_contain_text("rank 1")
    two_frames(page)
    shot(page, "widget-all-ranks-log-time")


def test_files_of_the_job_are_listed_and_fetched_in_the_cell(pages: Pages, front: FrontService) -> None:
    story(front)
    front.data.files = [file("ckpt", kind="directory"), file("model.pt")]
    page = pages.widget()
    expect(monitor(page)).to_have_attribute("data-synced", "true")
    asked: list[str] = []
    page.on("request", lambda r: asked.append(r.url) if "/files" in r.url else None)
    files = page.locator(".mlp-files")
    expect(files.get_by_role("row")).to_have_count(0)
    assert not asked  # nobody has opened it
    files.locator("summary").click()
    expect(files.get_by_role("link", name="model.pt")).to_have_attribute(
        "href", "/user/ann/mlp/api/v1/users/ann/jobs/digits%401/files/content?path=model.pt"
    )
    with page.expect_request(lambda r: "path=ckpt" in r.url):
        files.get_by_role("button", name="ckpt/").press("Enter")
    expect(files.locator("code")).to_have_text("ckpt")
    shot(page, "widget-files", full=True)
    assert fits(page)
