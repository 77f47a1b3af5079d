"""Settings that say whose job is next, and where it goes; a part of `Settings`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from mlp_api.terms import POLICIES, PlacementRule, PolicyName
from mlp_hub.settings.values import setting


@dataclass(frozen=True, kw_only=True)
class SchedulingSettings:
    """Settings of the scheduler."""

    __slots__ = ()  # `Settings` makes them: of two bases that have some no class can be made

    scheduling_policy: str = setting(
        "fair",
        "Whose job is next: " + ", ".join(f"{name} ({words})" for name, words in POLICIES.items()) + ".",
        kind="str",
        choices=get_args(PolicyName),
    )
    scheduling_half_life_s: float = setting(
        3600.0,
        "Under `fair`: use of the machines counts half when it is so old.",
        kind="float",
        unit="s",
        low=1,
        high=31_536_000,
    )
    scheduling_backfill: bool = setting(
        True, "Let smaller jobs pass one that waits for room, where that does not delay it.", kind="bool"
    )
    scheduling_preemption: bool = setting(
        True, "Stop or shrink jobs for more urgent ones, and to take back quota that was lent.", kind="bool"
    )
    scheduling_placement: str = setting(
        "fgd",
        "Where ranks go: fgd leaves the fewest GPUs that nobody can use; the others are for comparison.",
        kind="str",
        choices=get_args(PlacementRule),
    )
    scheduling_min_run_s: float = setting(
        30.0,
        "A job that has not run so long is neither stopped nor resized for others.",
        kind="float",
        unit="s",
        low=0,
        high=86_400,
    )
    scheduling_restart_cost_s: float = setting(
        0.0,
        "What stopping a job costs besides its work since the last checkpoint, when victims are compared.",
        kind="float",
        unit="s",
        low=0,
        high=86_400,
    )
    scheduling_aging_s: float = setting(
        600.0,
        "So long a wait is worth one point of priority.",
        kind="float",
        unit="s",
        low=1,
        high=31_536_000,
    )
    scheduling_seed: int = setting(0, "Under random placement: what it begins from.", kind="int", low=0)
    scheduling_patience: float = setting(
        2.5,
        "Under `finish`: a job is late once it has taken so many times its length.",
        kind="float",
        low=1,
        high=1000,
    )
    idle_quota_after: float | None = setting(
        None,
        "A tenant that has been idle for so long has its guarantee lowered (what its lending limit keeps back, and what "
        "it reserves), until it asks for something; unset: never.",
        kind="float",
        unit="s",
        low=60,
        high=31_536_000,
    )
    idle_quota_floor: float = setting(
        0.5,
        "The share of its guarantee that such a tenant keeps, from 0 to 1.",
        kind="float",
        low=0,
        high=1,
    )
