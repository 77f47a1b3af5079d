"""Run times of earlier runs as the one query after a start reads them: bounded, whoever has very many."""

from __future__ import annotations

from dataclasses import replace

from mlp_hub.domain.jobs.job import Job, JobSpec, Phase, Target
from mlp_hub.domain.jobs.run import RunSummary
from mlp_hub.domain.resources import Resources
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.store import Database


def ended(
    number: int, user: str = "ann", phase: Phase = Phase.FINISHED, code: str = "", ran: float = 5.0
) -> Job:
    spec = JobSpec(f"j{number}", user, "red", "plain", Resources(cpu=1000, ram=512), code=code)
    made = Job(f"{number:026d}", spec, phase, Target.RUN, submitted_at=float(number))
    return replace(made, started_at=100.0 + number, finished_at=100.0 + number + ran)


def keep(db: Database, *jobs: Job) -> None:
    with db.begin() as tx:
        for job in jobs:
            tx.jobs.insert(job)


def found(db: Database, looked_at: int = 100, of_user: int = 100, most: int = 100) -> list[tuple[str, float]]:
    with db.reading() as tx:
        asked = tx.runs.newest_finished(
            SYSTEM, looked_at=looked_at, of_user=of_user, most=most, longest_spec=1000
        )
        return [(run.spec.name, run.ran) for run in asked]


def test_runs_that_finished_come_with_their_time_the_oldest_first(db: Database) -> None:
    keep(db, ended(2), ended(1, ran=9.0), ended(3, phase=Phase.FAILED), ended(4, phase=Phase.CANCELLED))
    assert found(db) == [("j2", 5.0), ("j1", 9.0)], "by their ends: 107 before 110"


def test_a_run_that_ran_out_of_memory_comes_too_and_brings_the_memory_that_was_used(db: Database) -> None:
    out = replace(ended(1, phase=Phase.FAILED), reason="out-of-memory")
    keep(db, out, replace(ended(2, phase=Phase.FAILED), reason="program-error"), ended(3))
    with db.begin() as tx:
        tx.runs.put_summary(f"{3:026d}", RunSummary(0, True, 5.0, 1.0, 300, {}))
    with db.reading() as tx:
        asked = tx.runs.newest_finished(SYSTEM, looked_at=9, of_user=9, most=9, longest_spec=1000)
    assert [(r.spec.name, r.phase, r.ram_peak) for r in asked] == [
        ("j1", Phase.FAILED, None),
        ("j3", Phase.FINISHED, 300),
    ]


def test_a_user_with_very_many_runs_leaves_room_for_others(db: Database) -> None:
    keep(db, ended(1, "bob"), *(ended(n) for n in range(2, 30)))
    assert found(db, of_user=2) == [("j1", 5.0), ("j28", 5.0), ("j29", 5.0)]
    assert found(db, most=2, of_user=50) == [("j28", 5.0), ("j29", 5.0)]
    assert found(db, looked_at=3, of_user=50) == [("j27", 5.0), ("j28", 5.0), ("j29", 5.0)]


def test_a_very_long_program_is_not_read(db: Database) -> None:
    keep(db, ended(1, code="x" * 2000), ended(2))
    assert found(db) == [("j2", 5.0)]


def test_a_run_whose_clock_went_back_has_no_length(db: Database) -> None:
    keep(db, ended(1, ran=-50.0))
    assert found(db) == [("j1", 0.0)]
