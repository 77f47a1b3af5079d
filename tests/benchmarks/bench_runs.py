"""The table of runs and the comparison of many: how long a search takes, and how many frames a second are drawn."""

from __future__ import annotations

import math
import random
import statistics
import sys
import time
from typing import Any
from urllib.parse import urlencode

from bench_common import Context, Figure
from mlp_api.jobs.metrics import MetricPoint
from mlp_hub.domain.jobs.job import Job, JobSpec, Phase, Target
from mlp_hub.domain.jobs.run import MetricSummary, RunSummary
from mlp_hub.domain.resources import Resources
from mlp_hub.store.tx import Tx
from support.front.browser import chromium
from support.front.service import FrontService
from support.ports import PAGES, free_port
from support.rigs.api_rig import ApiRig

NAME = "runs"
ABOUT = (
    "10,000 ended runs of one user with 5 parameters and 3 metrics each: medians and 95th percentiles of searches over REST, sorted, the first 200 "
    "with all their columns; curves of 200 runs with 10,000 points each thinned out by the service; and their frames a second in Chromium while "
    "the zoom changes with each frame, and while the cursor moves"
)
RUNS, LOT, CURVES, POINTS, ASKED = 10_000, 250, 200, 10_000, 20
COMMAND = "make bench ONLY=runs"
SEARCHES = ("lr<0.1", "lr<0.1 best.accuracy>=0.9", "tag=baseline", "state=finished fit", "")
FRAMES = """async (what) => {
  const box = document.querySelector('.mlp-overlay .u-over').getBoundingClientRect();
  const over = document.querySelector('.mlp-overlay .u-over');
  const send = (type, x) => over.dispatchEvent(new MouseEvent(type, {clientX: box.left + x, clientY: box.top + 60, bubbles: true, buttons: 1, movementX: 1}));
  const frame = () => new Promise(requestAnimationFrame);
  const times = [];
  await frame();
  let last = performance.now();
  for (let i = 0; i < 90; i += 1) {
    if (what === 'zoom') { send('mousedown', 2 + i / 8); send('mousemove', box.width - 4 - i / 8); document.dispatchEvent(new MouseEvent('mouseup', {clientX: box.left + box.width - 4 - i / 8, clientY: box.top + 60, bubbles: true})); over.dispatchEvent(new MouseEvent('mouseup', {clientX: box.left + box.width - 4 - i / 8, clientY: box.top + 60, bubbles: true})); }
    else send('mousemove', 10 + (i * 7) % (box.width - 20));
    await frame(); await frame();
    const now = performance.now();
    times.push((now - last) / 2);
    last = now;
  }
  return times;
}"""


def run(context: Context) -> list[Figure]:
    """Measure the service, then the browser."""
    return [*_service(context), *_browser()]


def _service(context: Context) -> list[Figure]:
    figures = []
    with ApiRig(context.tmp / "runs") as rig:
        rig.tenant("red", "rita", members=("ann",))
        chance = random.Random(7)
        for start in range(0, RUNS, LOT):
            rig.run(rig.rig.db.write(lambda tx, start=start: _fill(tx, start, chance)))
        for search in SEARCHES:
            for sort in ("-submitted", "-best.accuracy"):
                query = urlencode({"search": search, "sort": sort, "limit": 200})
                took = [_timed(rig, f"/users/ann/runs?{query}") for _ in range(ASKED)]
                name = f"search of 10,000 runs: {search or 'all'}, by {sort}"
                p95 = statistics.quantiles(took, n=20)[-1]
                note = f"95th percentile {p95:.0f} ms; wanted: 100 ms"
                figures.append(Figure(name, statistics.median(took), "ms", note=note, command=COMMAND))
        begun = time.perf_counter()
        for number in range(CURVES):
            rig.run(rig.rig.db.write(lambda tx, number=number: _curve(tx, number)))
        sys.stderr.write(f"{CURVES} curves stored in {time.perf_counter() - begun:.1f} s\n")
        begun = time.perf_counter()
        for start in range(0, CURVES, 25):
            names = ",".join(f"fit@{number + 1}" for number in range(start, start + 25))
            path = f"/users/ann/runs:curves?{urlencode({'runs': names, 'metric': 'loss', 'points': 400})}"
            answer = rig.ask("GET", path, token=rig.ann)
            if answer.status != 200:
                raise RuntimeError(f"{path} answered {answer.status}: {answer.body[:200]!r}")
        took_s = time.perf_counter() - begun
        note = "2,000,000 stored points read and thinned to 400 each"
        figures.append(Figure("curves of 200 runs, by the service", took_s, "s", note=note, command=COMMAND))
    return figures


