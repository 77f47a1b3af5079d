"""Keep figures: one line of JSON each in `tests/benchmarks/history.jsonl`, which is committed.

`make bench AGAINST=COMMIT` appends this tree's medians. `python tests/benchmarks/history.py` appends the figures of the last `make bench`.
A line describes the machine by its size alone. `make docs` writes a page of the newest lines.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
KEPT = "tests/benchmarks/history.jsonl"


class Beside(NamedTuple):
    """A figure of another program, of a publication or of an earlier commit, in the unit of ours."""

    name: str
    value: float


class Measured(NamedTuple):
    """One figure, with what it is compared to where there is something."""

    figure: str
    unit: str
    value: float
    anchor: Beside | None = None
    against: Beside | None = None
    """An earlier commit, measured in turn with this tree."""


def append(root: Path, figures: Iterable[Measured]) -> None:
    """Append figures that were measured just now with the tree at `root`."""
    of_all = {"commit": commit_of(root), "date": f"{datetime.now(UTC):%Y-%m-%d}", "machine": machine()}
    with (root / KEPT).open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(_line(figure) | of_all) + "\n" for figure in figures)


def _line(figure: Measured) -> dict[str, Any]:
    line: dict[str, Any] = {"figure": figure.figure, "unit": figure.unit, "value": _short(figure.value)}
    for name in ("anchor", "against"):
        beside: Beside | None = getattr(figure, name)
        if beside is not None:
            line[name] = {"name": beside.name, "value": _short(beside.value)}
    return line


def _short(value: float) -> float:
    return float(f"{value:.6g}")


def last(root: Path) -> list[Measured]:
    """Return the figures of the last `make bench` in the tree at `root`; raises FileNotFoundError where there was none."""
    found = json.loads((root / "build" / "bench.json").read_text(encoding="utf-8"))
    return [Measured(each["name"], each["unit"], each["ours"], _anchor(each)) for each in found]


def _anchor(found: dict[str, Any]) -> Beside | None:
    value = found.get("anchor")
    return None if value is None else Beside(found["anchor_name"], value)


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
    try:
        append(ROOT, last(ROOT))
    except FileNotFoundError:
        sys.stderr.write("no figures here yet: run make bench first\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
