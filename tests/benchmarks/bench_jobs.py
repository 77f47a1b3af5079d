"""Submit to first rank running, and plain one-core jobs per minute, through REST and the sandbox."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

from bench_common import Context, Figure, Stopwatch, median_of, quantile
from live_hub import wait_for
from slurm import Slurm

NAME = "jobs"
ABOUT = "submit to the first line of rank 0's program (median of 30, idle hub); 200 one-core jobs from 4 clients to the last end"
LATENCY_RUNS = 30
JOBS = 200


def run(context: Context) -> list[Figure]:
    hub = context.hub
    hub.token("bench")
    delays = []
    for i in range(LATENCY_RUNS):
        began = time.time()
        hub.submit("bench", f"lat-{i}", "import time; print(time.time())", cpu=1, ram=128)
        hub.wait_phase("bench", f"lat-{i}", "finished")
        delays.append(float(hub.log("bench", f"lat-{i}").split()[-1]) - began)
    watch = Stopwatch()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda i: hub.submit("bench", f"many-{i}", "pass", cpu=1, ram=128), range(JOBS)))

    def all_done() -> bool:
        left = hub.ok("GET", "/users/bench/jobs?limit=1000", "bench")
        return sum(j["phase"] == "finished" for j in left if j["name"].startswith("many-")) == JOBS

    wait_for(all_done, 300, 0.5)
    per_minute = JOBS / watch.seconds * 60
    slurm = Slurm(context.tmp / "slurm").measure(JOBS)
    return [
        Figure(
            "submit to first rank running, median",
            median_of(delays),
            "s",
            slurm.start_s if slurm else 0.99,
            "tuned Slurm, same run" if slurm else "tuned Slurm, published here before",
            f"p95 {quantile(delays, 0.95):.3f} s; target 0.15; includes the interpreter's own start",
            "make bench ONLY=jobs",
        ),
        Figure(
            "plain one-core jobs per minute, sandboxed",
            per_minute,
            "1/min",
            max(2299, slurm.per_minute if slurm else 0),
            "tuned Slurm, the best seen",
            "target 2300; each job is a Python program in a sandbox of its own, Slurm's is /bin/true without one; "
            + (
                f"Slurm in the same run {slurm.per_minute:.0f}" if slurm else "no Slurm here to run beside it"
            ),
            "make bench ONLY=jobs",
        ),
    ]
