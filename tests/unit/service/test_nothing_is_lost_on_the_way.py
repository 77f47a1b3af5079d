"""What a user asks for reaches the stored job, a resubmission and the answer: a field that is forgotten shows here."""

from __future__ import annotations

import msgspec
import pytest

from mlp_api.jobs import jobs as jobs_api
from mlp_hub.domain.jobs.job import Job, Phase, Target
from mlp_hub.service.jobs import wire

FULL = jobs_api.JobCreate(
    name="digits",
    code="print()",
    workdir="project/src",
    args=["--epochs", "5"],
    env={"SEED": "1"},
    runtime="tf",
    workers="2:4",
    ps=1,
    cpu=0.5,
    gpu=0.25,
    gpu_kind="h100",
    ram=300,
    tenant="red",
    priority="high",
    time_limit=60,
    retries=2,
    checkpoint_every=30,
    topology="spread",
    tensorboard="off",
    data=["digits", "bob/pets:train"],
    env_name="tools",
)


def names(struct: type[msgspec.Struct]) -> set[str]:
    return {f.name for f in msgspec.structs.fields(struct)}


ASKED = names(jobs_api.JobCreate) - {
    "replace",
    "provenance",
}  # of the runs before it, and kept beside the job


def test_the_example_sets_every_field_but_the_other_program() -> None:
    given = {f.name for f in msgspec.structs.fields(FULL) if getattr(FULL, f.name) != f.default}
    assert given == ASKED - {"entry"}


@pytest.mark.parametrize(
    "asked", [FULL, msgspec.structs.replace(FULL, code=None, entry="train.py")], ids=["code", "entry"]
)
def test_a_resubmission_asks_for_the_same(asked: jobs_api.JobCreate) -> None:
    spec = wire.spec_of(asked, "ann")
    assert wire.create_of(spec) == asked


def test_the_answer_shows_all_that_was_asked_for() -> None:
    job = Job("uid", wire.spec_of(FULL, "ann"), Phase.QUEUED, Target.RUN, 1.0)
    shown = wire.job_to(job)
    assert {n: getattr(shown, n) for n in ASKED} == {n: getattr(FULL, n) for n in ASKED}