def _timed(rig: ApiRig, path: str) -> float:
    begun = time.perf_counter()
    answer = rig.ask("GET", path, token=rig.ann)
    if answer.status != 200:
        raise RuntimeError(f"{path} answered {answer.status}: {answer.body[:200]!r}")
    return (time.perf_counter() - begun) * 1000


def _uid(number: int) -> str:
    return f"{number:026d}"


def _fill(tx: Tx, start: int, chance: random.Random) -> None:
    tx.users.ensure("ann", 1.0)
    made = []
    for number in range(start, start + LOT):
        spec = JobSpec("fit", "ann", "red", "plain", Resources(cpu=1000, ram=512), code="x = 1\n" * 250)
        state: dict[str, Any] = {"run": number + 1, "started_at": 2.0, "finished_at": 60.0 + number}
        if number % 50 == 0:
            state["note"] = "one of fifty"
        made.append(Job(_uid(number), spec, Phase.FINISHED, Target.RUN, submitted_at=float(number), **state))
    tx.jobs.insert_many(made)
    for number in range(start, start + LOT):
        lr = 10 ** chance.uniform(-4, 0)
        params = {
            "lr": lr,
            "opt": chance.choice(["adam", "sgd"]),
            "batch": 32,
            "layers": number % 9,
            "deep": True,
        }
        tx.runs.put_params(_uid(number), params)
        best = chance.random()
        metrics = {name: MetricSummary(0, best * 0.9, best / 10, best) for name in ("accuracy", "loss", "f1")}
        tx.runs.put_summary(_uid(number), RunSummary(0, True, 58.0 + number, 1.5, 700, metrics))
        if number % 50 == 0:
            tx.runs.set_tags(_uid(number), ["baseline"])


def _curve(tx: Tx, number: int) -> None:
    points = [
        MetricPoint(
            n=n, t=float(n), v={"step": n, "loss": math.exp(-n / 3000) + math.sin(n * (number + 1)) / 50}
        )
        for n in range(1, POINTS + 1)
    ]
    tx.metrics.append(_uid(number), "0.0.bench", points)


def _browser() -> list[Figure]:
    front = FrontService(free_port(PAGES))
    front.start()
    front.data.runs.rows = front.data.runs.some(CURVES)
    front.data.runs.points = POINTS
    names = ",".join(f"digits@{number + 1}" for number in range(CURVES))
    figures = []
    try:
        with chromium() as browser:
            page = browser.new_page(viewport={"width": 1280, "height": 860})
            page.goto(f"{front.url}/services/mlp/compare/ann/{names}")
            page.wait_for_selector(".mlp-overlay .u-over", timeout=60_000)
            page.wait_for_timeout(1500)
            for what in ("zoom", "cursor"):
                times = page.evaluate(FRAMES, what)
                if what == "zoom":  # it was zoomed, and not only moved over
                    page.get_by_role("button", name="Show all").click(timeout=5000)
                rate = 1000 / statistics.median(times)
                slow = 1000 / statistics.quantiles(times, n=20)[-1]
                note = f"200 curves of 10,000 points; slowest of 20: {slow:.0f} frames/s; wanted: 30"
                figures.append(
                    Figure(f"frames of a comparison, {what}", rate, "1/s", note=note, command=COMMAND)
                )
    finally:
        front.stop()
    return figures
