from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from sqlalchemy import text

from mlp_hub.domain.errors import Reason
from mlp_hub.domain.jobs.job import FINAL, Cause, Failure, Job, JobSpec, Phase, RankStatus, Target
from mlp_hub.domain.resources import Resources
from mlp_hub.domain.span import RowSpan
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.store import Database, Stale
from mlp_hub.store.records import Remembered, StoredDecision
from mlp_hub.store.repos.jobs.jobs import PAGE_BYTES
from mlp_language.message import msg, verbatim


def job(
    number: int, name: str = "digits", user: str = "ann", phase: Phase = Phase.QUEUED, **spec: object
) -> Job:
    base = {"tenant": "red", "runtime": "plain", "per_worker": Resources(cpu=1000, ram=512)}
    made = JobSpec(name=name, user=user, **{**base, **spec})
    return Job(f"{number:026d}", made, phase, Target.RUN, submitted_at=1700000000.123456 + number)


FULL = replace(
    job(
        1,
        tenant="blue",
        per_worker=Resources(1, 2, 3, 2**60, (("a100", 2),)),
        workers_min=2,
        workers_max=5,
        ps=1,
        code="print('ü\\n\\x00')",
        args=("--x", ""),
        env={"A": "1"},
        gpu_kind="a100",
        time_limit=60,
        retries=3,
        topology="same-node",
    ),
    phase=Phase.FAILED,
    target=Target.DELETE,
    restarts=2,
    failures=1,
    progress=99,
    reason="program-error",
    message=msg("rank {n} ended with {code}", n=1, code=3),
    placement=("n1", "n1", "n2"),
    queued_at=1.25,
    admitted_at=2.5,
    started_at=3.125,
    finished_at=4.0625,
    failure=Failure(Cause.SIGNAL, 1, None, 11, "segfault", "tail\nend"),
    ranks=(RankStatus(0, "chief", "n1", "failed", 3, None, 0.75, 100), RankStatus(1, "ps", "n2", "running")),
    version=7,
)


def test_a_job_comes_back_as_it_was_stored(db: Database) -> None:
    with db.begin() as tx:
        assert tx.jobs.insert(FULL)
    with db.reading() as tx:
        assert tx.jobs.get(SYSTEM, FULL.uid) == FULL == tx.jobs.find(SYSTEM, "ann", "digits")
        assert tx.jobs.get(SYSTEM, "nobody") is None
    with db.begin() as tx:
        changed = tx.jobs.update(
            replace(FULL, message=verbatim("last words\0"), failure=Failure(Cause.SIGNAL, tail="\0"))
        )
        assert tx.events.add(FULL.uid, 1.0, "failed", verbatim("\0")).seq == 1
    with db.reading() as tx:
        assert tx.jobs.get(SYSTEM, FULL.uid) == replace(changed, message=verbatim("last words\0"))
        assert tx.jobs.find(SYSTEM, "bob", "digits") is None


def test_waited_and_run_times_of_a_job_are_stored_only_where_other_times_do_not_give_them(
    db: Database,
) -> None:
    fresh = replace(job(2), phase=Phase.QUEUED, queued_at=5.0, waiting_since=5.0)
    admitted = replace(fresh, phase=Phase.ADMITTED, admitted_at=7.5, waiting_since=None, waited=2.5)
    dropped = replace(fresh, phase=Phase.CANCELLED, waiting_since=None, waited=3.25, finished_at=8.25)
    back = replace(fresh, restarts=1, waiting_since=90.5, waited=2.5, ran=80.125)
    again = replace(back, phase=Phase.RUNNING, waiting_since=None, progress_from=60, progress_since=95.5)
    with db.begin() as tx:
        assert tx.jobs.insert(fresh)
        for one, stored in ((fresh, 0), (admitted, 0), (dropped, 1), (back, 1), (again, 1)):
            version = tx.jobs.versions([one.uid])[one.uid]
            written = tx.jobs.update(replace(one, version=version))
            assert tx.jobs.get(SYSTEM, one.uid) == written
            count = "SELECT count(past) FROM job WHERE uid = :uid"
            assert tx.connection.execute(text(count), {"uid": one.uid}).scalar() == stored
        done = replace(again, phase=Phase.FINISHED, started_at=91.0, finished_at=99.0)
        tx.jobs.update(replace(done, version=tx.jobs.versions([done.uid])[done.uid]))
        (ended,), _ = tx.jobs.ended(SYSTEM, 0.0, 2e9, 5)
    assert (ended.waited, ended.ran, ended.has_run, ended.restarts) == (2.5, 88.125, True, 1)


def test_a_run_of_a_name_is_taken_until_its_job_is_removed(db: Database) -> None:
    with db.begin() as tx:
        assert tx.jobs.insert(job(1))
        assert not tx.jobs.insert(job(2))
        assert tx.jobs.insert(job(3, user="bob"))
        assert tx.jobs.insert(job(4, name="digits-2"))
        assert tx.jobs.remove(job(1).uid)
        assert not tx.jobs.remove(job(1).uid)
        assert tx.jobs.insert(job(5))


