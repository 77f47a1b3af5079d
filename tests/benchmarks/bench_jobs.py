"""Submit to first rank running, and plain one-core jobs per minute, through REST and the sandbox."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

from bench_common import Context, Figure, median_of, quantile
from slurm import Slurm
from support.waiting import wait_for

NAME = "jobs"
ABOUT = (
    "submit to the first line of rank 0's program (median of 30, idle hub); 200 one-core jobs from 4 clients to the "
    "last end, of the program that Slurm's jobs run (a shell that ends at once) and of a Python program"
)
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
    hub.submit(
        "bench",
        "writer",
        "from pathlib import Path; (Path.home() / 'true.sh').write_text('exit 0')",
        cpu=1,
        ram=128,
    )
    hub.wait_phase("bench", "writer", "finished")
    shell = _per_minute(context, "shell", {"entry": "true.sh"})
    python = _per_minute(context, "python", {"code": "pass"})
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
            shell,
            "1/min",
            max(2299, slurm.per_minute if slurm else 0),
            "tuned Slurm, the best seen",
            "target 2300; each job is a shell program in a sandbox of its own, Slurm's is /bin/true without one; "
            + (
                f"Slurm in the same run {slurm.per_minute:.0f}" if slurm else "no Slurm here to run beside it"
            ),
            "make bench ONLY=jobs",
        ),
        Figure(
            "the same, of Python programs",
            python,
            "1/min",
            note=f"one start of this environment's interpreter takes {_start_of_python() * 1000:.0f} ms of a core",
            command="make bench ONLY=jobs",
        ),
    ]


def _per_minute(context: Context, kind: str, program: dict[str, str]) -> float:
    """Submit so many jobs side by side; return how many end in a minute."""
    hub = context.hub

    def submit(number: int) -> None:
        hub.ok(
            "POST",
            "/users/bench/jobs",
            "bench",
            {"name": f"{kind}-{number}", "cpu": 1, "ram": 128, **program},
        )

    def ends() -> list[str] | None:
        jobs = hub.ok("GET", "/users/bench/jobs?limit=1000", "bench")
        found = [
            j["finished_at"] for j in jobs if j["name"].startswith(f"{kind}-") and j["phase"] == "finished"
        ]
        return found if len(found) == JOBS else None

    began = time.time()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(submit, range(JOBS)))
    last = max(map(datetime.fromisoformat, wait_for(ends, 300, 0.5)))
    return JOBS / (last.timestamp() - began) * 60


def _start_of_python() -> float:
    """Return the processor seconds of one start of the interpreter that jobs run with."""
    before = os.times()
    for _ in range(10):
        subprocess.run([sys.executable, "-c", "pass"], check=True)
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return used / 10
