"""A job that was stopped and waits again: what it printed and reported before is there, marked as such."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from playwright.sync_api import expect

from support.front.browser import shot, two_frames
from support.front.pages import LOOKS, Pages, fits
from support.front.service import FrontService
from support.front.shapes import job, when

LONG = 9000.0
"""Seconds that the first attempt ran."""


def told(front: FrontService, seq: int, kind: str, at: float, message: str = "") -> dict[str, Any]:
    return front.data.event(seq, kind, message) | {"time": when(at)}


def line(text: str, at: float, rank: int = 0) -> dict[str, Any]:
    lines = [{"time": when(at), "stream": "stdout", "text": text}]
    return {"type": "log", "rank": rank, "lines": lines, "offset": 1}


def stopped_story(front: FrontService, *, again: bool) -> None:
    """An attempt of some hours that was stopped for another job; `again`: another one is under way."""
    data = front.data
    begin = -LONG - 700
    texts = "stopped to make room for urgent of bob in red: its priority is high, that of this job low"
    events = [
        told(front, 1, "running", begin, "running on node node-1"),
        told(front, 2, "preempted", -605, texts),
        told(front, 3, "requeued", -600, "back in the queue with its age kept"),
    ]
    points = [data.point(n, n % 2) | {"time": time.time() + begin + n * LONG / 200} for n in range(200)]
    data.keep(line("epoch 1 is done", begin + 100))
    data.keep(line("saved on SIGTERM", -601, 1))
    if again:
        events.append(told(front, 4, "running", -300, "running on node node-2"))
        points += [data.point(150 + n, n % 2) | {"time": time.time() - 300 + n} for n in range(60)]
        data.keep(line("going on at epoch 1", -299))
        data.keep({"type": "job", "job": job("digits", restarts=1, version=2)})
    else:
        waits = {"phase": "queued", "state": "creating", "position": 1, "ranks": [], "started_at": None}
        data.keep({"type": "job", "job": job("digits", restarts=1, version=2, progress=60, **waits)})
        data.why = {
            "job": "digits",
            "phase": "queued",
            "reasons": [{"reason": "WaitingForResources", "message": "needs 2 ranks at once", "numbers": {}}],
            "position": 1,
            "queue_length": 1,
            "expected_start": None,
            "expected_because": "no time can be estimated: urgent of bob has no time limit",
            "would_start_now": ["--cpu 0.5"],
            "cut_short": "with 4000 waiting jobs, only 12 smaller requests were tried: one that starts now is possible",
            "stopped": {
                "kind": "preempted",
                "time": when(-600),
                "message": texts,
                "kept": "its newest checkpoint was written 35 s before it was stopped; later work must be repeated",
                "checkpoint_at": when(-635),
            },
        }
    data.keep({"type": "metrics", "points": points})
    data.keep({"type": "events", "events": events})


@pytest.mark.parametrize("look", LOOKS)
def test_a_job_that_waits_again_shows_what_it_did_before(
    pages: Pages, front: FrontService, look: str
) -> None:
    stopped_story(front, again=False)
    dark, width = LOOKS[look]
    for where in ("widget", "page"):
        if where == "widget":
            page = pages.widget(dark=dark, width=min(width, 1000))
        else:
            page = pages.panel("jobs/ann/digits", dark=dark, width=width)
        box = page.get_by_role("group", name="Why it waits")
        for text in (
            "Its last attempt ended",
            "stopped to make room for urgent of bob in red",
            "Its newest checkpoint was written 35 s before it was stopped",
            "Waits for room on the nodes: needs 2 ranks at once",
            "No time can be estimated: urgent of bob has no time limit.",
            "Could start now with --cpu 0.5. To do that: %mlp cancel digits, then %mlp resubmit digits --cpu 0.5. That is a "
            "new job. It starts from the beginning and does not use the checkpoint of digits.",
            "With 4000 waiting jobs, only 12 smaller requests were tried",
        ):
            expect(box).to_contain_text(text)
        expect(box.get_by_title("WaitingForResources")).to_have_text("Waits for room on the nodes:")
        for region in ("Curves", "Log"):
            part = page.get_by_role("group", name=region, exact=True)
            expect(part).to_contain_text("From its earlier attempt; it waits to continue")
        expect(page.get_by_text("A dashed line")).to_have_count(0)
        expect(page.locator(".mlp-line-text")).to_have_text(["epoch 1 is done", "saved on SIGTERM"])
        expect(page.locator(".mlp-chart canvas")).to_have_count(3)
        two_frames(page)
        shot(page, f"{where}-stopped-{look}", full=True)
        assert fits(page)


@pytest.mark.parametrize("look", LOOKS)
def test_a_new_attempt_is_marked_in_curves_and_log(pages: Pages, front: FrontService, look: str) -> None:
    stopped_story(front, again=True)
    dark, width = LOOKS[look]
    page = pages.widget(dark=dark, width=min(width, 1000))
    expect(page.get_by_text("A dashed line shows where another attempt began to report")).to_be_visible()
    expect(page.locator('.mlp-plot[data-breaks="1"]')).to_have_count(3)
    expect(page.locator(".mlp-line-attempt")).to_have_text("Attempt 2")
    expect(
        page.get_by_text("Repeated steps show the newest attempt; By time shows all attempts.")
    ).to_be_visible()
    plot = page.locator(".mlp-plot").first
    plot.focus()
    page.keyboard.press("End")
    # the second attempt resumed at an earlier step: the axis is the step, not the number of the report
    expect(page.locator(".mlp-chart-at").first).to_have_text(re.compile(r"step \d+"))
    two_frames(page)
    shot(page, f"widget-resumed-by-step-{look}", full=True)
    page.get_by_role("button", name="By time").click()
    expect(page.locator('.mlp-plot[data-breaks="1"]')).to_have_count(3)
    plot.focus()
    page.keyboard.press("End")
    expect(page.locator(".mlp-chart-at").first).to_have_text(re.compile("after 2 h 3[67] min"))
    two_frames(page)
    shot(page, f"widget-second-attempt-{look}", full=True)
    assert fits(page)
