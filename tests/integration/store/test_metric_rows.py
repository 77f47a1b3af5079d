from __future__ import annotations

import asyncio
import math
import random
from dataclasses import dataclass, field

import msgspec
import pytest

from mlp_hub.domain.jobs.job import Job, JobSpec, Phase, Target
from mlp_hub.domain.resources import Resources
from mlp_hub.store import Database
from mlp_hub.store.point_form import ROW_POINTS
from mlp_hub.store.records import StoredPoint
from mlp_hub.store.tables import job_metrics, metric_source, metric_total

UID = "0" * 26
A, B = "0.0.abc", "1.0.def"


@dataclass
class P:
    n: int
    t: float = 1.0
    v: dict[str, float | int] = field(default_factory=lambda: {"loss": 0.5})


def points(first: int, last: int) -> list[P]:
    return [P(n, float(n), {"loss": 1 / n, "step": n}) for n in range(first, last + 1)]


@pytest.fixture
def store(db: Database) -> Database:
    with db.begin() as tx:
        tx.jobs.insert(
            Job(UID, JobSpec("j", "ann", "red", "mpi", Resources()), Phase.RUNNING, Target.RUN, 1.0)
        )
    return db


def append(store: Database, source: str, batch: list[P]):
    with store.begin() as tx:
        return tx.metrics.append(UID, source, batch)


def all_points(store: Database, seq: int = 0, page: int = 5000) -> list[StoredPoint]:
    found: list[StoredPoint] = []
    with store.reading() as tx:
        while part := tx.metrics.since(UID, found[-1].seq if found else seq, page):
            found += part
    return found


def test_points_are_numbered_in_the_job_over_all_sources(store: Database) -> None:
    first = append(store, A, points(1, 3))
    second = append(store, B, points(1, 2))
    assert (first.last, first.seq_first, second.last, second.seq_first) == (3, 1, 2, 4)
    found = all_points(store)
    assert found == first.points() + second.points()
    assert [(p.seq, p.rank, p.time) for p in found] == [
        (1, 0, 1.0),
        (2, 0, 2.0),
        (3, 0, 3.0),
        (4, 1, 1.0),
        (5, 1, 2.0),
    ]
    assert found[1].values == {"loss": 0.5, "step": 2}
    with store.reading() as tx:
        assert [tx.metrics.last(UID, source) for source in (A, B)] == [3, 2]
        assert (tx.metrics.last_seq(UID), tx.metrics.last_seq("nobody")) == (5, 0)


def test_a_batch_that_is_sent_again_adds_nothing_and_one_that_overlaps_adds_the_rest(store: Database) -> None:
    append(store, A, points(1, 5))
    assert append(store, A, points(1, 5)).accepted == ()
    more = append(store, A, points(3, 8))
    assert (more.last, [p.n for p in more.accepted]) == (8, [6, 7, 8])
    assert len(all_points(store)) == 8


def test_points_after_a_gap_are_dropped_and_the_sender_learns_where_to_continue(store: Database) -> None:
    assert append(store, A, points(2, 4)).last == 0
    assert append(store, A, [*points(1, 3), *points(5, 6)]).last == 3
    assert append(store, A, points(5, 6)).last == 3
    assert append(store, A, points(4, 6)).last == 6
    assert append(store, A, []).last == 6
    assert [p.time for p in all_points(store)] == [1, 2, 3, 4, 5, 6]


def test_whatever_order_and_repetition_batches_have_each_point_is_there_once(store: Database) -> None:
    rng = random.Random(7)
    done = {A: 0, B: 0}
    while min(done.values()) < 300:
        source = rng.choice([A, B])
        first = max(1, done[source] + rng.randint(-20, 3))
        result = append(store, source, points(first, first + rng.randint(0, 40)))
        assert result.last >= done[source]
        done[source] = result.last
    found = all_points(store, page=37)
    assert [p.seq for p in found] == list(range(1, sum(done.values()) + 1))
    for rank, source in enumerate((A, B)):
        assert [p.time for p in found if p.rank == rank] == [float(n) for n in range(1, done[source] + 1)]


def test_reading_continues_from_any_point_in_any_page_size(store: Database) -> None:
    append(store, A, points(1, 2 * ROW_POINTS + 500))
    with store.reading() as tx:
        for seq in (0, 1, ROW_POINTS - 1, ROW_POINTS, 2 * ROW_POINTS + 499, 2 * ROW_POINTS + 500):
            page = tx.metrics.since(UID, seq, 700)
            expected = range(seq + 1, min(seq + 700, 2 * ROW_POINTS + 500) + 1)
            assert [p.seq for p in page] == list(expected)


