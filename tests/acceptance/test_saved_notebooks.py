"""A notebook that was saved while its job ran, closed, and opened after the end: in Lab and Notebook, whichever kernel."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from mlp.display.job_monitor import JOB_VIEW
from support.files.notebook_files import notebook
from support.front.browser import (
    ask_server,
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

PROGRAM = """import pathlib, time, mlp
step = 0
while step < 30 or not pathlib.Path("{name}.go").exists():
    step += 1
    mlp.report(loss=1 / step, step=step)
    print("step", step, flush=True)
    time.sleep(0.05)
"""


@pytest.fixture(scope="module")
def context(hub: LiveHub, browser: Browser) -> Iterator[BrowserContext]:
    hub.add_user("cleo")
    made = new_context(browser)
    page = made.new_page()
    log_in(page, hub, "cleo")
    open_lab(page, hub, "cleo")
    page.close()
    yield made
    made.close()


def home(hub: LiveHub) -> Path:
    return hub.homes / "cleo"


def write_notebook(hub: LiveHub, name: str, *sources: str) -> Path:
    """Put a notebook of these cells into the home."""
    path = home(hub) / f"{name}.ipynb"
    path.write_text(notebook(*sources))
    owner = home(hub).stat()
    os.chown(path, owner.st_uid, owner.st_gid)
    return path


def open_notebook(context: BrowserContext, hub: LiveHub, front: str, name: str) -> Page:
    page = context.new_page()
    # Lab without what was open before
    where = f"lab/tree/{name}.ipynb?reset" if front == "lab" else f"notebooks/{name}.ipynb"
    page.goto(f"{hub.notebooks('cleo')}/user/cleo/{where}")
    page.locator(".jp-Notebook .jp-CodeCell").first.wait_for()
    return page


def kernels_end(page: Page) -> None:
    """Shut all sessions of the server down, as a restart of it does."""
    for session in ask_server(page, "GET", "api/sessions"):
        ask_server(page, "DELETE", f"api/sessions/{session['id']}")


def outputs(path: Path) -> list[dict[str, object]]:
    found = [o.get("data", {}) for c in json.loads(path.read_text())["cells"] for o in c["outputs"]]
    return [data for data in found if JOB_VIEW in data]


def is_whole(monitor: Locator, page: Page) -> None:
    """The live monitor of an ended job: curves to zoom, all ranks, its log; and no error of a widget anywhere."""
    expect(monitor).to_have_attribute("data-phase", "finished")
    expect(monitor).to_have_attribute("data-connection", "ended")
    bring_into_view(monitor)
    expect(monitor.locator("[data-metric=loss] canvas")).to_have_count(1)
    expect(monitor.get_by_role("group", name="Ranks").locator("tbody tr")).to_have_count(1)
    expect(monitor.get_by_role("log")).to_contain_text("step ")
    expect(page.get_by_text("Error displaying widget")).to_have_count(0)
    expect(page.get_by_text("Loading widget")).to_have_count(0)


@pytest.mark.parametrize("front", ["lab", pytest.param("notebook", marks=pytest.mark.whole)])
def test_a_notebook_saved_while_its_job_ran_shows_the_live_monitor_when_it_is_opened_after_the_end(
    hub: LiveHub, context: BrowserContext, front: str
) -> None:
    name = front
    path = write_notebook(hub, name, f"%%mlp submit --name {name}\n{PROGRAM.format(name=name)}")
    page = open_notebook(context, hub, front, name)
    run_cell(page, "%%mlp submit")
    monitor = page.locator(".mlp-monitor")
    expect(monitor).to_have_attribute("data-phase", "running")
    expect(monitor.locator("[data-metric=loss] canvas")).to_have_count(1)
    save_notebook(page, path.name)
    page.close()
    (home(hub) / f"{name}.go").touch()
    hub.wait_phase("cleo", name, "finished")

    for kernel in ("the same", "a new one"):
        (kept,) = outputs(path)
        assert "finished" not in "".join(kept["text/plain"]), "nobody has written to the file since"
        assert "mlp-picture" in "".join(kept["text/html"])
        page = open_notebook(context, hub, front, name)
        is_whole(page.locator(".mlp-monitor"), page)
        if kernel == "the same":
            kernels_end(page)
        else:
            shot(page, f"saved-while-running-opened-after-the-end-{front}")
        page.close()


def test_watch_of_an_ended_job_is_the_live_monitor_and_what_one_opened_in_it_stays(
    hub: LiveHub, context: BrowserContext
) -> None:
    (home(hub) / "ended.go").touch()
    hub.submit("cleo", "ended", PROGRAM.format(name="ended"))
    hub.wait_phase("cleo", "ended", "finished")
    path = write_notebook(hub, "watch", "%mlp watch ended")
    page = open_notebook(context, hub, "lab", "watch")
    run_cell(page, "%mlp watch")
    monitor = page.locator(".mlp-monitor")
    is_whole(monitor, page)
    monitor.get_by_role("button", name="Log scale").click()
    plot = monitor.get_by_role("slider", name="Curve of loss")
    plot.focus()
    page.keyboard.press("End")
    expect(monitor.locator("[data-metric=loss] .mlp-chart-at")).to_have_text("step 30")
    shot(page, "watch-of-an-ended-job")
    save_notebook(page, path.name)
    assert outputs(path)
    expect(monitor.get_by_role("button", name="Log scale")).to_have_attribute("aria-pressed", "true")
    page.close()


def test_the_end_of_a_job_leaves_the_monitor_as_one_has_set_it(hub: LiveHub, context: BrowserContext) -> None:
    path = write_notebook(hub, "ends", f"%%mlp submit --name ends\n{PROGRAM.format(name='ends')}")
    page = open_notebook(context, hub, "lab", "ends")
    run_cell(page, "%%mlp submit")
    monitor = page.locator(".mlp-monitor")
    expect(monitor).to_have_attribute("data-phase", "running")
    monitor.get_by_role("button", name="By time").click()
    monitor.evaluate("(it) => { it.mark = 'the same'; }")
    (home(hub) / "ends.go").touch()
    is_whole(monitor, page)

    def kept_the_end() -> bool:
        save_notebook(page, path.name)
        (kept,) = outputs(path)
        return "ends  finished" in "".join(kept["text/plain"])

    wait_for(kept_the_end, message="for the kernel's last picture to be in the saved notebook")
    assert monitor.evaluate("(it) => it.mark") == "the same"
    expect(monitor.get_by_role("button", name="By time")).to_have_attribute("aria-pressed", "true")
    page.close()


BARS = """import pathlib, sys, time
for n in range(1, 6):
    sys.stderr.write(f"\\r{n * 20:3d}%|{'#' * n}")  # tqdm
    sys.stderr.flush()
    sys.stdout.write("\\b" * 30 + f"{n}/5 loss {1 / n:.2f}")  # Keras
    sys.stdout.flush()
    while n in (2, 5) and not pathlib.Path(f"bars.{n}").exists():
        time.sleep(0.1)
