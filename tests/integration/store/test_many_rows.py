"""What is stored in lots is stored as it would be one by one, on both databases."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from mlp_hub.domain.jobs.job import Job, JobSpec, Phase, Target
from mlp_hub.domain.resources import Resources
from mlp_hub.domain.tenants.tenant import Member, Role, Tenant
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.domain.workload.ledger import RequestPhase, ResourceRequest
from mlp_hub.store import Database, Stale
from mlp_hub.store.records import DecayedUsage, Lease
from mlp_hub.store.repos.base import LOTS
from mlp_hub.store.tx import Tx
from mlp_language.message import msg, verbatim

MANY = 1200  # more than one statement names


def job(i: int, name: str = "") -> Job:
    spec = JobSpec(name or f"j{i}", "ann", "red", "plain", Resources(1000), code="x")
    return Job(f"{i:026}", spec, Phase.QUEUED, Target.RUN, 1.0, version=1)


def row(i: int, phase: RequestPhase = RequestPhase.CONFIRMED) -> ResourceRequest:
    amount = Resources(1000, 500, 10, 0, (("a100", 500),))
    return ResourceRequest(f"r{i}", "jm", "red", amount, phase, 1.0, shares=((f"n{i % 3}", amount),))


def test_many_jobs_are_stored_but_those_whose_name_is_taken(db: Database) -> None:
    with db.begin() as tx:
        tx.jobs.insert(job(0, "j7"))
        stored = tx.jobs.insert_many([job(i) for i in range(1, MANY)])
        assert stored == {job(i).uid for i in range(1, MANY) if i != 7}
        assert tx.jobs.get(SYSTEM, job(9).uid) == job(9)
        assert tx.jobs.insert_many([]) == set()


def test_many_jobs_are_changed_at_once_or_not_at_all(db: Database) -> None:
    with db.begin() as tx:
        jobs = [job(i) for i in range(MANY)]
        tx.jobs.insert_many(jobs)
        new = tx.jobs.update_many([replace(j, message=msg("m"), resize_to=("n1",)) for j in jobs])
        assert tx.jobs.get(SYSTEM, jobs[3].uid) == new[3]
        assert new[3].version == 2
        assert tx.jobs.versions([jobs[0].uid, "nobody"]) == {jobs[0].uid: 2}
        with pytest.raises(Stale):
            tx.jobs.update_many([new[0], jobs[1]])


def test_many_steps_are_numbered_within_their_jobs(db: Database) -> None:
    with db.begin() as tx:
        jobs = [job(i) for i in range(20)]
        tx.jobs.insert_many(jobs)
        tx.events.add(jobs[0].uid, 1.0, "submitted", msg("first"))
        tx.events.add_many([(j.uid, 2.0, kind, verbatim("m\0"), None) for j in jobs for kind in ("a", "b")])
        assert [(e.seq, e.kind) for e in tx.events.since(jobs[0].uid)] == [
            (1, "submitted"),
            (2, "a"),
            (3, "b"),
        ]
        assert [(e.seq, e.kind) for e in tx.events.since(jobs[9].uid)] == [(1, "a"), (2, "b")]


@pytest.mark.parametrize("count", [1, LOTS[0] - 1, LOTS[0], LOTS[0] + 1, 3 * LOTS[0]])
def test_steps_of_any_number_of_jobs_keep_their_order(db: Database, count: int) -> None:
    with db.begin() as tx:
        jobs = [job(i) for i in range(count)]
        tx.jobs.insert_many(jobs)
        tx.events.add(jobs[-1].uid, 1.0, "submitted", msg("first"))
        first = [(j.uid, 2.0, "a", verbatim(f"a of {j.spec.name}"), None) for j in jobs]
        more = [(jobs[0].uid, 3.0, kind, verbatim(kind), "Quota") for kind in ("b", "c")]
        tx.events.add_many([*first, *more])
        tx.events.add_many([(j.uid, 4.0, "d", msg("d"), None) for j in jobs])
        for j in jobs:
            begun = ["submitted"] if j is jobs[-1] else []
            kinds = [*begun, "a", *(("b", "c") if j is jobs[0] else ()), "d"]
            steps = tx.events.since(j.uid)
            assert [(e.seq, e.kind) for e in steps] == list(enumerate(kinds, 1))
            assert f"a of {j.spec.name}" in [str(e.message) for e in steps]
        assert {e.reason for e in tx.events.since(jobs[0].uid) if e.kind in "bc"} == {"Quota"}
        tx.events.add_many([])


def test_many_rows_of_the_ledger_hold_and_are_released(db: Database) -> None:
    with db.begin() as tx:
        tx.ledger.put_many([row(i) for i in range(30)])
        assert tx.ledger.in_use("red", 2.0) == row(0).amount * 30
        assert tx.ledger.node_use(2.0) == {f"n{i}": row(0).amount * 10 for i in range(3)}
        tx.ledger.put(row(29, RequestPhase.TRIED))
        tx.ledger.release_many("jm", [f"r{i}" for i in range(30)])
        assert tx.ledger.in_use("red", 2.0) == row(0).amount
        released = tx.ledger.get("jm", "r3")
        assert released is not None
        assert (released.phase, released.last) == (RequestPhase.RELEASED, "release")
        tx.ledger.put_many([])
        tx.ledger.release_many("jm", [])


def test_many_tokens_and_usages_are_stored(db: Database) -> None:
    with db.begin() as tx:
        jobs = [job(i) for i in range(6)]
        tx.jobs.insert_many(jobs)
        tx.tokens.add_many([(f"t{i}", j.uid) for i, j in enumerate(jobs)], 1.0)
        tx.tokens.revoke_many([j.uid for j in jobs[:5]])
        assert [tx.tokens.job_of(f"t{i}") for i in range(6)] == [None] * 5 + [jobs[5].uid]
        tx.usage.put_many({"red": DecayedUsage(1.0, 2.0), "blue": DecayedUsage(3.0, 4.0)})
        tx.usage.put_many({"red": DecayedUsage(5.0, 6.0)})
        assert tx.usage.all() == {"red": DecayedUsage(5.0, 6.0), "blue": DecayedUsage(3.0, 4.0)}


@pytest.mark.parametrize("count", [0, 1, LOTS[0] + 3])
def test_of_many_places_those_are_told_that_nobody_has(db: Database, count: int) -> None:
    with db.begin() as tx:
        for i in range(count):
            tx.tenants.insert(Tenant(f"t{i}"), 1.0)
            tx.members.put(Member(f"t{i}", "ann", Role.MEMBER))
        places = [(user, f"t{i}") for i in range(count) for user in ("ann", "bob")]
        assert tx.members.missing(places) == {("bob", f"t{i}") for i in range(count)}


def test_rows_that_are_there_are_replaced_in_lots(db: Database) -> None:
    with db.begin() as tx:
        tx.ledger.put_many([row(i) for i in range(0, 100, 3)])
        tx.ledger.put_many([row(i, RequestPhase.RELEASED) for i in range(100)])
        assert tx.ledger.in_use("red", 2.0) == Resources()
        assert tx.ledger.get("jm", "r99") == row(99, RequestPhase.RELEASED)


def test_a_large_write_that_fails_takes_nothing_of_its_neighbours_along(db: Database) -> None:
    jobs = [job(i) for i in range(MANY)]

    def fails(tx: Tx) -> None:
        tx.jobs.update_many([replace(j, message=verbatim("m" * 2000)) for j in jobs])
        raise Stale(jobs[0])

    def stores(tx: Tx, part: list[Job]) -> None:
        tx.jobs.insert_many(part)

    async def three_at_once() -> list[object]:
        return await asyncio.gather(
            db.write(lambda tx: stores(tx, last)),
            db.write(fails),
            db.write(lambda tx: tx.jobs.update_many(first)),
            return_exceptions=True,
        )

    first, last = jobs[: MANY // 2], jobs[MANY // 2 :]
    with db.begin() as tx:
        stores(tx, first)
    assert isinstance(asyncio.run(three_at_once())[1], Stale)
    with db.begin() as tx:
        found = tx.jobs.versions(j.uid for j in jobs)
        assert found == {**{j.uid: 2 for j in first}, **{j.uid: 1 for j in last}}
        assert tx.jobs.get(SYSTEM, jobs[5].uid) == replace(jobs[5], version=2)


def test_a_lease_is_read_as_it_was_stored_last(db: Database) -> None:
    with db.begin() as tx:
        assert tx.leases.get("scheduler") is None
        tx.leases.put("scheduler", Lease("a", 1.0))
        tx.leases.put("scheduler", Lease("b", 2.0))
        assert tx.leases.get("scheduler") == Lease("b", 2.0)
