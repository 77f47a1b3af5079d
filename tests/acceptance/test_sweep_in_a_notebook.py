"""A sweep as a person runs it: from the sample in their home, watched in the cell, while the service is killed; kept in the notebook."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Browser, expect

from support.front.browser import (
    bring_into_view,
    log_in,
    new_context,
    open_lab,
    run_cell,
    save_notebook,
    shot,
)
from support.hubs.live_hub import LiveHub
from support.waiting import wait_for

SAMPLE = "04-digits-sweep.ipynb"
TRIALS = 6


@pytest.mark.whole
def test_a_sweep_is_watched_in_its_cell_and_is_exact_after_the_service_was_killed(
    hub: LiveHub, browser: Browser
) -> None:
    hub.add_user("sue")
    context = new_context(browser)
    page = context.new_page()
    log_in(page, hub, "sue")
    open_lab(page, hub, "sue")
    notebook = hub.homes / "sue" / SAMPLE
    notebook.write_text(notebook.read_text().replace("--trials 18", f"--trials {TRIALS}"))
    open_lab(page, hub, "sue", SAMPLE)
    run_cell(page, "%%mlp sweep --name")

    def ended_trials() -> int:
        answer = hub.call("GET", "/users/sue/sweeps/digits-sweep", "sue")
        sweep = answer.json() if answer.is_success else {"trials": []}  # the cell is still at it
        return sum(trial["ended_at"] is not None for trial in sweep["trials"])

    wait_for(lambda: ended_trials() > 0, message="for a trial to end")
    monitor = page.locator("[data-sweep=digits-sweep]").first
    expect(monitor).to_be_visible()
    bring_into_view(monitor)
    shot(page, "sweep-running")
    service = hub.kill("service")
    hub.wait_back("service", service)

    def end() -> bool:
        return hub.ok("GET", "/users/sue/sweeps/digits-sweep", "sue")["state"] == "finished"

    wait_for(end, 300, message="for the sweep to finish")
    sweep = hub.ok("GET", "/users/sue/sweeps/digits-sweep", "sue")
    first = sweep["trials"][0]["number"]
    assert [trial["number"] for trial in sweep["trials"]] == list(range(first, first + TRIALS))
    expect(monitor).to_have_attribute("data-state", "finished")
    best = monitor.locator(".mlp-sweep-best")
    bring_into_view(best)
    shot(page, "sweep-ended")
    save_notebook(page, SAMPLE)
    context.close()

    outputs = [o for c in json.loads(notebook.read_text())["cells"] for o in c.get("outputs", [])]
    assert any("application/vnd.mlp-hub.sweep+json" in o.get("data", {}) for o in outputs)
