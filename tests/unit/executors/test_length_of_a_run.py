"""A run is as long as it was, also where somebody set the clock meanwhile."""

from __future__ import annotations

import time

import pytest

from mlp_hub.sandbox.shim.supervise import RankSupervisor


@pytest.mark.parametrize("jump", [-3600.0, 3600.0])
def test_a_clock_that_is_set_makes_no_run_longer_or_shorter(
    monkeypatch: pytest.MonkeyPatch, jump: float
) -> None:
    supervisor = object.__new__(RankSupervisor)
    told = {"wall": 1000.0 * 3600, "steady": 50.0}
    monkeypatch.setattr(time, "time", lambda: told["wall"])
    monkeypatch.setattr(time, "clock_gettime", lambda _clock: told["steady"])
    supervisor._starts()
    told["wall"] += 40 + jump
    told["steady"] += 40
    assert supervisor.ended() == (1000.0 * 3600 + jump, 1000.0 * 3600 + jump + 40)


def test_a_rank_that_never_started_has_no_start_time() -> None:
    supervisor = object.__new__(RankSupervisor)
    supervisor.started_at = None
    assert supervisor.ended()[0] is None
