"""What an attempt used counts where all of its ranks were measured, and from the start of its run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mlp_hub.domain.jobs.job import Job, JobSpec, Phase, RankStatus, Target
from mlp_hub.domain.resources import Resources
from mlp_hub.service.state.board import use_of
from mlp_hub.service.state.moves import Move, Step
from mlp_hub.store.repos.workload.ledger import MeasuredUse
from mlp_language.message import msg

SPEC = JobSpec("digits", "ann", "red", "plain", Resources(cpu=1000, ram=512), code="x")
JOB = Job("0" * 26, SPEC, Phase.RUNNING, Target.RUN, submitted_at=1.0, started_at=10.0)
STEP = Step("ended", msg("ended"))
MEASURED = RankStatus(0, "worker", "n1", "finished", cpu_mean=0.25, ram_mean=100)


@pytest.mark.parametrize(
    ("ranks", "used"),
    [
        ((MEASURED, MEASURED), MeasuredUse(500, 200, 10.0)),
        (
            (MEASURED, replace(MEASURED, cores_reported=True)),
            MeasuredUse(500, 200, 10.0, cpu_reported=True),
        ),
        (
            (replace(MEASURED, memory_reported=True), MEASURED),
            MeasuredUse(500, 200, 10.0, ram_reported=True),
        ),
        ((MEASURED, replace(MEASURED, cpu_mean=None)), None),
        ((MEASURED, replace(MEASURED, ram_mean=None)), None),
        ((), None),
    ],
)
def test_use_is_the_sum_of_the_means_of_all_ranks(
    ranks: tuple[RankStatus, ...], used: MeasuredUse | None
) -> None:
    ended = replace(JOB, phase=Phase.FINISHED, ranks=ranks)
    assert use_of(Move(JOB, ended, STEP)) == used
    # an attempt that is followed by another one leaves its ranks in the row before
    again = replace(JOB, phase=Phase.QUEUED, ranks=(), started_at=None)
    assert use_of(Move(replace(JOB, ranks=ranks), again, STEP)) == used


def test_an_attempt_that_never_ran_used_nothing_that_was_measured() -> None:
    before = replace(JOB, started_at=None, ranks=(MEASURED,))
    assert use_of(Move(before, replace(before, phase=Phase.FAILED), STEP)) is None
