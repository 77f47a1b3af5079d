"""The countdown of a job whose GPUs are not used: by the policy, paused where nothing is measured, stopped by work and by keeping."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mlp_hub.domain.jobs.idle_gpus import MOST_KEPT_S, GpuIdle, works
from mlp_hub.domain.workload.idle_policy import IdleWorkPolicy

POLICY = IdleWorkPolicy("red", 3600, 600)
NEW = GpuIdle()


def test_gpus_that_do_nothing_for_long_count_down() -> None:
    idle = replace(NEW, idle_s=3569)
    assert idle.after(30, False, POLICY) == GpuIdle(3599)
    begun = idle.after(31, False, POLICY)
    assert begun == GpuIdle(3600, left_s=600)
    assert begun.after(590, False, POLICY).left_s == 10
    assert begun.after(10_000, False, POLICY).left_s == 0


def test_any_work_ends_the_countdown_and_the_next_one_is_whole() -> None:
    counting = GpuIdle(5000, left_s=1.0)
    assert counting.after(30, True, POLICY) == NEW


def test_a_time_without_measures_counts_nothing() -> None:
    counting = GpuIdle(5000, left_s=5.0)
    assert counting.after(10_000, None, POLICY) == counting
    assert NEW.after(10_000, None, POLICY) == NEW


def test_without_a_policy_it_is_counted_and_nothing_ends() -> None:
    assert GpuIdle(5000, left_s=5.0).after(30, False, None) == GpuIdle(5030)


def test_a_kept_job_has_no_countdown_until_that_is_over() -> None:
    kept = GpuIdle(5000, left_s=5.0).keep(100)
    assert kept == GpuIdle(5000, kept_s=100, kept_in_all=100)
    assert kept.after(60, False, POLICY).left_s is None
    assert kept.after(100, False, POLICY).left_s == 600


def test_nothing_is_kept_without_end_unless_it_works() -> None:
    kept = GpuIdle(5000).keep(MOST_KEPT_S)
    assert kept.could_be_kept() == MOST_KEPT_S
    later = kept.after(3600, False, POLICY)
    assert later.could_be_kept() == later.kept_s == MOST_KEPT_S - 3600
    over = later.after(MOST_KEPT_S, False, POLICY)
    assert (over.could_be_kept(), over.left_s) == (0, 600)
    assert over.after(30, True, POLICY).could_be_kept() == MOST_KEPT_S


def test_keeping_again_counts_what_is_new_only() -> None:
    assert GpuIdle().keep(100).after(40, False, POLICY).keep(100).kept_in_all == 140


@pytest.mark.parametrize(
    ("gpu", "cores", "expected"),
    [
        (0.0, 0.01, False),
        (0.01, 0.0, True),
        (0.0, 1.0, True),  # it loads data
        (None, 1.0, True),
        (0.5, None, True),
        (None, 0.0, None),
        (0.0, None, None),
        (None, None, None),
    ],
)
def test_a_device_or_a_processor_at_work_is_work(
    gpu: float | None, cores: float | None, expected: bool | None
) -> None:
    assert works(gpu, cores) is expected
