"""Peaks of a run: looks at it while it runs, and in the end what was measured, which its page and its job say too."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from mlp_hub.domain.jobs.job import Phase, RankStatus
from mlp_hub.domain.jobs.run import RunSummary
from mlp_hub.service.runs.summaries import _summed_up
from mlp_hub.store.records import RunEnd

ENDED = RankStatus(0, "worker", "n1", "finished", cpu_peak=0.9, ram_peak=106)


def peaks(known: RunSummary, end: RunEnd) -> tuple[float | None, int | None]:
    runs = SimpleNamespace(ends=lambda _: {"a": end}, summaries=lambda _: {"a": known})
    tx: Any = SimpleNamespace(runs=runs, metrics=SimpleNamespace(reported=lambda _: set()))
    ((_, new, _),) = _summed_up(tx, ["a"])
    return new.cpu_peak, new.ram_peak


@pytest.mark.parametrize(
    ("end", "found"),
    [
        (
            RunEnd(Phase.RUNNING, 0.0, [RankStatus(0, "worker", "n1", "running", cpu=0.5, ram=120)]),
            (1.2, 165),
        ),
        (RunEnd(Phase.FINISHED, 9.0, [ENDED]), (0.9, 106)),
        # an earlier attempt may have used more
        (RunEnd(Phase.FINISHED, 9.0, [ENDED], before=3.0), (1.2, 165)),
        # nobody saw its end
        (RunEnd(Phase.FAILED, 9.0, [RankStatus(0, "worker", "n1", "failed")]), (1.2, 165)),
    ],
)
def test_a_run_that_is_over_has_the_peak_that_was_measured(end: RunEnd, found: tuple[float, int]) -> None:
    assert peaks(RunSummary(0, False, None, 1.2, 165, {}), end) == found
