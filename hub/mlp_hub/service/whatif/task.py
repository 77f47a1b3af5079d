"""Messages between the service and the process that runs a what-if; apart, so that the service loads no more."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mlp_hub.service.support.limits import DEFAULTS
from mlp_hub.simulate.recorded import Recording


@dataclass(frozen=True, slots=True)
class Task:
    """Task of a run: a scenario as plain values, or two recordings."""

    scenario: dict[str, Any] | None = None
    before: Recording | None = None
    after: Recording | None = None
    lines: bool = False
    chart: bool = False
    most_jobs: int = DEFAULTS.what_if_jobs
    most_nodes: int = DEFAULTS.what_if_nodes


@dataclass(frozen=True, slots=True)
class WhatIfOutcome:
    """Outcome of a what-if: `refused` is an error as message data, or `answer` has a `Simulated`'s parts."""

    refused: dict[str, Any] | None = None
    answer: dict[str, Any] = field(default_factory=dict)
