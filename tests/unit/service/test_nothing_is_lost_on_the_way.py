"""What a user asks for reaches the stored job, a resubmission and the answer: a field that is forgotten shows here."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from mlp_api import jobs as jobs_api
from mlp_hub.domain.job import Job, Phase, Target
from mlp_hub.service import wire_jobs

WIRE = Path(__file__).parents[3] / "widgets/src/core/wire.ts"
FULL = jobs_api.JobCreate(
    name="digits",
    code="print()",
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
)


def names(struct: type[msgspec.Struct]) -> set[str]:
    return {f.name for f in msgspec.structs.fields(struct)}


def test_the_example_sets_every_field_but_the_other_program() -> None:
    given = {f.name for f in msgspec.structs.fields(FULL) if getattr(FULL, f.name) != f.default}
    assert given == names(jobs_api.JobCreate) - {"entry"}


@pytest.mark.parametrize(
    "asked", [FULL, msgspec.structs.replace(FULL, code=None, entry="train.py")], ids=["code", "entry"]
)
def test_a_resubmission_asks_for_the_same(asked: jobs_api.JobCreate) -> None:
    spec = wire_jobs.spec_of(asked, "ann", "red", "tf", asked.entry)
    assert wire_jobs.create_of(spec, asked.name) == asked


def test_the_answer_shows_all_that_was_asked_for() -> None:
    job = Job("uid", wire_jobs.spec_of(FULL, "ann", "red", "tf", None), Phase.QUEUED, Target.RUN, 1.0)
    shown = wire_jobs.job_to(job)
    assert {n: getattr(shown, n) for n in names(jobs_api.JobCreate)} == msgspec.structs.asdict(FULL)


def test_the_browser_knows_a_job_by_the_same_fields() -> None:
    found = re.search(r"export interface Job \{(.*?)\n\}", WIRE.read_text(), re.DOTALL)
    assert found is not None
    assert set(re.findall(r"^  (\w+)\??:", found[1], re.MULTILINE)) == names(jobs_api.Job)