def test_strange_numbers_come_back(store: Database) -> None:
    append(
        store, A, [P(1, 0.0, {"a": math.inf, "b": 2**63, "c": -1, "ü": 1e-300}), P(2, 1e12, {"big": 2**80})]
    )
    found = all_points(store)
    assert found[0].values == {"a": math.inf, "b": 2**63, "c": -1, "ü": 1e-300}
    assert found[1].values == {"big": float(2**80)}
    append(store, A, [P(3, 1.0, {"nan": math.nan}), P(4, 1.0, {"huge": 10**400})])
    assert math.isnan(all_points(store)[2].values["nan"])
    assert all_points(store)[3].values == {"huge": math.inf}


def test_forgotten_points_do_not_come_back_by_a_late_batch(store: Database) -> None:
    append(store, A, points(1, 5))
    with store.begin() as tx:
        tx.metrics.delete(UID)
    assert append(store, A, points(1, 5)).accepted == ()
    assert all_points(store) == []


def test_concurrent_senders_of_the_same_batch_store_it_once(store: Database) -> None:
    async def run() -> list[int]:
        sends = [store.write(lambda tx: tx.metrics.append(UID, A, points(1, 50))) for _ in range(20)]
        return [len(r.accepted) for r in await asyncio.gather(*sends)]

    assert sorted(asyncio.run(run())) == [0] * 19 + [50]
    assert len(all_points(store)) == 50


def named(first: int, last: int, names: int = 100, begin: int = 0) -> list[P]:
    many = [f"{'x' * 90}{begin + k:08d}" for k in range(names)]
    return [P(n, float(n), dict.fromkeys(many, 0.123456789)) for n in range(first, last + 1)]


def test_names_take_their_bytes_once_for_a_job(store: Database) -> None:
    for at in range(5):
        append(store, A, named(20 * at + 1, 20 * at + 20))
    with store.reading() as tx:
        assert tx.metrics.sizes([UID])[UID] < 150_000, (
            "each point has 100 values of some 10 bytes, and no name"
        )
        stored = [len(row[0]) for row in tx.connection.exec_driver_sql("SELECT payload FROM job_metrics")]
        assert sum(stored) <= tx.metrics.sizes([UID])[UID]
    assert [p.values for p in all_points(store)] == [p.v for p in named(1, 100)]


def test_point_bytes_per_job_are_limited_and_the_rest_counts_as_stored(store: Database) -> None:
    with store.begin() as tx:
        first = tx.metrics.append(UID, A, named(1, 50), most_bytes=40_000)
        more = tx.metrics.append(UID, A, named(51, 60), most_bytes=40_000)
    assert (len(first.accepted), first.size >= 40_000) == (50, True)
    assert (more.accepted, more.last, more.size) == ((), 60, first.size)


def test_values_under_more_names_than_a_job_may_have_are_left_out(store: Database) -> None:
    for at in range(10):
        assert not append(store, A, named(at + 1, at + 1, begin=100 * at)).left_out
    beyond = append(store, A, [P(11, 1.0, {"loss": 0.5, **named(1, 1)[0].v})])
    assert (beyond.left_out, len(beyond.accepted)) == (True, 1)
    assert all_points(store)[-1].values == named(1, 1)[0].v


def test_the_bytes_of_a_page_are_limited_whatever_its_points_weigh(store: Database) -> None:
    append(store, A, named(1, 900))
    append(store, B, points(1, 900))
    with store.reading() as tx:
        page, whole = tx.metrics.page(UID, 0, 20_000, 300_000)
        assert (whole, 0 < len(page) <= 300) == (False, True)
        seq, found = 0, []
        while not whole or not found:
            page, whole = tx.metrics.page(UID, seq, 20_000, 300_000)
            found += page
            seq = page[-1].seq
        assert [p.seq for p in found] == list(range(1, 1801))
        assert tx.metrics.page(UID, 1800, 10) == ([], True)


def test_points_of_older_databases_are_read_beside_new_ones(store: Database) -> None:
    old = msgspec.msgpack.encode([(1.0, {"loss": 0.5, "step": 1}), (2.0, {"loss": 0.4})])
    row = {"job": UID, "seq_first": 1, "seq_last": 2, "source": A, "source_last": 2, "payload": old}
    with store.begin() as tx:
        tx.connection.execute(job_metrics.insert(), [row])
        tx.connection.execute(metric_source.insert(), [{"job": UID, "source": A, "last": 2}])
        tx.connection.execute(metric_total.insert(), [{"job": UID, "bytes": 999, "names": b"\x90"}])
    append(store, A, [P(3, 3.0, {"loss": 0.3})])
    assert [p.values for p in all_points(store)] == [{"loss": 0.5, "step": 1}, {"loss": 0.4}, {"loss": 0.3}]
    with store.reading() as tx:
        assert tx.metrics.sizes([UID])[UID] > 999
