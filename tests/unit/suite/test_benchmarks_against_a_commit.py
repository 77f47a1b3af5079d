"""Benchmarks of a commit and of the tree that one works in, with a benchmark that reads its figure from a file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
MAKEFILE = f"""
test-tools:
	mkdir -p .venv/bin
	ln -sf {sys.executable} .venv/bin/python
"""
RUN = """
import json, os, sys
from pathlib import Path

value = json.loads(Path("value").read_text())
with open(os.environ["RUNS"], "a") as runs:
    runs.write(f"{value} {sys.argv[1:]}\\n")
Path("build").mkdir(exist_ok=True)
Path("build/bench.json").write_text(json.dumps(
    [{"name": "a step", "unit": "ms", "ours": value, "anchor": 8.0, "anchor_name": "another"}]
))
sys.exit(value < 0)
"""


def git(tree: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(tree), *words], check=True, capture_output=True)


def commit(tree: Path, value: float) -> None:
    (tree / "value").write_text(str(value))
    git(tree, "add", "-A")
    git(tree, "-c", "user.name=ann", "-c", "user.email=ann@localhost", "commit", "-qm", f"{value}")


@pytest.fixture
def against(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Give the module of the comparison."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import against

    return against


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a tree of two commits, the first of which takes 4 ms and the second 2 ms."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("RUNS", str(tmp_path / "runs"))
    found = tmp_path / "tree"
    (found / "tests/benchmarks").mkdir(parents=True)
    (found / ".gitignore").write_text("build/\n.venv\n")
    (found / "Makefile").write_text(MAKEFILE)
    (found / "tests/benchmarks/run.py").write_text(RUN)
    (found / "tests/benchmarks/history.jsonl").touch()
    git(tmp_path, "init", "-q", str(found))
    commit(found, 4)
    commit(found, 2)
    subprocess.run(["make", "test-tools"], cwd=found, check=True, capture_output=True)
    return found


def kept(tree: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (tree / "tests/benchmarks/history.jsonl").read_text().splitlines()]


def test_the_commit_and_this_tree_are_measured_in_turn(
    against: Any, tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert against.main(["HEAD~1", "ROUNDS=2", "ONLY=step"], tree) == 0
    runs = (tree.parent / "runs").read_text().splitlines()
    assert runs == ["4 ['ONLY=step']", "2 ['ONLY=step']"] * 2
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "figure  unit  old  new  new/old  old from-to  new from-to",
        "a step  ms      4    2     0.50        4 - 4        2 - 2",
    ]


def test_this_trees_median_is_kept_with_its_commit_and_the_size_of_the_machine(
    against: Any, tree: Path
) -> None:
    assert against.main(["HEAD~1", "ROUNDS=1"], tree) == 0
    assert against.main(["HEAD~1", "ROUNDS=1"], tree) == 0
    first, again = kept(tree)
    assert {*first} == {"figure", "unit", "value", "anchor", "against", "commit", "date", "machine"}
    assert first["anchor"] == {"name": "another", "value": 8.0}
    assert first["against"]["value"] == 4.0
    assert first["against"]["name"] != first["commit"]
    assert (first["figure"], first["unit"], first["value"]) == ("a step", "ms", 2.0)
    assert {*first["machine"]} == {"cores", "memory_gib"}
    assert again["commit"] == first["commit"], "the history itself is no change of what is measured"
    (tree / "value").write_text("3")
    assert against.main(["HEAD", "ROUNDS=1"], tree) == 0
    assert kept(tree)[-1]["commit"] == f"{first['commit']}+changes"


def test_a_benchmark_that_fails_ends_it_and_nothing_is_kept(
    against: Any, tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(tree, -1)
    assert against.main(["HEAD~1", "ROUNDS=1"], tree) == 1
    assert "a benchmark of tree failed" in capsys.readouterr().err
    assert kept(tree) == []


def test_a_commit_that_is_not_there_is_named(
    against: Any, tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert against.main(["none-such", "ROUNDS=1"], tree) == 1
    assert "there is no commit none-such here" in capsys.readouterr().err


def test_medians_appear_side_by_side_and_missing_values_are_dashes(against: Any) -> None:
    step, start, gone = ("a step", "ms"), ("start", "s"), ("gone", "1/s")
    old = [{step: 1.0, gone: 7.0}, {step: 9.0, gone: 7.0}, {step: 2.0, gone: 7.0}]
    new = [{step: 3.0, start: 0.5}, {step: 5.0, start: 0.25}, {step: 4.0, start: 0.5}]
    assert against.table(against.compared(old, new)) == [
        "figure  unit  old  new  new/old  old from-to  new from-to",
        "a step  ms      2    4     2.00        1 - 9        3 - 5",
        "start   s       -  0.5        -            -   0.25 - 0.5",
        "gone    1/s     7    -        -        7 - 7            -",
    ]


def test_a_figure_of_nothing_has_no_ratio(against: Any) -> None:
    (row,) = against.compared([{("lost", "jobs"): 0.0}], [{("lost", "jobs"): 1.0}])
    assert row.ratio is None
