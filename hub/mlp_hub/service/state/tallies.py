"""Numbers of active jobs, and what their ranks use, by tenant: kept with each change, so that a look costs nothing per job."""

from __future__ import annotations

from collections import Counter

from mlp_hub.domain.jobs.job import HOLDING, Job, Phase


class Tallies:
    """Counts of the jobs on a board."""

    def __init__(self) -> None:
        self.phases: Counter[Phase] = Counter()
        self.waiting: Counter[str] = Counter()
        """Jobs in the queue, by tenant."""
        self.running: Counter[str] = Counter()
        """Jobs that hold quota, by tenant."""
        self.cpu: Counter[str] = Counter()
        """Thousandths of cores that ranks use, by tenant."""
        self.ram: Counter[str] = Counter()
        """MiB that ranks use, by tenant."""

    def change(self, before: Job | None, now: Job | None) -> None:
        """Count a job that came (None before), changed, or has ended (None now)."""
        if before is not None and now is not None and before.phase is now.phase:
            if before.ranks is not now.ranks:
                self._add_use(before, -1)
                self._add_use(now, 1)
            return
        if before is not None:
            self._add(before, -1)
        if now is not None:
            self._add(now, 1)

    def clear(self) -> None:
        """Forget all."""
        for counts in (self.phases, self.waiting, self.running, self.cpu, self.ram):
            counts.clear()

    def _add(self, job: Job, sign: int) -> None:
        tenant = job.spec.tenant
        self.phases[job.phase] += sign
        if job.phase is Phase.QUEUED:
            _add(self.waiting, tenant, sign)
        elif job.phase in HOLDING:
            _add(self.running, tenant, sign)
        self._add_use(job, sign)

    def _add_use(self, job: Job, sign: int) -> None:
        if job.phase not in HOLDING:
            return
        cpu = sum(round(rank.cpu * 1000) for rank in job.ranks if rank.cpu is not None)
        ram = sum(rank.ram for rank in job.ranks if rank.ram is not None)
        _add(self.cpu, job.spec.tenant, sign * cpu)
        _add(self.ram, job.spec.tenant, sign * ram)


def _add(counts: Counter[str], tenant: str, amount: int) -> None:
    """Add, and keep no tenant without any."""
    if amount:
        counts[tenant] += amount
        if not counts[tenant]:
            del counts[tenant]
