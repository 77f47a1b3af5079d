"""The amount of memory that fits by earlier runs: the one rule, with runs that ran out of memory and hostile measurements."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mlp_hub.domain.jobs.job import Cause, Failure, Job, JobSpec, Phase, RankStatus, Target
from mlp_hub.domain.jobs.right_size import (
    MARGIN_MIB,
    MOST_MIB,
    STEP_MIB,
    MemoryOfRuns,
    PastMemory,
    RunMemory,
    memory_keys,
    memory_of,
)
from mlp_hub.domain.resources import Resources

SPEC = JobSpec("digits", "ann", "red", "mpi", Resources(cpu=1000, ram=8192), code="print(1)")


def past(*used: int) -> PastMemory:
    return PastMemory(tuple(RunMemory(each, 8192) for each in used))


@pytest.mark.parametrize(
    ("used", "fits"),
    [((1,), 320), ((100,), 384), ((2150, 1000), 2624), ((10_000,), 12_032), ((64,), 320)],
)
def test_the_amount_is_the_most_that_was_used_and_a_margin(used: tuple[int, ...], fits: int) -> None:
    found = past(*used).fitting()
    assert found == fits
    assert found % STEP_MIB == 0
    assert found >= max(used) + MARGIN_MIB
    assert found >= 1.2 * max(used)


def test_it_is_not_less_than_the_parts_that_are_requested_nor_more_than_a_rank_may_ask_for() -> None:
    shared = replace(SPEC, per_worker=Resources(cpu=1000, ram=8192, amounts=(("shm", 4096),)))
    assert past(100).fitting(shared) == 4096
    assert past(MOST_MIB).fitting() == MOST_MIB


def ended(phase: Phase, cause: Cause | None = None, *peaks: int | None) -> Job:
    ranks = tuple(RankStatus(n, "worker", "n1", "finished", ram_peak=peak) for n, peak in enumerate(peaks))
    failure = None if cause is None else Failure(cause)
    return Job("uid", SPEC, phase, Target.RUN, 1.0, ranks=ranks, failure=failure)


def test_the_largest_rank_of_a_run_that_finished_counts() -> None:
    assert memory_of(ended(Phase.FINISHED, None, 100, 700, None)) == RunMemory(700, 8192)
    assert memory_of(ended(Phase.FINISHED, None, None)) is None, "nobody measured it"


def test_a_run_that_ran_out_of_memory_counts_with_all_that_it_had() -> None:
    found = memory_of(ended(Phase.FAILED, Cause.OUT_OF_MEMORY, 5000))
    assert found == RunMemory(8192, 8192, ran_out=True)
    assert PastMemory((found,)).fitting() > 8192, "else the next run would end the same way"
    assert memory_of(ended(Phase.FAILED, Cause.PROGRAM_ERROR, 5000)) is None
    assert memory_of(ended(Phase.CANCELLED, None, 5000)) is None


def test_cores_and_memory_do_not_make_runs_different_but_devices_and_ranks_do() -> None:
    keys = memory_keys(SPEC)
    assert memory_keys(replace(SPEC, per_worker=Resources(cpu=4000, ram=512))) == keys
    assert not set(memory_keys(replace(SPEC, workers_min=2, workers_max=2))) & set(keys)
    assert not set(memory_keys(replace(SPEC, per_worker=Resources(cpu=1000, ram=8192, gpu=1000)))) & set(keys)
    assert not set(memory_keys(replace(SPEC, runtime="torch"))) & set(keys)


@pytest.mark.parametrize("used", [0, -5, MOST_MIB + 1])
def test_a_measurement_that_cannot_be_true_is_left_out(used: int) -> None:
    runs = MemoryOfRuns()
    runs.add("ann", memory_keys(SPEC), RunMemory(used, 8192))
    assert (len(runs), runs.of("ann", memory_keys(SPEC))) == (0, None)


def test_only_the_five_newest_runs_of_the_same_user_count() -> None:
    runs = MemoryOfRuns()
    for used in (9000, 1, 2, 3, 4, 5):
        runs.add("ann", memory_keys(SPEC), RunMemory(used, 8192))
    found = runs.of("ann", memory_keys(SPEC))
    assert found is not None
    assert [run.used for run in found.runs] == [1, 2, 3, 4, 5]
    assert (found.most, found.asked, found.ran_out) == (5, 8192, 0)
    assert runs.of("bob", memory_keys(SPEC)) is None
