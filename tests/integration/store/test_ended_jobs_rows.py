"""What is stored of jobs that ended, added up; the audit log, filtered and in pages."""

from __future__ import annotations

from dataclasses import replace

from mlp_api.jobs.metrics import MetricPoint
from mlp_hub.domain.jobs.job import Job, JobSpec, Phase, Target
from mlp_hub.domain.resources import Resources
from mlp_hub.domain.span import NEWEST, RowSpan
from mlp_hub.store import Database
from mlp_hub.store.records import EndedSize, StoredDecision
from mlp_hub.store.repos.jobs.ended_jobs import ROW_BYTES
from mlp_language.message import verbatim


def ended(number: int, user: str = "ann", code: str = "", phase: Phase = Phase.FINISHED) -> Job:
    spec = JobSpec(f"j{number}", user, "red", "plain", Resources(cpu=1000, ram=512), code=code)
    made = Job(f"{number:026d}", spec, phase, Target.RUN, submitted_at=float(number))
    return replace(made, finished_at=100.0 + number) if phase is Phase.FINISHED else made


def uid(number: int) -> str:
    return f"{number:026d}"


def size_of(db: Database, number: int) -> int:
    with db.reading() as tx:
        (kept,) = tx.ended.measure([uid(number)])
    return kept.bytes


def test_all_that_is_stored_of_a_job_counts_in_bytes(db: Database) -> None:
    with db.begin() as tx:
        tx.jobs.insert(ended(1))
        tx.jobs.insert(ended(2, code="\N{PILE OF POO}" * 1000))
        tx.jobs.insert(ended(3))
    assert size_of(db, 2) - size_of(db, 1) == 4000, "bytes, not letters"
    before = size_of(db, 3)
    with db.begin() as tx:
        tx.events.add(uid(3), 1.0, "finished", verbatim("x" * 500))
        tx.decisions.add([StoredDecision(uid(3), 1.0, "admitted", "y" * 300)])
    assert size_of(db, 3) - before == 800 + 34 + 2 * ROW_BYTES  # a message is stored as JSON
    with db.begin() as tx:
        tx.metrics.append(uid(3), "0.0.a", [MetricPoint(n=n, t=0.0, v={"loss": 1.5}) for n in range(1, 101)])
    assert size_of(db, 3) - before > 800 + 100 * 15
    assert size_of(db, 1) > 0


def test_jobs_that_have_not_ended_are_neither_measured_nor_stored(db: Database) -> None:
    with db.begin() as tx:
        for number, phase in enumerate(Phase, 1):
            tx.jobs.insert(ended(number, phase=phase))
    final = [uid(n) for n, p in enumerate(Phase, 1) if p in (Phase.FINISHED, Phase.FAILED, Phase.CANCELLED)]
    everybody = [uid(n) for n, _ in enumerate(Phase, 1)]
    with db.begin() as tx:
        assert sorted(tx.ended.unmeasured(100)) == final
        assert len(tx.ended.unmeasured(2)) == 2
        assert sorted(k.job for k in tx.ended.measure(everybody)) == final
        tx.ended.put([EndedSize(u, "ann", 1.0, 10) for u in everybody])
        assert tx.ended.total("ann") == (3, 30)
        assert tx.ended.unmeasured(100) == []


def test_rows_show_which_user_has_too_many_jobs_and_which_ended_first(db: Database) -> None:
    with db.begin() as tx:
        for number in range(1, 7):
            tx.jobs.insert(ended(number, "ann" if number < 5 else "bob"))
        tx.ended.put(tx.ended.measure([uid(n) for n in range(1, 7)]))
        tx.ended.put([EndedSize(uid(6), "bob", 106.0, 10**9)])
    with db.reading() as tx:
        assert tx.ended.first() == 101.0
        assert tx.ended.over(3, None) == ["ann"]
        assert tx.ended.over(None, 10**6) == ["bob"]
        assert sorted(tx.ended.over(3, 10**6)) == ["ann", "bob"]
        assert tx.ended.over(None, None) == tx.ended.over(4, 10**10) == []
        assert [k.job for k in tx.ended.oldest("ann", 2)] == [uid(1), uid(2)]
        assert [k.job for k in tx.ended.before(103.5, 2)] == [uid(1), uid(2)]
        assert [k.job for k in tx.ended.before(106.5, 9, ["ann"])] == [uid(5), uid(6)]
        assert tx.ended.total("nobody") == (0, 0)
    with db.begin() as tx:
        tx.ended.forget(uid(1))
        tx.jobs.remove(uid(2))
        assert tx.ended.total("ann")[0] == 2
        assert tx.ended.first() == 103.0


def fill(db: Database) -> None:
    with db.begin() as tx:
        for i in range(10):
            tx.audit.add(
                float(i),
                ("ann", "root")[i % 2],
                ("tenant.create", "tenant.update", "tenancy")[i % 3],
                f"t{i % 4}",
                tenant=f"t{i % 4}",
                detail={"n": i, "text": "x" * 100},
            )


