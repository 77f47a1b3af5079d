"""The countdown of an idle notebook server: by the policy, paused without reports, stopped by use and by its owner."""

from __future__ import annotations

from dataclasses import replace

from mlp_hub.domain.workload.idle_policy import IdleWorkPolicy
from mlp_hub.domain.workload.idle_servers import IdleServer

POLICY = IdleWorkPolicy("red", 3600, 600)
SERVER = IdleServer("ann", "", "red", 1.0)


def test_a_server_that_is_idle_for_long_counts_down_and_is_due() -> None:
    assert SERVER.after(30, 3599, POLICY).left_s is None
    counts = SERVER.after(30, 3600, POLICY)
    assert (counts.left_s, counts.due) == (600, False)
    assert counts.after(590, 4190, POLICY).left_s == 10
    over = counts.after(601, 4201, POLICY)
    assert (over.left_s, over.due) == (0, True)


def test_use_stops_a_countdown_and_the_next_one_is_whole() -> None:
    counts = replace(SERVER, left_s=5.0, idle_s=4000)
    used = counts.after(30, 10, POLICY)
    assert (used.left_s, used.due) == (None, False)
    assert used.after(30, 3600, POLICY).left_s == 600


def test_a_countdown_pauses_without_reports() -> None:
    counts = replace(SERVER, left_s=5.0, idle_s=4000)
    assert counts.after(10_000, None, POLICY) == counts


def test_a_kept_server_has_no_countdown_until_that_is_over() -> None:
    kept = replace(SERVER, kept_s=100.0)
    assert kept.after(60, 5000, POLICY).left_s is None
    assert kept.after(100, 5000, POLICY).left_s == 600


def test_without_a_policy_nothing_counts_down() -> None:
    counts = replace(SERVER, left_s=5.0, idle_s=4000)
    assert counts.after(60, 5000, None).left_s is None
