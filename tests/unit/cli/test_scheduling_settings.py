"""Every field of the scheduling policy is a setting of the hub."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from mlp_hub.app import scheduling_of
from mlp_hub.scheduler.model.types import SchedulingPolicy
from mlp_hub.settings import Settings

OTHERS = {
    "scheduling_policy": "fifo",
    "scheduling_half_life_s": "7",
    "scheduling_backfill": "0",
    "scheduling_preemption": "0",
    "scheduling_placement": "spread",
    "scheduling_min_run_s": "8",
    "scheduling_restart_cost_s": "9",
    "scheduling_aging_s": "10",
    "scheduling_seed": "11",
    "scheduling_patience": "12",
}


def test_each_field_can_be_set(tmp_path: Path) -> None:
    given = {f"MLP_{name.upper()}": value for name, value in OTHERS.items()}
    usual = scheduling_of(Settings.load({"MLP_HOME": str(tmp_path)}))
    changed = scheduling_of(Settings.load({"MLP_HOME": str(tmp_path), **given}))
    same = [f.name for f in fields(SchedulingPolicy) if getattr(usual, f.name) == getattr(changed, f.name)]
    assert same == []


def test_the_usual_policy_is_the_schedulers_own_but_for_the_time_a_job_may_run_undisturbed(
    tmp_path: Path,
) -> None:
    usual = scheduling_of(Settings.load({"MLP_HOME": str(tmp_path)}))
    other = [f.name for f in fields(SchedulingPolicy) if getattr(usual, f.name) != f.default]
    assert other == ["min_run_s"]