sys.stderr.write("\\r100%|##### done\\n")
print("\\nover")
"""


def test_progress_bars_are_one_current_line_each_live_and_in_the_picture(
    hub: LiveHub, context: BrowserContext
) -> None:
    path = write_notebook(hub, "bars", f"%%mlp submit --name bars\n{BARS}")
    page = open_notebook(context, hub, "lab", "bars")
    run_cell(page, "%%mlp submit")
    monitor = page.locator(".mlp-monitor")
    lines = monitor.locator(".mlp-line-text")
    expect(lines.filter(has_text="40%")).to_have_count(1)
    expect(lines).to_have_count(2)
    (home(hub) / "bars.2").touch()
    expect(lines.filter(has_text="100%")).to_have_count(1)
    expect(lines.filter(has_text="5/5 loss 0.20")).to_have_count(1)
    expect(lines).to_have_count(2)
    bring_into_view(monitor)
    shot(page, "progress-bars-live")
    (home(hub) / "bars.5").touch()
    expect(monitor).to_have_attribute("data-connection", "ended")
    assert sorted(lines.all_inner_texts()) == ["100%|##### done", "5/5 loss 0.20", "over"]

    def kept_the_end() -> bool:
        save_notebook(page, path.name)
        (kept,) = outputs(path)
        return "finished" in "".join(kept["text/plain"])

    wait_for(kept_the_end, message="for the kernel's last picture to be in the saved notebook")
    (kept,) = outputs(path)
    for form in ("text/plain", "text/html"):
        shown = "".join(kept[form])
        assert [shown.count(bar) for bar in ("100%|##### done", "5/5 loss", " 40%", "4/5")] == [1, 1, 0, 0]
    page.close()
