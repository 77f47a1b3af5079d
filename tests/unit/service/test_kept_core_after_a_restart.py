"""Whose room somebody else has already is not asked for again after a restart."""

from __future__ import annotations

import pytest

from mlp_hub.domain.jobs.job import Job, JobSpec, Phase, Target
from mlp_hub.domain.resources import Resources
from mlp_hub.scheduler.model.types import SchedulingPolicy, Snapshot
from mlp_hub.service.admission.backoff import JobBackoff
from mlp_hub.service.admission.cache import KeptCore
from mlp_hub.service.admission.snapshot import running_of
from support.scheduler.scheduler_builders import node, tenant


@pytest.mark.parametrize(
    ("phase", "target", "leaves"),
    [
        (Phase.RUNNING, Target.RUN, False),
        (Phase.RUNNING, Target.PREEMPT, True),
        (Phase.PREEMPTING, Target.RUN, True),
        (Phase.FINISHING, Target.RUN, True),
    ],
)
def test_preempted_and_finishing_jobs_are_leaving(phase: Phase, target: Target, leaves: bool) -> None:
    spec = JobSpec("digits", "ann", "red", "mpi", Resources(1000, 0, 100), 2, 2)
    job = Job("u1", spec, phase, target, 1.0, placement=("n", "n"), queued_at=1.0)
    snapshot = Snapshot((node(),), (tenant(cpu=4),), (), (running_of(job),), SchedulingPolicy())
    kept = KeptCore(snapshot, 2.0, {job.uid: job}, JobBackoff(1.0, 2.0))
    assert (job.uid in kept.leaving) == leaves
    assert (job.uid in kept.core.state.running) == (not leaves)
    assert kept.differences(snapshot, {job.uid: job}) == []
