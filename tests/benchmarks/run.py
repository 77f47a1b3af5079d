"""Run the benchmarks and print a table with others' figures beside ours; results go to build/bench.json.

`python tests/benchmarks/run.py [ONLY=name,...]` (or `make bench ONLY=name`). Each benchmark is a module here with
`NAME`, `ABOUT` (the method in one sentence) and `run(context) -> list[Figure]`. These are measurements, not tests:
nothing here asserts on speed.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from bench_common import Context, Figure  # noqa: E402 - the path is set up above

MODULES = (
    "bench_start",
    "bench_memory",
    "bench_jobs",
    "bench_mpi",
    "bench_metrics",
    "bench_points",
    "bench_audit",
    "bench_placement",
    "bench_tacc",
    "bench_cycle",
    "bench_forecast",
    "bench_kueue",
    "bench_cluster_nodes",
    "bench_users",
    "bench_groups",
    "bench_login",
    "bench_apps",
    "bench_data",
    "bench_runs",
    "bench_usage",
    "bench_watch",
    "bench_sweep",
    "bench_kube_jobs",
    "bench_kube_spawn",
    "bench_kube_gangs",
    "bench_kube_faults",
)


def main() -> int:
    """Run all benchmarks, or those named by ONLY; a failing one is shown and makes the exit status 1."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "only", nargs="?", default=os.environ.get("ONLY", ""), help="names, separated by commas"
    )
    only = {n for n in parser.parse_args().only.removeprefix("ONLY=").split(",") if n}
    modules = [importlib.import_module(name) for name in MODULES]
    unknown = only - {m.NAME for m in modules}
    if unknown:
        sys.stderr.write(
            f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(m.NAME for m in modules)}\n"
        )
        return 2
    figures: list[Figure] = []
    failed = 0
    with tempfile.TemporaryDirectory(prefix="mlp-bench-", dir="/tmp") as tmp:
        context = Context(Path(tmp))
        try:
            for module in modules:
                if only and module.NAME not in only:
                    continue
                sys.stdout.write(f"{module.NAME}: {module.ABOUT}\n")
                sys.stdout.flush()
                began = time.monotonic()
                try:
                    done = module.run(context)
                except Exception as error:  # noqa: BLE001 - one broken benchmark must not hide the others
                    failed += 1
                    sys.stdout.write(f"  failed: {error!r}\n")
                    continue
                for figure in done:
                    sys.stdout.write(f"  {figure.line()}\n")
                sys.stdout.write(f"  ({time.monotonic() - began:.0f} s)\n")
                figures += done
        finally:
            context.close()
    build = HERE.parent.parent / "build"
    build.mkdir(exist_ok=True)
    (build / "bench.json").write_text(json.dumps([f.as_json() for f in figures], indent=2) + "\n")
    sys.stdout.write("\n" + "\n".join(f.line() for f in figures) + f"\n\nwritten to {build / 'bench.json'}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
