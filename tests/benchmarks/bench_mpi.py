"""What the platform adds to a short MPI job of two ranks."""

from __future__ import annotations

import subprocess
import sys

from bench_common import Context, Figure, Stopwatch, median_of
from support.hubs.live_hub import BIN

NAME = "mpi"
ABOUT = "mpi4py allreduce on 2 ranks: submit to finished (seen by polling every 10 ms), less the same program under bare mpiexec; medians of 10"
PROGRAM = "from mpi4py import MPI\nassert MPI.COMM_WORLD.allreduce(1) == 2\n"
RUNS = 10


def run(context: Context) -> list[Figure]:
    hub = context.hub
    program = context.tmp / "hello.py"
    program.write_text(PROGRAM)
    bare, ours = [], []
    for i in range(RUNS):
        watch = Stopwatch()
        subprocess.run(
            [str(BIN / "mpiexec"), "-n", "2", sys.executable, str(program)], check=True, timeout=60
        )
        bare.append(watch.seconds)
        watch = Stopwatch()
        hub.submit("bench", f"mpi-{i}", PROGRAM, runtime="mpi", workers=2, cpu=1, ram=256)
        while hub.job("bench", f"mpi-{i}")["phase"] != "finished":
            pass
        ours.append(watch.seconds)
    added = median_of(ours) - median_of(bare)
    return [
        Figure(
            "MPI job of 2 ranks, added to bare mpiexec",
            added,
            "s",
            median_of(bare),
            "bare mpiexec",
            f"submit to finished {median_of(ours):.3f} s; target <= 0.25 s added",
            "make bench ONLY=mpi",
        )
    ]
