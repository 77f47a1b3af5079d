"""From `mlp.report()` in a rank to the point drawn in the browser, at 1000 points/s; and points stored per second."""

from __future__ import annotations

import time

from bench_common import Context, Figure, Stopwatch, quantile

NAME = "metrics"
ABOUT = (
    "a sandboxed rank reports 1000 points/s for 20 s; the job's page in Chromium notes for each drawn frame now minus the report time "
    "of the newest point in it; then 300,000 points posted in batches of 5,000 from one client"
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
BATCH, BATCHES = 5000, 60


def run(context: Context) -> list[Figure]:
    drawn = _report_to_drawn(context)
    stored = _stored(context)
    return [
        Figure(
            "report() to point drawn, p99",
            quantile(drawn, 0.99) * 1000,
            "ms",
            None,
            "W&B, TensorBoard: seconds",
            f"median {quantile(drawn, 0.5) * 1000:.0f} ms over {len(drawn)} frames; target 100 ms at p99",
            "make bench ONLY=metrics",
        ),
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


def _report_to_drawn(context: Context) -> list[float]:
    from browser import chromium, log_in, new_context
    from live_hub import PASSWORD

    hub = context.hub
    with chromium() as browser:
        page = new_context(browser).new_page()
        log_in(page, hub, "bench", PASSWORD)
        hub.submit("bench", "curve", REPORTER, cpu=1, ram=256)
        page.add_init_script(
            "window.seen=[];window.addEventListener('mlp-drawn',e=>window.seen.push([Date.now()/1000-e.detail.time,Date.now()/1000]))"
        )
        page.goto(f"{hub.url}/services/mlp/jobs/bench/curve")
        page.locator(".mlp-monitor[data-phase=running]").wait_for()
        time.sleep(SECONDS)
        hub.wait_phase("bench", "curve", "finished")
        seen = page.evaluate("window.seen")
    # the first second is the replay of what was there before the page
    first = seen[0][1] + 1
    return [delay for delay, at in seen if at > first]


def _stored(context: Context) -> float:
    hub = context.hub
    hub.submit("bench", "sink", "import time; time.sleep(600)", cpu=0.5, ram=128)
    hub.wait_phase("bench", "sink", "running")
    batches = [
        {
            "source": "0.0.bench",
            "points": [
                {"n": b * BATCH + i + 1, "t": 1e9 + i, "v": {"step": i, "loss": 0.5, "accuracy": 0.9}}
                for i in range(BATCH)
            ],
        }
        for b in range(BATCHES)
    ]
    watch = Stopwatch()
    for batch in batches:
        hub.ok("POST", "/users/bench/job_metrics/sink", "bench", batch)
    seconds = watch.seconds
    hub.ok("PUT", "/users/bench/jobs/sink:cancel", "bench")
    return BATCH * BATCHES / seconds
