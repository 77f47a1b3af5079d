"""Times that bare jobs print are found in their logs by what they are, in whatever year."""

from __future__ import annotations

from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.parametrize("now", [1_764_345_600.0, 1_800_000_123.5, 4_102_444_800.0])
def test_a_time_of_this_run_is_one_and_other_numbers_are_none(
    now: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from bench_kube_jobs import is_time

    assert is_time(f"{now + 0.7}", now)
    assert [
        is_time(word, now) for word in ("17.5", f"{now - 86_400}", "v1.34.4", "1.2.3", str(int(now)))
    ] == [False] * 5
