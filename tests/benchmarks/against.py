"""Measure another commit and this tree in turn, and print both medians of each figure with their ratio and ranges.

`python tests/benchmarks/against.py COMMIT [ONLY=name,...] [ROUNDS=3]` (or `make bench AGAINST=COMMIT ONLY=name ROUNDS=3`). The commit is
checked out below `build/against` and installed there by its own `make test-tools`; it stays there for the next time. Each round runs the
benchmarks of the commit and then those of this tree, so that what else the machine does meets both alike. This tree's medians go to
`history.jsonl`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import history

ROOT = Path(__file__).parents[2]
OF_MAKE = ("MAKEFLAGS", "MAKEOVERRIDES", "MAKELEVEL", "MFLAGS", "ONLY", "AGAINST", "ROUNDS")
"""What `make` hands on of the call that began this, and what is not meant for the commit's own."""

LEFT = 2
"""Columns of words, before those of numbers."""

Figures = dict[tuple[str, str], float]
"""Values of one run by the figure's name and unit."""


class BenchError(Exception):
    """What could not be checked out, installed or measured."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Values of one figure, one for each round; none where that side has no such figure."""

    name: str
    unit: str
    olds: tuple[float, ...]
    news: tuple[float, ...]

    @property
    def old(self) -> float | None:
        """Median of the commit."""
        return statistics.median(self.olds) if self.olds else None

    @property
    def new(self) -> float | None:
        """Median of this tree."""
        return statistics.median(self.news) if self.news else None

    @property
    def ratio(self) -> float | None:
        """New median divided by the old one."""
        return None if self.old is None or self.new is None or not self.old else self.new / self.old


def in_turn(
    rounds: int, measure: Callable[[Path], Figures], old: Path, new: Path
) -> tuple[list[Figures], list[Figures]]:
    """Measure the old tree and then the new one in every round; return the runs of each."""
    runs: tuple[list[Figures], list[Figures]] = [], []
    for number in range(1, rounds + 1):
        for tree, found, called in zip((old, new), runs, ("old", "new"), strict=True):
            sys.stdout.write(f"\nround {number} of {rounds}, {called}\n")
            sys.stdout.flush()
            found.append(measure(tree))
    return runs


def compared(old: Sequence[Figures], new: Sequence[Figures]) -> list[Comparison]:
    """Return what was measured of each figure, in the order of this tree's, with those that only the other has at the end."""
    keys = dict.fromkeys(key for runs in (new, old) for run in runs for key in run)
    return [Comparison(*key, _values(old, key), _values(new, key)) for key in keys]


def _values(runs: Iterable[Figures], key: tuple[str, str]) -> tuple[float, ...]:
    return tuple(run[key] for run in runs if key in run)


def table(rows: Iterable[Comparison]) -> list[str]:
    """Write the comparison, one line for each figure: medians, their ratio, and from where to where the rounds went."""
    cells = [("figure", "unit", "old", "new", "new/old", "old from-to", "new from-to")]
    for row in rows:
        ratio = "-" if row.ratio is None else f"{row.ratio:.2f}"
        medians = _number(row.old), _number(row.new)
        cells.append((row.name, row.unit, *medians, ratio, _range(row.olds), _range(row.news)))
    wide = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if n < LEFT else cell.rjust(width)
            for n, (cell, width) in enumerate(zip(line, wide, strict=True))
        )
        for line in cells
    ]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _range(values: Sequence[float]) -> str:
    return f"{min(values):.4g} - {max(values):.4g}" if values else "-"


def checked_out(root: Path, commit: str) -> Path:
    """Return a worktree of a commit below `build/against`, which is made where it is not there yet."""
    try:
        sha = _git(root, "rev-parse", "--verify", "--end-of-options", f"{commit}^{{commit}}")
    except BenchError as error:
        raise BenchError(f"there is no commit {commit} here: {error}") from error
    tree = root / "build" / "against" / sha[:12]
    _git(root, "worktree", "prune")
    # git would answer for the tree around a directory that is no worktree
    if not (tree / ".git").exists():
        tree.parent.mkdir(parents=True, exist_ok=True)
        _git(root, "worktree", "add", "--quiet", "--force", "--detach", str(tree), sha)
    _git(tree, "reset", "--quiet", "--hard", sha)
    return tree


def install(tree: Path) -> None:
    """Make the tree's environment with its own `make test-tools`."""
    _run(["make", "test-tools"], tree, f"{tree.name} could not be installed")


def measured(tree: Path, only: str) -> Figures:
    """Run the tree's own benchmarks and return their figures."""
    results = tree / "build" / "bench.json"
    results.unlink(missing_ok=True)  # those of an earlier run are none of this
    command = [str(tree / ".venv/bin/python"), "tests/benchmarks/run.py", *([f"ONLY={only}"] if only else [])]
    _run(command, tree, f"a benchmark of {tree.name} failed")
    return {(found["name"], found["unit"]): found["ours"] for found in json.loads(results.read_text())}


def _git(tree: Path, *words: str) -> str:
    # within a hook of git its variables mean another tree, whatever -C says
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "-C", str(tree), *words]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchError(done.stderr.strip())
    return done.stdout.strip()


def _run(command: Sequence[str], tree: Path, otherwise: str) -> None:
    environ = {name: value for name, value in os.environ.items() if name not in OF_MAKE}
    # traces lie beside the checkout that one works in
    environ.setdefault("MLP_BENCH_DATA", str(ROOT.parent / "shared" / "data"))
    if subprocess.run(command, cwd=tree, env=environ, check=False).returncode:
        raise BenchError(otherwise)


def compare(root: Path, commit: str, only: str, rounds: int) -> list[Comparison]:
    """Measure a commit and the tree at `root` in turn, and return what came of it; raises `BenchError`."""
    old = checked_out(root, commit)
    install(old)
    return compared(*in_turn(rounds, lambda tree: measured(tree, only), old, root))


def _measured(
    row: Comparison, commit: str, anchors: Mapping[tuple[str, str], history.Beside | None]
) -> history.Measured:
    """Return this tree's median beside the commit's, and beside the anchor of the last round."""
    assert row.new is not None
    against = None if row.old is None else history.Beside(commit, row.old)
    return history.Measured(row.name, row.unit, row.new, anchors.get((row.name, row.unit)), against)


def main(words: Sequence[str], root: Path = ROOT) -> int:
    """Compare, print the table and keep this tree's figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("commit", help="what to compare with: a hash, a branch, HEAD~1")
    parser.add_argument("options", nargs="*", metavar="ONLY=name,... ROUNDS=3")
    asked = parser.parse_args(words)
    options = {"ONLY": "", "ROUNDS": "3"} | dict(word.partition("=")[::2] for word in asked.options)
    if len(options) > 2 or not options["ROUNDS"].isdecimal() or options["ROUNDS"] == "0":
        parser.error("after the commit come ONLY=name,... and ROUNDS=number")
    try:
        rows = compare(root, asked.commit, options["ONLY"], int(options["ROUNDS"]))
    except BenchError as failed:
        sys.stderr.write(f"{failed}\n")
        return 1
    sys.stdout.write("\n" + "\n".join(table(rows)) + "\n")
    anchors = {(found.figure, found.unit): found.anchor for found in history.last(root)}
    commit = history.commit_of(checked_out(root, asked.commit))
    history.append(root, [_measured(row, commit, anchors) for row in rows if row.new is not None])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
