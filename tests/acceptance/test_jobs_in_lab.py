"""JupyterLab itself knows of jobs: panel, status bar, tab, a notification at the end, and scripts and notebooks submitted by a form."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

from playwright.sync_api import Browser, expect

from support.files.notebook_files import notebook
from support.front.browser import log_in, new_context, open_lab, shot
from support.hubs.live_hub import LiveHub

WAITS = """import pathlib, time
while not pathlib.Path("{name}.go").exists():
    time.sleep(0.1)
"""


def test_the_lab_panel_lists_and_opens_jobs_reports_their_end_and_submits_files_by_a_form(
    hub: LiveHub, browser: Browser
) -> None:
    hub.add_user("lea")
    context = new_context(browser)
    page = context.new_page()
    log_in(page, hub, "lea")
    until = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    announced = {"text": "Maintenance on Sunday.", "level": "warning", "until": until}
    hub.ok("POST", "/announcements", body=announced)
    open_lab(page, hub, "lea")
    # whoever works beside the file browser reads it too
    heard = page.get_by_role("alert").filter(has_text="Maintenance on Sunday.")
    expect(heard).to_be_visible()
    shot(page, "lab-announced")
    heard.get_by_role("button", name="Show in the side panel").click()
    expect(page.locator("#mlp-hub-jobs").get_by_role("region", name="Announced now")).to_be_visible()
    page.get_by_role("tab", name="File Browser").click()
    page.reload()
    home = hub.homes / "lea"
    (home / "train.py").write_text("print('trained')\n")
    (home / "work.ipynb").write_text(notebook(("lr = 1", "parameters"), "print('lr is', lr)"))
    owner = home.stat()
    for name in ("train.py", "work.ipynb"):
        os.chown(home / name, owner.st_uid, owner.st_gid)

    hub.submit("lea", "watched", WAITS.format(name="watched"))
    hub.wait_phase("lea", "watched", "running")
    status = page.locator(".mlp-lab-status button")
    expect(status).to_have_text("Jobs: 1 running, 0 waiting")
    expect(heard).to_have_count(0)  # it is told once, also to who loads the page anew
    status.click()
    panel = page.get_by_role("region", name="Jobs of MLP Hub")
    expect(panel).to_be_focused()  # who works without a mouse goes on in it
    expect(panel.get_by_role("region", name="Announced now")).to_contain_text("Maintenance on Sunday.")
    row = panel.get_by_role("list", name="My jobs, newest first").get_by_role("button")
    expect(row).to_contain_text("watched")
    expect(panel.get_by_role("region", name="Team default")).to_contain_text("CPU")
    row.click()
    tab = page.locator(".mlp-lab-tab .mlp-monitor")
    expect(tab).to_have_attribute("data-phase", "running")
    shot(page, "lab-jobs")

    (home / "watched.go").touch()
    told = page.get_by_role("alert").filter(has_text="Job watched has finished")
    expect(told).to_have_count(1)
    expect(tab).to_have_attribute("data-phase", "finished")
    expect(status).to_have_text("Jobs: 0 running, 0 waiting")
    shot(page, "lab-jobs-ended")

    page.get_by_role("tab", name="File Browser").click()
    page.locator(".jp-DirListing-item", has_text="train.py").click(button="right")
    page.get_by_text("Submit as a job …", exact=True).click()
    form = page.get_by_role("dialog", name="Submit train.py as a job")
    expect(form.get_by_label("Name", exact=True)).to_have_value("train")
    form.get_by_label("Workers", exact=True).fill("none")
    form.get_by_role("button", name="Submit job").click()
    expect(form.get_by_label("Workers", exact=True)).to_have_attribute("aria-invalid", "true")
    shot(page, "lab-submit-form")
    form.get_by_label("Workers", exact=True).fill("1")
    page.keyboard.press("Enter")
    hub.wait_phase("lea", "train", "finished")
    expect(page.locator(".mlp-lab-tab .mlp-monitor", has_text="train")).to_have_attribute(
        "data-phase", "finished"
    )

    page.locator(".jp-DirListing-item", has_text="work.ipynb").click(button="right")
    page.get_by_text("Submit as a job …", exact=True).click()
    form = page.get_by_role("dialog", name="Submit work.ipynb as a job")
    expect(form.get_by_label("Workers", exact=True)).to_have_count(0)
    form.get_by_label("Parameters", exact=True).fill("lr")
    form.get_by_role("button", name="Submit job").click()
    expect(form.get_by_label("Parameters", exact=True)).to_have_attribute("aria-invalid", "true")
    form.get_by_label("Parameters", exact=True).fill("lr=0.5")
    shot(page, "lab-submit-notebook")
    page.keyboard.press("Enter")
    hub.wait_phase("lea", "work", "finished")
    assert "lr is 0.5" in hub.log("lea", "work")
    expect(page.locator("#jp-main-statusbar")).to_contain_text("Mem:")
    shot(page, "lab-notebook-ended")
    context.close()
