"""Sums up the results of tests that were kept, `build/junit/RUN/TIER.xml`: slowest files, failures, and what failed together.

`make test-summary` does it for all runs; with the name of one run it is one line for each of its ten slowest files.
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

KEPT = Path("build/junit")
SLOWEST = 10
"""Files that are shown."""
MANY = 20
"""Failures of one run: more of them have one cause, and say nothing of pairs."""


@dataclass
class Run:
    """One run: seconds of each file, as `tier file`, and the tests that failed; `torn` are results that were not written whole."""

    name: str
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    failed: set[str] = field(default_factory=set)
    torn: list[str] = field(default_factory=list)


def read(directory: Path) -> Run:
    """Read all tiers of a run."""
    run = Run(directory.name)
    for path in sorted(directory.glob("*.xml")):
        try:
            # our own pytest wrote it
            cases = list(ET.parse(path).iter("testcase"))  # noqa: S314
        except ET.ParseError:
            run.torn.append(path.stem)
            continue
        for case in cases:
            file = case.get("classname", "").replace(".", "/")
            run.seconds[f"{path.stem} {file}"] += float(case.get("time", 0))
            if case.find("failure") is not None or case.find("error") is not None:
                run.failed.add(f"{path.stem} {file}::{case.get('name')}")
    return run


def slowest(runs: list[Run]) -> list[tuple[float, str]]:
    """Return the slowest files, the longest first, with the mean of the runs that had them, in seconds."""
    seconds: dict[str, list[float]] = defaultdict(list)
    for run in runs:
        for file, took in run.seconds.items():
            seconds[file].append(took)
    return sorted(((sum(took) / len(took), file) for file, took in seconds.items()), reverse=True)[:SLOWEST]


def together(runs: list[Run]) -> Counter[tuple[str, str]]:
    """Return pairs of tests that failed in the same runs, more than once."""
    pairs = Counter(
        pair for run in runs if len(run.failed) <= MANY for pair in combinations(sorted(run.failed), 2)
    )
    return Counter({pair: count for pair, count in pairs.items() if count > 1})


def _most(counts: Counter[Any]) -> list[tuple[Any, int]]:
    return sorted(counts.items(), key=lambda found: (-found[1], found[0]))


def lines(runs: list[Run]) -> Iterator[str]:
    """Return the summary of these runs."""
    yield f"Slowest files, seconds with their set-up ({len(runs)} run{'s' * (len(runs) != 1)}):"
    yield from (f"{took:8.1f}  {file}" for took, file in slowest(runs))
    yield from (f"Not written whole: {run.name} {tier}" for run in runs for tier in run.torn)
    if len(runs) < 2:
        return
    failed = Counter(test for run in runs for test in run.failed)
    yield "Failed, in how many runs:" if failed else "No test has failed."
    yield from (f"{count:8d}  {test}" for test, count in _most(failed))
    pairs = together(runs)
    if pairs:
        yield "Failed together, in how many runs:"
        yield from (f"{count:8d}  {one} + {other}" for (one, other), count in _most(pairs))


def main(arguments: list[str]) -> int:
    """Print the summary of one run, or of all that were kept."""
    names = arguments or sorted(path.name for path in KEPT.glob("*") if path.is_dir())
    runs = [run for name in names if (run := read(KEPT / name)).seconds or run.torn]
    if not runs:
        print(f"No results in {KEPT}: make test", file=sys.stderr)
        return 1
    print("\n".join(lines(runs)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
