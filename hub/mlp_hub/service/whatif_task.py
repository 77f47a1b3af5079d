"""What the service and the process that runs a what-if tell each other; apart, so that the service loads no more."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mlp_hub.scheduler.simulate.recorded import Recording

MOST_JOBS = 20_000
MOST_NODES = 10_000


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be run: a scenario as plain values, or two recordings."""

    scenario: dict[str, Any] | None = None
    before: Recording | None = None
    after: Recording | None = None
    lines: bool = False
    chart: bool = False
    most_jobs: int = MOST_JOBS
    most_nodes: int = MOST_NODES


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it: `refused` says what was wrong, or `answer` has the parts of a `Simulated`."""

    refused: str | None = None
    answer: dict[str, Any] = field(default_factory=dict)
