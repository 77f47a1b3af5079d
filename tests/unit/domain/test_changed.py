"""Copies with some fields changed are what `dataclasses.replace` makes."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace

import pytest

from mlp_hub.domain.changed import changed
from mlp_hub.domain.jobs.job import Job, JobSpec, Phase, Target
from mlp_hub.domain.resources import Resources


def test_it_is_what_replace_makes_and_leaves_the_first_alone() -> None:
    job = Job("u", JobSpec("a", "ann", "red", "mpi", Resources(1000, ram=10)), Phase.QUEUED, Target.RUN, 1.0)
    other = changed(job, phase=Phase.RUNNING, placement=("n",), version=3)
    assert other == replace(job, phase=Phase.RUNNING, placement=("n",), version=3)
    assert job.phase is Phase.QUEUED
    assert changed(job) == job
    assert {f.name: getattr(other, f.name) for f in fields(job) if getattr(other, f.name) != getattr(job, f.name)} == {
        "phase": Phase.RUNNING,
        "placement": ("n",),
        "version": 3,
    }  # fmt: skip


def test_a_field_that_is_not_there_is_an_error() -> None:
    with pytest.raises(KeyError, match="phases"):
        changed(Resources(), phases=1)


@dataclass(slots=True)
class _Rectangle:
    width: int
    area: int = field(init=False)

    def __post_init__(self) -> None:
        self.area = self.width**2


def test_a_class_that_works_out_its_fields_is_refused() -> None:
    with pytest.raises(TypeError, match="_Rectangle works out fields of its own"):
        changed(_Rectangle(2), width=3)
