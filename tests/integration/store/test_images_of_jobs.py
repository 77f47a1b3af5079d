"""Which images jobs named lately, counted."""

from __future__ import annotations

from mlp_hub.domain.jobs.job import Job, JobSpec, Phase, Target
from mlp_hub.domain.resources import Resources
from mlp_hub.domain.runtime.environment import EnvironmentUse
from mlp_hub.domain.runtime.runtime import Runtime
from mlp_hub.store import Database


def job(number: int, image: str | None = None, at: float = 100.0, *, own: bool = True, **spec: object) -> Job:
    runtime = Runtime("ours", "Ours", "", image=image) if own else None
    made = JobSpec(
        f"job-{number}",
        "ann",
        "red",
        "ours",
        Resources(1000, 0, 100),
        own_runtime=runtime,
        **spec,  # type: ignore[arg-type]
    )
    return Job(f"{number:026d}", made, Phase.FINISHED, Target.RUN, submitted_at=at)


def stored(db: Database, *jobs: Job) -> None:
    with db.begin() as tx:
        assert all(tx.jobs.insert(each) for each in jobs)


def test_images_are_counted_by_the_jobs_that_name_them(db: Database) -> None:
    stored(db, job(1, "a:1"), job(2, "b:1"), job(3, "b:1"), job(4), job(5, own=False))
    with db.reading() as tx:
        assert tx.jobs.images(0.0, 10).most_common() == [("b:1", 2), ("a:1", 1)]


def test_a_program_that_speaks_of_images_names_none(db: Database) -> None:
    stored(db, job(1, code='{"image":"evil:1"}'), job(2, own=False, args=('"image":"evil:1"',)))
    with db.reading() as tx:
        assert not tx.jobs.images(0.0, 10)


def test_of_a_job_whose_environment_is_an_image_none_is_told(db: Database) -> None:
    use = EnvironmentUse("tools", "u", image="evil:1")
    stored(db, job(1, "a:1", environment=use), job(2, "a:1", environment=EnvironmentUse("tools", "v")))
    with db.reading() as tx:
        assert dict(tx.jobs.images(0.0, 10)) == {"a:1": 1}


def test_only_the_newest_since_then_count(db: Database) -> None:
    stored(
        db,
        job(1, "old:1", at=10.0),
        *(job(n, "new:1", at=50.0) for n in (2, 3, 4)),
        job(5, "last:1", at=60.0),
    )
    with db.reading() as tx:
        assert set(tx.jobs.images(20.0, 10)) == {"new:1", "last:1"}
        assert dict(tx.jobs.images(0.0, 2)) == {"last:1": 1, "new:1": 1}
