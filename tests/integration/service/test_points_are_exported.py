"""Metric points reach a real receiver of OTLP, once each, whatever is killed and however the receiver behaves."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from mlp_api.jobs.metrics import MetricBatch, MetricPoint
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.outbound.otlp_points import nanoseconds
from mlp_hub.service.config import ExportPolicy
from mlp_hub.service.exports import backlog, doubts, exporter
from mlp_hub.service.exports.exporter import PointExporter
from mlp_hub.store.errors import StoreUnavailable
from mlp_language.message import msg
from support.certificates import certificate
from support.monitoring.receivers import Receiver
from support.ports import free_port
from support.rigs.platform_rig import FAST, Rig
from support.waiting import until

TOKEN = "t0ken-that-nobody-may-see"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as made:
        yield made
        made.answers.set()
        made.endless = False
        made.shutdown()


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporter, "RETRY_MOST_S", 0.05)
    monkeypatch.setattr(PointExporter.__init__, "__kwdefaults__", {"gather_s": 0.01, "retry_s": 0.01})


@contextlib.asynccontextmanager
async def rig_of(
    root: Path, endpoint: str, *tenants: str, ca: str = "", packed: bool = False
) -> AsyncIterator[Rig]:
    policy = ExportPolicy("otlp", endpoint, {"Authorization": f"Bearer {TOKEN}"}, tenants, ca, packed)
    rig = Rig(root, policy=replace(FAST, exports=(policy,) if endpoint else ()))
    await rig.start()
    try:
        yield rig
    finally:
        await rig.close()


async def running(rig: Rig, name: str = "digits", **more: Any) -> str:
    """Run a job until it reports; return its uid."""
    await rig.submit(name, sim={"DURATION": 300}, **more)
    await rig.until(name, "running")
    return await uid_of(rig, name)


async def uid_of(rig: Rig, name: str) -> str:
    job = await rig.db.read(lambda tx: tx.jobs.find(SYSTEM, "ann", name))
    assert job is not None
    return job.uid


async def report(rig: Rig, name: str, first: int, last: int, source: str = "0.0.a", **values: Any) -> None:
    points = [
        MetricPoint(n=n, t=1_700_000_000.0 + n, v=values or {"loss": n / 8, "step": n})
        for n in range(first, last + 1)
    ]
    ack = await rig.platform.metrics.append(SYSTEM, "ann", name, MetricBatch(source=source, points=points))
    assert ack.last == last


async def end(rig: Rig, name: str) -> None:
    rig.end(await rig.db.read(lambda tx: tx.jobs.find(SYSTEM, "ann", name)))  # type: ignore[arg-type]
    await rig.until(name, "finished")


def counts(rig: Rig) -> dict[str, float]:
    return {labels[1]: n for labels, n in rig.platform.monitoring.events.exported.samples()}


def failures(rig: Rig) -> float:
    return sum(n for _, n in rig.platform.monitoring.events.export_failures.samples())


async def sent(rig: Rig, points: int, dropped: int = 0) -> None:
    """Wait for the counts, and for the rows that say how far the points are exported."""
    wanted = {"sent": float(points), "dropped": float(dropped)}

    async def look() -> bool:
        (one,) = rig.platform.exports.running
        return counts(rig) == wanted and one.behind == 0

    try:
        await until(look, what=f"{wanted}")
    except AssertionError as error:
        raise AssertionError(
            f"{error}: {counts(rig)}, {rig.platform.exports.running[0].behind} behind"
        ) from None


async def tried(receiver: Receiver, times: int = 1) -> None:
    async def look() -> bool:
        return receiver.tried >= times

    await until(look, what=f"request {times}")


def steps(receiver: Receiver, uid: str) -> list[float]:
    return [value for name, _, _, value in receiver.points(uid) if name == "step"]


async def rows(rig: Rig) -> list[tuple[int, bool]]:
    query = "SELECT seq, done FROM point_export ORDER BY job"
    return await rig.db.read(
        lambda tx: [(seq, bool(done)) for seq, done in tx.connection.exec_driver_sql(query)]
    )


async def test_points_go_to_a_receiver_with_a_certificate_of_the_site_and_to_no_other(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "other").mkdir()
    real, other = certificate(tmp_path / "real", "127.0.0.1"), certificate(tmp_path / "other", "127.0.0.1")
    authority = x509.load_pem_x509_certificate(real.read_bytes()).public_bytes(Encoding.PEM).decode()
    with Receiver(certificate=real) as honest, Receiver(certificate=other) as forged:
        for server, arrives in ((forged, False), (honest, True)):
            async with rig_of(tmp_path / str(arrives), server.url, ca=authority, packed=True) as rig:
                uid = await running(rig)
                await report(rig, "digits", 1, 3)
                if arrives:
                    await sent(rig, 3)
                    assert steps(honest, uid) == [1.0, 2.0, 3.0]
                    assert honest.headers[0]["Content-Encoding"] == "gzip"
                else:

                    async def failed(rig: Rig = rig) -> bool:
                        return failures(rig) > 0

                    await until(failed, what="a refused certificate")
                    assert not forged.tried, "no request, and so no token, gets there"
                    (one,) = rig.platform.exports.running
                    assert one.behind == 3, "the points wait"
            server.shutdown()


async def test_a_receiver_that_takes_no_packed_points_loses_none(tmp_path: Path, receiver: Receiver) -> None:
    receiver.statuses = [415, 415]
    async with rig_of(tmp_path, receiver.url, packed=True) as rig:
        uid = await running(rig)
        await report(rig, "digits", 1, 2)
        await sent(rig, 2)
        assert steps(receiver, uid) == [1.0, 2.0]


async def test_each_value_arrives_with_its_name_rank_time_and_job(tmp_path: Path, receiver: Receiver) -> None:
    async with rig_of(tmp_path, receiver.url) as rig:
        uid = await running(rig)
        await report(rig, "digits", 1, 3)
        await report(rig, "digits", 1, 1, source="1.0.b", loss=2)
        await sent(rig, 4)
        second = 1_000_000_000
        begun = 1_700_000_000 * second
        assert sorted(receiver.points(uid)) == [
            ("loss", "0", begun + second, 0.125),
            ("loss", "0", begun + 2 * second, 0.25),
            ("loss", "0", begun + 3 * second, 0.375),
            ("loss", "1", begun + second, 2.0),
            *(("step", "0", begun + n * second, float(n)) for n in (1, 2, 3)),
        ]
        told = receiver.resource(uid)
        assert (told["service.name"], told["service.instance.id"]) == ("mlp-hub-jobs", uid)
        assert (told["mlp.job.name"], told["mlp.user"], told["mlp.tenant"]) == ("digits", "ann", "default")
        assert receiver.headers[0]["Authorization"] == f"Bearer {TOKEN}"
        await end(rig, "digits")

        async def done() -> bool:
            return await rows(rig) == [(4, True)]

        await until(done, what="the end of the job")
        text, _ = await rig.platform.monitoring.scrape("")
        assert b'mlp_points_exported_total{exporter="otlp",result="sent"} 4\n' in text
        assert b'mlp_points_export_behind{exporter="otlp"} 0\n' in text


async def test_a_kill_loses_no_point_and_points_that_come_again_are_the_same(
    tmp_path: Path, receiver: Receiver
) -> None:
    receiver.answers.clear()
    async with rig_of(tmp_path, receiver.url) as rig:
        uid = await running(rig)
        await report(rig, "digits", 1, 10)
        await tried(receiver)
        await report(rig, "digits", 11, 20)
        dead = rig.platform.exports.running[0]
        rig.crash()
        await dead._sender.stop()
        receiver.answers.set()
        await rig.start()
        await sent(rig, 20)
        assert set(steps(receiver, uid)) == set(range(1, 21))
        assert len(set(receiver.points(uid))) == 40  # name, rank, time and value of what came twice are equal
        before = len(receiver.points(uid))
        await rig.restart()
        await report(rig, "digits", 21, 21)
        await sent(rig, 1)
        assert len(receiver.points(uid)) == before + 2  # of what was stored as exported nothing comes again


async def test_a_leader_exports_again_after_another_one(tmp_path: Path, receiver: Receiver) -> None:
    async with rig_of(tmp_path, receiver.url) as rig:
        uid = await running(rig)
        exports, traces = rig.platform.exports, rig.platform.traces
        await report(rig, "digits", 1, 2)
        await sent(rig, 2)
        await exports.stop()
        await report(rig, "digits", 3, 4)
        assert exports.running == ()
        assert len(rig.platform.metrics.points.exporters) == 1  # what counts points
        rig.platform.board._listeners.remove(exports._changed)
        exports.start()
        assert rig.platform.board._listeners.count(exports._changed) == 1
        await sent(rig, 4)
        assert steps(receiver, uid) == [1, 2, 3, 4]
        assert not traces._task.is_running


async def test_a_receiver_that_is_away_or_hangs_holds_nobody_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    port = free_port()
    with caplog.at_level(logging.DEBUG):
        async with rig_of(tmp_path, f"http://127.0.0.1:{port}/v1/metrics") as rig:
            uid = await running(rig)
            await report(rig, "digits", 1, 100)

            async def told() -> bool:
                return [p.reason for p in await rig.platform.problems.now()] == ["PointExport"]

            await until(told, what="the problem")
            assert rig.platform.exports.running[0].behind == 100
            with Receiver(port) as receiver:
                receiver.answers.clear()
                await tried(receiver)
                await report(rig, "digits", 101, 200)  # it is stored while the receiver hangs
                receiver.statuses = [503, 429, 408, 401, 404, 302]
                receiver.location = "http://169.254.169.254/latest/"
                receiver.answers.set()
                await sent(rig, 200)
                assert steps(receiver, uid) == [float(n) for n in range(1, 201)]
                assert await rig.platform.problems.now() == []
                assert failures(rig) >= 6
                receiver.shutdown()
    assert TOKEN not in caplog.text
    assert "because OTLP does not take them" in caplog.text
    assert "OTLP takes metric points again" in caplog.text


async def test_refused_points_of_one_job_hold_up_no_other_job(
    tmp_path: Path, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.refuses = "poison"
    receiver.answers.clear()
    async with rig_of(tmp_path, receiver.url) as rig:
        await running(rig, "first")
        await report(rig, "first", 1, 1)
        await tried(receiver)
        good, bad = await running(rig, "good"), await running(rig, "bad")
        await report(rig, "bad", 1, 5, poison=1)
        await report(rig, "good", 1, 5)
        await report(rig, "bad", 6, 6, poison=1)
        receiver.answers.set()
        await sent(rig, 6, dropped=6)
        assert steps(receiver, good) == [1, 2, 3, 4, 5]
        assert receiver.points(bad) == []
        assert f"refused 6 metric points of the job {bad}" in caplog.text


async def test_jobs_whose_names_a_filter_forbids_hold_up_no_other_job(
    tmp_path: Path, receiver: Receiver
) -> None:
    receiver.forbids = "<script>"
    async with rig_of(tmp_path, receiver.url) as rig:
        bad = [await running(rig, f"bad-{n}") for n in range(2)]
        good = await running(rig, "good")
        for n in range(2):
            await report(rig, f"bad-{n}", 1, 2, **{"<script>": 1.0})
        await tried(receiver)
        (one,) = rig.platform.exports.running

        async def up_to(last: int) -> bool:
            return steps(receiver, good) == list(range(1, last + 1)) and one.behind == 4

        await report(rig, "good", 1, 5)
        await until(lambda: up_to(5), what="the points of the other")
        await report(rig, "good", 6, 7)
        await until(lambda: up_to(7), what="its later points")
        assert all(receiver.points(uid) == [] for uid in bad), "they wait: a wrong token looks the same"
        receiver.forbids = ""
        await sent(rig, 11)


async def test_points_that_a_filter_forbids_for_long_are_dropped_while_others_are_taken(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doubts, "MOST_DOUBTS", 2)
    receiver.forbids = "<script>"
    async with rig_of(tmp_path, receiver.url) as rig:
        bad, good = await running(rig, "bad"), await running(rig, "good")
        await report(rig, "bad", 1, 3, **{"<script>": 1.0})
        for n in range(1, 200):  # alone it is never dropped
            await until(partial(_refused_again, rig, receiver, receiver.tried + 2), what="requests")
            await report(rig, "good", n, n)
            await until(partial(_has, receiver, good, n), what=f"point {n}")
            if counts(rig)["dropped"]:
                break
        assert n > doubts.MOST_DOUBTS
        await sent(rig, n, dropped=3)
        assert receiver.points(bad) == []


async def _refused_again(rig: Rig, receiver: Receiver, times: int) -> bool:
    return receiver.tried >= times or counts(rig)["dropped"] > 0


async def _has(receiver: Receiver, uid: str, last: int) -> bool:
    return steps(receiver, uid)[-1:] == [last]


async def test_a_receiver_that_fails_at_everything_costs_no_points(
    tmp_path: Path, receiver: Receiver
) -> None:
    receiver.statuses = [500] * (4 * doubts.MOST_FAULTS)
    async with rig_of(tmp_path, receiver.url) as rig:
        for name in ("a", "b"):
            await running(rig, name)
            await report(rig, name, 1, 2)
        (one,) = rig.platform.exports.running
        await until(lambda: _is(one.trouble is not None), what="the trouble")
        await sent(rig, 4)
        assert one.trouble is None


async def _is(true: bool) -> bool:
    return true


async def test_points_that_break_the_receiver_are_dropped_after_some_tries_if_it_takes_others(
    tmp_path: Path, receiver: Receiver
) -> None:
    receiver.breaks_at = "poison"
    async with rig_of(tmp_path, receiver.url) as rig:
        bad, good = await running(rig, "bad"), await running(rig, "good")
        await report(rig, "bad", 1, 2, poison=1.0)
        for n in range(1, 100):  # alone it is never dropped
            await until(partial(_failed, rig, failures(rig) + 1), what="a fault")
            await report(rig, "good", n, n)
            await until(partial(_has, receiver, good, n), what=f"point {n}")
            if counts(rig)["dropped"]:
                break
        assert n >= doubts.MOST_FAULTS - 1
        await sent(rig, n, dropped=2)
        receiver.statuses = [500]
        await report(rig, "bad", 3, 4)
        await sent(rig, n + 2, dropped=2)
        assert steps(receiver, bad) == [3, 4]


async def _failed(rig: Rig, times: int) -> bool:
    return failures(rig) >= times or counts(rig)["dropped"] > 0


async def test_requests_shrink_until_the_receiver_takes_them(tmp_path: Path, receiver: Receiver) -> None:
    receiver.most = 40_000
    async with rig_of(tmp_path, receiver.url) as rig:
        uid = await running(rig)
        await report(rig, "digits", 1, 3000)
        await sent(rig, 3000)
        assert steps(receiver, uid) == [float(n) for n in range(1, 3001)]


@pytest.mark.parametrize(("values", "points"), [(1, 1), (2, 1), (3, 2), (10, 5), (99, 5)])
async def test_values_that_the_receiver_left_out_count_as_the_points_that_lack_them(
    tmp_path: Path, receiver: Receiver, values: int, points: int
) -> None:
    """Each point of this job has two values; the receiver tells a number of values."""
    receiver.rejected = values
    async with rig_of(tmp_path, receiver.url) as rig:
        await running(rig)
        await report(rig, "digits", 1, 5)
        await sent(rig, 5 - points, dropped=points)


async def test_an_answer_without_end_costs_nothing_but_its_beginning(
    tmp_path: Path, receiver: Receiver
) -> None:
    receiver.endless = True
    async with rig_of(tmp_path, receiver.url) as rig:
        uid = await running(rig)
        await report(rig, "digits", 1, 5)
        await sent(rig, 5)
        assert steps(receiver, uid) == [1, 2, 3, 4, 5]


async def test_hostile_names_times_and_values_arrive_as_they_are_or_within_bounds(
    tmp_path: Path, receiver: Receiver
) -> None:
    names = {"a\r\nb": 1.0, "x" * 100: 2.0, "\u202eé{}\"'": math.nan, "up": math.inf, "\x00": -math.inf}
    async with rig_of(tmp_path, receiver.url) as rig:
        uid = await running(rig)
        times = (-5.0, 1e300, math.inf, math.nan)
        points = [MetricPoint(n=n, t=t, v=names) for n, t in enumerate(times, 1)]
        await rig.platform.metrics.append(SYSTEM, "ann", "digits", MetricBatch(source="0.0.a", points=points))
        await sent(rig, 4)
        found = receiver.points(uid)
        assert {name for name, *_ in found} == set(names)
        assert {at for *_, at, _ in found} == {0, nanoseconds(1e300)}
        assert {str(value) for *_, value in found} == {"1.0", "2.0", "nan", "inf", "-inf"}
        metrics = {
            metric.name
            for request in receiver.requests
            for group in request.resource_metrics
            for scope in group.scope_metrics
            for metric in scope.metrics
        }
        assert metrics == {"mlp.job.value"}  # no program makes names of metrics


async def test_a_job_with_very_many_points_lets_others_have_their_turns(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = replace(exporter.KINDS["otlp"], jobs=1)
    monkeypatch.setitem(exporter.KINDS, "otlp", kind)  # type: ignore[arg-type]
    receiver.answers.clear()
    async with rig_of(tmp_path, receiver.url) as rig:
        many = await running(rig, "many")
        for at in range(0, 60_000, 20_000):
            await report(rig, "many", at + 1, at + 20_000, loss=1.0)
        await tried(receiver)
        few = await running(rig, "few")
        await report(rig, "few", 1, 1)
        receiver.answers.set()
        await sent(rig, 60_001)
        of = [_uid(request.resource_metrics[0].resource) for request in receiver.requests]
        assert of.index(few) < 4
        assert len(receiver.points(many)) == 60_000


def _uid(resource: Any) -> str:
    return str(next(a.value.string_value for a in resource.attributes if a.key == "mlp.job.uid"))


async def test_more_jobs_than_memory_takes_are_found_in_the_database(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backlog, "MOST_JOBS", 1)
    monkeypatch.setattr(exporter, "LOAD_JOBS", 1)
    monkeypatch.setattr(exporter, "MOST_JOBS", 1)
    receiver.answers.clear()
    async with rig_of(tmp_path, receiver.url) as rig:
        uids = []
        for name in ("one", "two", "three"):
            uids.append(await running(rig, name))
            await report(rig, name, 1, 2)
        await tried(receiver)
        assert len(rig.platform.exports.running[0]._backlog) == 1
        receiver.answers.set()
        await sent(rig, 6)
        assert [steps(receiver, uid) for uid in uids] == [[1, 2]] * 3


async def test_points_of_a_job_that_is_deleted_before_are_dropped_and_counted(
    tmp_path: Path, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.answers.clear()
    async with rig_of(tmp_path, receiver.url) as rig:
        await running(rig, "first")
        await report(rig, "first", 1, 1)
        await tried(receiver)
        for name in ("deleted", "emptied"):
            await running(rig, name)
            await report(rig, name, 1, 7)
            await end(rig, name)
        await rig.platform.jobs.delete(SYSTEM, "ann", "deleted")
        await rig.platform.metrics.delete(SYSTEM, "ann", "emptied")

        async def gone() -> bool:
            return await rig.db.read(lambda tx: tx.jobs.find(SYSTEM, "ann", "deleted")) is None

        await until(gone, what="the job to be gone")
        receiver.answers.set()
        await sent(rig, 1, dropped=14)
        assert "7 metric points of a job were not exported to OTLP: it was deleted" in caplog.text
        assert [done for _, done in await rows(rig)] == [False, True]


async def test_points_that_come_after_the_end_arrive_too(tmp_path: Path, receiver: Receiver) -> None:
    async with rig_of(tmp_path, receiver.url) as rig:
        uid = await running(rig)
        await report(rig, "digits", 1, 2)
        await end(rig, "digits")

        async def done() -> bool:
            return await rows(rig) == [(2, True)]

        await until(done, what="the end")
        board, store = rig.platform.board, rig.platform.metrics.points
        late = [MetricPoint(n=3, t=1.0, v={"step": 3.0})]
        appended = await board.commit(lambda tx, changes: store.store(tx, changes, uid, "0.0.a", late))
        store.show(uid, appended)
        await sent(rig, 3)
        assert steps(receiver, uid) == [1, 2, 3]

        async def again() -> bool:
            return await rows(rig) == [(3, True)]

        await until(again, what="the end of what came late")


async def test_a_point_that_comes_while_an_end_is_stored_arrives(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = PointExporter._store
    async with rig_of(tmp_path, receiver.url) as rig:
        uid = await running(rig)
        await report(rig, "digits", 1, 2)
        await sent(rig, 2)
        board, store = rig.platform.board, rig.platform.metrics.points
        late = [MetricPoint(n=3, t=1.0, v={"step": 3.0})]

        async def stored_late(one: PointExporter, settled: Any, rest: Any) -> None:
            if late and rest:
                points = [late.pop()]
                appended = await board.commit(
                    lambda tx, changes: store.store(tx, changes, uid, "0.0.a", points)
                )
                store.show(uid, appended)
            await inner(one, settled, rest)

        monkeypatch.setattr(PointExporter, "_store", stored_late)
        await end(rig, "digits")
        await sent(rig, 3)
        assert not late
        assert steps(receiver, uid) == [1, 2, 3]


async def test_first_points_that_come_while_a_job_without_points_is_forgotten_arrive(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = PointExporter._read
    async with rig_of(tmp_path, receiver.url) as rig:
        uid = await running(rig)
        board, store = rig.platform.board, rig.platform.metrics.points
        loop, late = asyncio.get_running_loop(), [MetricPoint(n=1, t=1.0, v={"step": 1.0})]

        async def come() -> None:
            points = [late.pop()]
            appended = await board.commit(lambda tx, changes: store.store(tx, changes, uid, "0.0.a", points))
            store.show(uid, appended)

        def read(one: PointExporter, *args: Any, **more: Any) -> Any:
            found = inner(one, *args, **more)
            if found.gone and late:
                asyncio.run_coroutine_threadsafe(come(), loop).result(10)
            return found

        monkeypatch.setattr(PointExporter, "_read", read)
        await end(rig, "digits")
        await sent(rig, 1)
        assert steps(receiver, uid) == [1]


async def test_a_database_that_fails_at_a_start_leaves_no_point_behind(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver.answers.clear()
    async with rig_of(tmp_path, receiver.url) as rig:
        uid = await running(rig)
        await report(rig, "digits", 1, 2)
        await tried(receiver)
        dead = rig.platform.exports.running[0]
        rig.crash()
        await dead._sender.stop()
        receiver.answers.set()
        inner, failures = PointExporter._open, [1]

        def opened(one: PointExporter, tx: Any, *, after: str) -> Any:
            if failures:
                failures.pop()
                raise StoreUnavailable(msg("the database does not answer"))
            return inner(one, tx, after=after)

        monkeypatch.setattr(PointExporter, "_open", opened)
        await rig.start()
        await sent(rig, 2)
        assert not failures
        assert set(steps(receiver, uid)) == {1, 2}


async def test_only_the_jobs_of_named_tenants_are_exported(tmp_path: Path, receiver: Receiver) -> None:
    async with rig_of(tmp_path, receiver.url, "another") as rig:
        await running(rig)
        await report(rig, "digits", 1, 2)
        await report(rig, "digits", 3, 4)
        await end(rig, "digits")
        (one,) = rig.platform.exports.running
        assert (await rows(rig), one.behind, one._wanted, receiver.tried) == ([], 0, {}, 0)
    async with rig_of(tmp_path, receiver.url, "another", "default") as rig:
        uid = await running(rig, "next")
        await report(rig, "next", 1, 2)
        await sent(rig, 2)
        assert steps(receiver, uid) == [1, 2]


async def test_without_a_target_nothing_runs_and_nothing_is_stored_or_loaded(tmp_path: Path) -> None:
    async with rig_of(tmp_path, "") as rig:
        await running(rig)
        await report(rig, "digits", 1, 2)
        assert rig.platform.exports.running == ()
        assert rig.platform.metrics.points.beginners == []
        assert await rows(rig) == []
        text, _ = await rig.platform.monitoring.scrape("")
        assert b"\nmlp_points_export_behind" not in text
    code = (
        "import sys, mlp_hub.app; sys.exit(any(m.startswith('opentelemetry') or m == "
        "'mlp_hub.service.exports.exporter' for m in sys.modules))"
    )
    done = await asyncio.to_thread(subprocess.run, [sys.executable, "-c", code], check=False)
    assert done.returncode == 0
