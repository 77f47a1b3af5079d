"""From `mlp.report()` in a rank to the point drawn in the browser, at 1000 points/s; and points stored per second."""

from __future__ import annotations

import os

from playwright.sync_api import Page

from bench_common import POINTS, Context, Figure, post_points, quantile
from support.files.notebook_files import notebook

NAME = "metrics"
ABOUT = (
    "a sandboxed rank reports 1000 points/s for 20 s, submitted from a cell of JupyterLab in Chromium and shown there, then once more "
    "shown on the job's page; of each point, from its report until the frame is painted in which its chart has it; then 300,000 "
    "points posted in batches of 5,000 from one client"
)
RATE, SECONDS = 1000, 20
REPORTER = f"""
import mlp, time
start = time.perf_counter()
for i in range({RATE * SECONDS}):
    mlp.report(step=i, loss=1 / (i + 1))
    ahead = start + (i + 1) / {RATE} - time.perf_counter()
    if ahead > 0: time.sleep(ahead)
"""
WATCH = """
window.seen = [];
const frame = new MessageChannel();
let drawn = 0;
frame.port1.onmessage = () => window.seen.push([drawn, Date.now() / 1000]);
window.addEventListener('mlp-drawn', (e) => { drawn = e.detail.seq; frame.port2.postMessage(0); });
"""
"""Notes when each frame is painted: a message sent while a frame is made arrives after it."""


def run(context: Context) -> list[Figure]:
    from support.front.browser import chromium, log_in, new_context
    from support.hubs.live_hub import PASSWORD

    with chromium() as browser:
        page = new_context(browser).new_page()
        page.add_init_script(WATCH)
        log_in(page, context.hub, "bench", PASSWORD)
        in_cell = _in_cell(context, page)
        on_page = _on_page(context, page)
    stored = _stored(context)
    return [
        _drawn("report() to point drawn in the cell, p99", in_cell),
        _drawn("report() to point drawn on the page, p99", on_page),
        Figure(
            "metric points stored per second",
            stored,
            "1/s",
            50_000,
            "target",
            "over HTTP, validated, committed and broadcast",
            "make bench ONLY=metrics",
        ),
    ]


def _drawn(name: str, delays: list[float]) -> Figure:
    return Figure(
        name,
        quantile(delays, 0.99) * 1000,
        "ms",
        None,
        "W&B, TensorBoard: seconds",
        f"median {quantile(delays, 0.5) * 1000:.0f} ms of {len(delays)} points; target 100 ms at p99",
        "make bench ONLY=metrics",
    )


def _in_cell(context: Context, page: Page) -> list[float]:
    """Return the delays of all points of a job that is submitted and watched in a notebook."""
    from support.front.browser import open_lab, run_cell, wait_idle

    hub = context.hub
    open_lab(page, hub, "bench")
    home = hub.home / "homes" / "bench"
    source = f"%%mlp submit --name cell --cpu 1{REPORTER}"
    path = home / "live.ipynb"
    path.write_text(notebook(source))
    os.chown(path, home.stat().st_uid, home.stat().st_gid)
    open_lab(page, hub, "bench", "live.ipynb")
    wait_idle(page)
    run_cell(page, "%%mlp submit")
    page.locator(".mlp-monitor[data-phase=running]").wait_for()
    return _delays(context, page, "cell")


def _on_page(context: Context, page: Page) -> list[float]:
    """Return the delays of all points of a job that is watched on its page, but for those replayed to it."""
    hub = context.hub
    hub.submit("bench", "curve", REPORTER, cpu=1, ram=256)
    page.goto(f"{hub.url}/services/mlp/jobs/bench/curve")
    page.locator(".mlp-monitor[data-phase=running]").wait_for()
    return _delays(context, page, "curve")


def _delays(context: Context, page: Page, name: str) -> list[float]:
    """Wait for the job's end; return of each point how long after its report it was first seen, in seconds.

    What was reported before the first frame was replayed, not live, and does not count.
    """
    hub = context.hub
    hub.wait_phase("bench", name, "finished")
    page.locator(".mlp-monitor[data-connection=ended]").wait_for()
    frames = iter(page.evaluate("window.seen"))
    seq, at = next(frames)
    live, delays = at, []
    for point in hub.points("bench", name):
        while seq < point["seq"]:
            seq, at = next(frames)
        if point["time"] > live:
            delays.append(at - point["time"])
    return delays


def _stored(context: Context) -> float:
    seconds = post_points(context.hub).seconds
    context.hub.ok("PUT", "/users/bench/jobs/sink:cancel", "bench")
    return POINTS / seconds
