"""Events since the last stored sample: waits that were over, jobs that ended, answers of apps. A few additions each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mlp_hub.domain.apps.app_usage import AppUse
from mlp_hub.domain.jobs.job import FINAL, HOLDING, Phase
from mlp_hub.domain.over_time.sums import ENDS, SLOWER, wait_bucket
from mlp_hub.service.state.moves import Move


@dataclass(slots=True)
class JobEvents:
    """Numbers of waits by bucket, and of ended jobs by result, by tenant."""

    waits: dict[str, Counter[int]] = field(default_factory=dict)
    ends: dict[str, Counter[str]] = field(default_factory=dict)

    def moved(self, moves: Sequence[Move]) -> None:
        """Note moves of jobs."""
        for move in moves:
            old, new = move.old, move.new
            tenant = new.spec.tenant
            if old.phase is Phase.QUEUED and new.phase in HOLDING:
                self.waits.setdefault(tenant, Counter())[wait_bucket(new.waited - old.waited)] += 1
            if new.phase in FINAL and old.phase not in FINAL:
                self.ends.setdefault(tenant, Counter())[new.phase.value] += 1

    def add(self, other: JobEvents) -> None:
        """Add events that could not be stored."""
        for tenant, waits in other.waits.items():
            self.waits.setdefault(tenant, Counter()).update(waits)
        for tenant, ends in other.ends.items():
            self.ends.setdefault(tenant, Counter()).update(ends)

    @property
    def tenants(self) -> set[str]:
        """Return the tenants of which anything happened."""
        return {*self.waits, *self.ends}

    def ends_of(self, tenant: str) -> tuple[int, int, int]:
        """Return how many jobs of a tenant ended, in the order of `ENDS`."""
        found: Mapping[str, int] = self.ends.get(tenant, {})
        finished, failed, cancelled = (found.get(name, 0) for name in ENDS)
        return finished, failed, cancelled


@dataclass(frozen=True, slots=True)
class AnswersOfApps:
    """Requests to apps and their errors; answers by the bound in milliseconds that they kept."""

    requests: int = 0
    errors: int = 0
    latency: Mapping[int, int] = field(default_factory=dict)


def answers_since(before: AppUse | None, now: AppUse) -> AnswersOfApps:
    """Return the requests between two counts of the gateway, `before` None: since it began to count.

    A count that is smaller than before is that of another gateway or of a new tenant: it says nothing of this span.
    """
    if before is None:
        before = AppUse(now.since, bounds_ms=now.bounds_ms, latency=(0,) * len(now.latency))
    requests, errors = now.requests - before.requests, now.errors - before.errors
    if requests < 0 or errors < 0:
        return AnswersOfApps()
    latency: dict[int, int] = {}
    if now.bounds_ms == before.bounds_ms:
        bounds = (*now.bounds_ms, SLOWER)
        for bound, old, new in zip(bounds, before.latency, now.latency, strict=False):
            if new > old:
                latency[bound] = new - old
    return AnswersOfApps(requests, errors, latency)
