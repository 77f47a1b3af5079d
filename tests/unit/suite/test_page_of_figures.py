"""The page of figures, from histories of the form that benchmarks write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reference.figures import page_of

ROOT = Path(__file__).parents[3]


@pytest.fixture
def history(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Give the module that keeps figures."""
    monkeypatch.syspath_prepend(str(ROOT / "tests/benchmarks"))
    import history

    return history


def test_the_newest_line_of_a_figure_is_shown_with_its_ratios() -> None:
    beside = {"name": "Slurm", "value": 4.0}
    shown = {"commit": "abc", "date": "2026-01-02", "machine": {"cores": 2, "memory_gib": 8}}
    lines = [
        {"figure": "start", "unit": "s", "value": 3.0} | shown,
        {"figure": "jobs", "unit": "1/min", "value": 7.0} | shown,
        {
            "figure": "start",
            "unit": "s",
            "value": 1.0,
            "anchor": beside,
            "against": {"name": "old", "value": 0.0},
        }
        | shown,
    ]
    rows = page_of(lines).splitlines()[-2:]
    assert rows == [
        "| start | 1 s | Slurm: 4 | 0.25 | old: 0 |  | 2026-01-02, abc, 2 cores, 8 GiB |",
        "| jobs | 7 1/min |  |  |  |  | 2026-01-02, abc, 2 cores, 8 GiB |",
    ]


def test_a_figure_that_was_kept_is_read_back(
    history: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "commit_of", lambda root: "abc")
    (tmp_path / "tests/benchmarks").mkdir(parents=True)
    history.append(tmp_path, [history.Measured("start", "s", 1.23456789, history.Beside("Slurm", 4.0))])
    line = json.loads((tmp_path / history.KEPT).read_text())
    assert (line["figure"], line["value"], line["commit"]) == ("start", 1.23457, "abc")
    assert line["anchor"] == {"name": "Slurm", "value": 4.0}
    assert "against" not in line