def test_a_name_means_its_latest_run_and_capitals_are_told_apart(db: Database) -> None:
    first, second = job(1, phase=Phase.FINISHED), replace(job(2), run=2)
    other = job(3, name="Digits")
    with db.begin() as tx:
        assert tx.jobs.insert_many([first, second, other]) == {first.uid, second.uid, other.uid}
        assert not tx.jobs.insert(replace(job(4), run=2))
        found = {
            ref: tx.jobs.find(SYSTEM, "ann", ref)
            for ref in ("digits", "digits@1", "digits@2", "Digits", "digits@3")
        }
        assert found == {
            "digits": second,
            "digits@1": first,
            "digits@2": second,
            "Digits": other,
            "digits@3": None,
        }
        assert tx.jobs.find(SYSTEM, "ann", "digits@x") is None
        assert tx.jobs.latest(SYSTEM, "ann", ["digits", "Digits", "none"]) == {
            "digits": second,
            "Digits": other,
        }
        assert tx.jobs.latest(SYSTEM, "bob", ["digits"]) == {}
        assert tx.jobs.ended_runs(SYSTEM, "ann", "digits") == [first.uid]
        assert tx.jobs.page(SYSTEM, user="ann", name="digits") == ([second, first], None)


def test_one_of_two_who_change_the_same_version_is_told(db: Database) -> None:
    with db.begin() as tx:
        tx.jobs.insert(job(1))
    with db.reading() as tx:
        seen = tx.jobs.get(SYSTEM, job(1).uid)

    async def run() -> list[object]:
        works = [db.write(lambda tx, p=p: tx.jobs.update(replace(seen, progress=p))) for p in (10, 20)]
        return await asyncio.gather(*works, return_exceptions=True)

    first, second = asyncio.run(run())
    assert first == replace(seen, progress=10, version=1)
    assert isinstance(second, Stale)
    assert second.reason is Reason.CONFLICT
    with db.reading() as tx:
        assert tx.jobs.get(SYSTEM, seen.uid) == first
    with db.begin() as tx:
        tx.jobs.remove(seen.uid)
    with pytest.raises(Stale), db.begin() as tx:
        tx.jobs.update(first)


def test_lists_are_filtered_and_paged_newest_first(db: Database) -> None:
    with db.begin() as tx:
        for i in range(1, 8):
            user = "ann" if i % 2 else "bob"
            phase = Phase.FINISHED if i < 4 else Phase.RUNNING
            tenant = "red" if i < 6 else "blue"
            assert tx.jobs.insert(job(i, f"j{i}", user, phase, tenant=tenant))

    def names(**kw: object) -> tuple[str, bool]:
        with db.reading() as tx:
            jobs, cursor = tx.jobs.page(SYSTEM, **kw)
        return " ".join(j.spec.name for j in jobs), cursor is not None

    assert names() == ("j7 j6 j5 j4 j3 j2 j1", False)
    assert names(user="ann") == ("j7 j5 j3 j1", False)
    assert names(tenants=["blue"]) == ("j7 j6", False)
    assert names(tenants=[]) == ("", False)
    assert names(phases=[Phase.FINISHED], user="ann") == ("j3 j1", False)
    assert names(limit=7) == ("j7 j6 j5 j4 j3 j2 j1", False)
    with db.reading() as tx:
        seen, cursor = [], None
        while True:
            jobs, cursor = tx.jobs.page(SYSTEM, limit=3, cursor=cursor)
            seen += [j.spec.name for j in jobs]
            if cursor is None:
                break
    assert seen == ["j7", "j6", "j5", "j4", "j3", "j2", "j1"]


def test_active_jobs_are_those_that_are_not_final(db: Database) -> None:
    with db.begin() as tx:
        for i, phase in enumerate(Phase):
            tx.jobs.insert(job(i, f"j{i}", phase=phase))
    with db.reading() as tx:
        active = tx.jobs.active(SYSTEM)
        assert {j.phase for j in active} == set(Phase) - FINAL
        assert [j.uid for j in active] == sorted(j.uid for j in active)
        assert tx.jobs.counts() == {"red": (8, 1)}
        assert tx.jobs.counts(replicas=False) == {"red": (8, 1)}
        assert tx.jobs.count_active(tenant="red") == len(active) == tx.jobs.count_active(user="ann")
        assert tx.jobs.count_active(tenant="blue") == 0


def test_replicas_of_apps_do_not_count_as_jobs_for_people(db: Database) -> None:
    with db.begin() as tx:
        tx.jobs.insert(job(1, "mine", phase=Phase.RUNNING))
        tx.jobs.insert(job(2, "app~line~0", phase=Phase.RUNNING))
    with db.reading() as tx:
        assert tx.jobs.counts() == {"red": (2, 0)}
        assert tx.jobs.counts("red", replicas=False) == {"red": (1, 0)}


