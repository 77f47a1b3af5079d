"""Keep what was measured: a line of JSON for each figure in `tests/benchmarks/history.jsonl`, which is committed.

`make bench AGAINST=COMMIT` appends this tree's medians. `python tests/benchmarks/history.py` appends what the last `make bench` measured.
A line names the machine by its size alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
KEPT = "tests/benchmarks/history.jsonl"


def append(root: Path, figures: Iterable[tuple[str, str, float]]) -> None:
    """Append (figure, unit, value), measured just now with the tree at `root`."""
    of_all = {"commit": commit_of(root), "date": f"{datetime.now(UTC):%Y-%m-%d}", "machine": machine()}
    lines = [
        json.dumps({"figure": name, "unit": unit, "value": float(f"{value:.6g}"), **of_all}) + "\n"
        for name, unit, value in figures
    ]
    with (root / KEPT).open("a", encoding="utf-8") as file:
        file.write("".join(lines))


def machine() -> dict[str, Any]:
    """Return how large this machine is: the cores that it may use, and its memory in GiB."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"cores": len(os.sched_getaffinity(0)), "memory_gib": round(memory / 2**30)}


def commit_of(root: Path) -> str:
    """Return the commit of a tree, with `+changes` where other files than this history differ from it."""
    git = ["git", "-C", str(root)]
    commit = subprocess.run(
        [*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=True
    )
    others = [*git, "diff", "--quiet", "HEAD", "--", ".", f":!{KEPT}"]
    changed = subprocess.run(others, check=False).returncode != 0
    return commit.stdout.strip() + ("+changes" if changed else "")


def main() -> int:
    """Append the figures of `build/bench.json`."""
    results = ROOT / "build" / "bench.json"
    if not results.exists():
        sys.stderr.write("nothing was measured here yet: make bench\n")
        return 1
    append(ROOT, [(found["name"], found["unit"], found["ours"]) for found in json.loads(results.read_text())])
    return 0


if __name__ == "__main__":
    sys.exit(main())