def test_the_audit_log_can_be_filtered_by_actor_action_object_and_time(db: Database) -> None:
    fill(db)

    def times(span: RowSpan = NEWEST, **filters: str) -> list[int]:
        with db.reading() as tx:
            entries, following = tx.audit.page(span, **filters)
        assert following is None
        return [int(e.time) for e in entries]

    assert times() == list(range(9, -1, -1))
    assert times(actor="root") == [9, 7, 5, 3, 1]
    assert times(action="tenant.create") == [9, 6, 3, 0]
    assert times(action="tenant.") == [9, 7, 6, 4, 3, 1, 0], "all whose name begins so"
    assert times(action="ten%.") == []
    assert times(name="t3") == times(tenant="t3") == [7, 3]
    assert times(RowSpan(since=3.0, until=6.0)) == [5, 4, 3]
    assert times(RowSpan(since=2.0), actor="ann", action="tenant.update") == [4]


def test_pages_of_the_audit_log_follow_each_other_and_are_bounded_in_bytes(db: Database) -> None:
    fill(db)

    def walk(**limits: int) -> list[list[int]]:
        pages: list[list[int]] = []
        before = None
        while True:
            with db.reading() as tx:
                entries, before = tx.audit.page(RowSpan(before=before, **limits))
            pages.append([int(e.time) for e in entries])
            if before is None:
                return pages

    assert walk(limit=4) == [[9, 8, 7, 6], [5, 4, 3, 2], [1, 0]]
    assert walk(limit=5) == [[9, 8, 7, 6, 5], [4, 3, 2, 1, 0]]
    assert walk(most_bytes=250) == [[9, 8], [7, 6], [5, 4], [3, 2], [1, 0]]
    assert [len(page) for page in walk(most_bytes=1)] == [1] * 10


def test_repeated_changes_fill_no_log_and_each_repetition_counts(db: Database) -> None:
    def add(at: float, role: str, actor: str = "ann", user: str = "bob", tenant: str | None = "red") -> None:
        with db.begin() as tx:
            tx.audit.add(at, actor, "member.set", user, tenant=tenant, detail={"role": role, "was": None})

    for n in range(30):
        add(n / 100, ("admin", "member")[n % 2])
    add(4.0, "admin", actor="root")
    add(5.0, "admin", user="carl")
    add(6.0, "admin", tenant=None)
    add(7.0, "admin", tenant=None)
    with db.reading() as tx:
        entries = tx.audit.page()[0]
    told = [
        (e.actor, e.name, e.tenant, e.detail["role"], e.detail.get("times", 1)) for e in reversed(entries)
    ]
    assert told == [
        ("ann", "bob", "red", "admin", 15),
        ("ann", "bob", "red", "member", 15),
        ("root", "bob", "red", "admin", 1),
        ("ann", "carl", "red", "admin", 1),
        ("ann", "bob", None, "admin", 2),
    ]
    assert entries[0].detail["last"] == "1970-01-01T00:00:07Z"
    assert entries[-1].time == 0.0, "an entry keeps the time at which it was first done"

    add(601.0, "admin")
    with db.reading() as tx:
        newest = tx.audit.page()[0][0]
    assert (newest.time, newest.detail) == (601.0, {"role": "admin", "was": None}), (
        "much later is another entry"
    )


def test_each_token_is_written_down_by_itself(db: Database) -> None:
    """Tokens that are asked for alike are still different: each may be used, and taken back, by itself."""
    for n in range(3):
        with db.begin() as tx:
            tx.audit.add(float(n), "bob", "user.token", "bob", detail={"note": "nightly"})
    with db.reading() as tx:
        entries = tx.audit.page()[0]
    assert [(e.time, e.detail) for e in entries] == [(float(n), {"note": "nightly"}) for n in (2, 1, 0)]


def test_jobs_that_expire_one_after_another_are_gathered_in_one_entry_and_counted(db: Database) -> None:
    for n in range(60):
        with db.begin() as tx:
            tx.audit.add(
                float(n),
                "system",
                "jobs.expire",
                "ann",
                detail={"why": "too many"},
                jobs=[f"j{n}a", f"j{n}b"],
            )
            tx.audit.add(float(n), "system", "jobs.expire", "bob", detail={"why": "too old"}, jobs=["x"])
    with db.reading() as tx:
        bob, ann = tx.audit.page()[0]
    assert ann.detail == {
        "why": "too many",
        "jobs": [f"j{n}{letter}" for n in range(50) for letter in "ab"],
        "more": 20,
        "last": "1970-01-01T00:00:59Z",
    }
    assert (bob.name, bob.detail["jobs"], "more" in bob.detail) == ("bob", ["x"] * 60, False)