def test_all_that_belongs_to_a_job_goes_with_it(db: Database) -> None:
    uid = job(1).uid
    with db.begin() as tx:
        tx.jobs.insert(job(1))
        assert [
            tx.events.add(uid, 1.5, "submitted", msg("by ann")).seq,
            tx.events.add(uid, 2, "x", msg("y"), "Gated").seq,
        ] == [
            1,
            2,
        ]
        tx.tokens.add("ab" * 32, uid, 1.0)
        assert tx.tokens.job_of("ab" * 32) == uid
        assert [e.reason for e in tx.events.since(uid)] == [None, "Gated"]
        assert [e.kind for e in tx.events.since(uid, 1)] == ["x"]
        assert tx.events.trim(uid, keep=1) == 1
        assert [e.seq for e in tx.events.since(uid)] == [2]
        tx.jobs.remove(uid)
        assert tx.events.since(uid) == []
        assert tx.tokens.job_of("ab" * 32) is None


def test_a_page_of_jobs_ends_early_at_long_programs_and_the_next_one_continues(db: Database) -> None:
    with db.begin() as tx:
        for number in range(1, 101):
            long = number % 2 == 0
            tx.jobs.insert(job(number, name=f"j{number}", code="x" * 2**20 if long else "x"))
        tx.jobs.insert(job(101, name="huge", code="x" * (2 * PAGE_BYTES)))
    seen: list[str] = []
    cursor = None
    with db.reading() as tx:
        first, _ = tx.jobs.page(SYSTEM, limit=1000)
        assert [j.spec.name for j in first] == ["huge"]
        while True:
            page, cursor = tx.jobs.page(SYSTEM, limit=1000, cursor=cursor)
            assert len(page) == 1 or sum(len(j.spec.code or "") for j in page) <= PAGE_BYTES
            seen += [j.uid for j in page]
            if cursor is None:
                break
        assert seen == [job(n).uid for n in range(101, 0, -1)]
        few, following = tx.jobs.page(SYSTEM, limit=2, cursor=job(4).uid)
        assert ([j.uid for j in few], following) == ([job(3).uid, job(2).uid], job(2).uid)
        assert tx.jobs.page(SYSTEM, limit=1, cursor=job(2).uid) == ([tx.jobs.get(SYSTEM, job(1).uid)], None)


def test_of_explanations_the_last_are_kept(db: Database) -> None:
    with db.begin() as tx:
        tx.jobs.insert(job(1))
        tx.jobs.insert(job(2, name="other"))
        for n in range(7):
            tx.decisions.add([StoredDecision(job(k).uid, float(n), "admitted", "{}") for k in (1, 2)])
        assert tx.decisions.trim(job(1).uid, keep=3) == 4
        assert tx.decisions.trim(job(1).uid, keep=3) == 0
        assert [d.time for d in tx.decisions.last_of_job(job(1).uid, 100)] == [4.0, 5.0, 6.0]
        assert len(tx.decisions.last_of_job(job(2).uid, 100)) == 7


def test_revoked_tokens_open_nothing(db: Database) -> None:
    with db.begin() as tx:
        tx.jobs.insert(job(1))
        tx.tokens.add("a" * 64, job(1).uid, 1.0)
        tx.tokens.add("b" * 64, job(1).uid, 1.0)
        assert tx.tokens.revoke(job(1).uid) == 2
        assert tx.tokens.job_of("a" * 64) is None


def test_keys_settings_usage_and_audit_are_kept(db: Database) -> None:
    from mlp_hub.store.records import DecayedUsage, UsageSample

    with db.begin() as tx:
        tx.idempotency.put("ann", "k", Remembered("f", "uid"), 1.0)
        assert tx.idempotency.get("ann", "k") == Remembered("f", "uid")
        assert tx.idempotency.get("bob", "k") is None
        assert tx.idempotency.delete_before(2.0) == 1
        assert tx.idempotency.get("ann", "k") is None
        tx.usage.put_many({"red": DecayedUsage(1.5, 2.0)})
        tx.usage.put_many({"red": DecayedUsage(2.5, 3.0)})
        assert tx.usage.all() == {"red": DecayedUsage(2.5, 3.0)}
        for at in (1.0, 2.0, 3.0):
            tx.usage.sample({"red": UsageSample(at, Resources(cpu=1), 1, 2)})
        assert [s.time for s in tx.usage.history("red", since=1.0)] == [2.0, 3.0]
        assert [s.time for s in tx.usage.history("red", limit=2)] == [2.0, 3.0]
        assert tx.usage.delete_before(2.0) == 1
        tx.usage.remove("red")
        assert tx.usage.all() == {}
        for i in range(3):
            tx.audit.add(float(i), "root", "tenant.create", f"t{i}", tenant=f"t{i}", detail={"n": i})
        last, following = tx.audit.page(RowSpan(limit=2))
        assert [e.name for e in last] == ["t2", "t1"]
        assert [e.detail for e in tx.audit.page(RowSpan(before=following))[0]] == [{"n": 0}]
        assert [e.actor for e in tx.audit.page(tenant="t1")[0]] == ["root"]
