"""Points by way of a real Apache Kafka: durable there before the answer, stored exactly once whatever is killed."""

from __future__ import annotations

import asyncio
import gc
import itertools
import math
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mlp_api.jobs.metrics import MetricBatch, MetricPoint
from mlp_hub.cli.doctor import broker as checks_broker
from mlp_hub.domain.errors import Refused, Unavailable
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.service.config import BrokerPolicy, RunPolicy
from mlp_hub.service.metrics import kafka_log
from mlp_hub.service.metrics.carrier import Carrier
from mlp_hub.service.metrics.kafka_log import KafkaLog
from mlp_hub.service.metrics.storing import frame_of
from mlp_hub.settings import Settings
from support.ports import free_port
from support.rigs.platform_rig import FAST, Rig, running_rig
from support.stores import kafka_broker
from support.stores.kafka_broker import KafkaBroker
from support.waiting import until

_numbers = itertools.count(1)
# a service that is stopped while it connects leaves that connection to the collector
pytestmark = pytest.mark.filterwarnings("ignore:[Uu]nclosed:ResourceWarning")


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """What a test leaves to the collector is collected within it."""
    yield
    gc.collect()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    if missing := kafka_broker.why_not():
        pytest.skip(missing)
    place = tmp_path_factory.mktemp("kafka") / "one"
    made = KafkaBroker(place, free_port(), free_port(), sasl=("hub", "right"), sasl_port=free_port())
    try:
        made.start()
        yield made
    finally:
        made.stop(kill=True)


@pytest.fixture
def policy(broker: KafkaBroker) -> RunPolicy:
    """Policy with a topic of the test's own."""
    return replace(FAST, broker=BrokerPolicy((broker.bootstrap,), f"points-{next(_numbers)}"))


def batch(source: str, first: int, last: int, **values: float | None) -> MetricBatch:
    v = values or {"loss": 0.5}
    return MetricBatch(
        source=source, points=[MetricPoint(n=n, t=float(n), v=v) for n in range(first, last + 1)]
    )


async def stored(rig: Rig, name: str = "j") -> list[dict[str, Any]]:
    uid = (await rig.platform.jobs.get(SYSTEM, "ann", name)).uid
    return [frame_of(p) async for page in rig.platform.metrics.pages(uid, 0) for p in page]


async def there(rig: Rig, count: int, name: str = "j") -> list[dict[str, Any]]:
    """The job's points once there are so many."""

    async def look() -> list[dict[str, Any]]:
        found = await stored(rig, name)
        return found if len(found) >= count else []

    found: list[dict[str, Any]] = await until(look, what=f"{count} points")
    return found


async def running(rig: Rig, name: str = "j") -> None:
    await rig.submit(name, sim={"DURATION": 3600})
    await rig.until(name, "running")


async def sent(rig: Rig, points: MetricBatch, name: str = "j") -> int:
    """Post as a process does: again until the answer says that it was taken."""

    async def attempt() -> bool:
        try:
            return (await rig.platform.metrics.append(SYSTEM, "ann", name, points)).last >= points.points[
                -1
            ].n
        except Unavailable:
            return False

    await until(attempt, what="the batch to be taken", every=0.05)
    return points.points[-1].n


async def write(policy: RunPolicy, *values: bytes) -> None:
    """Write messages to the topic as anybody who may could."""
    assert policy.broker is not None
    log = KafkaLog(policy.broker)
    try:
        for value in values:
            await log.send(b"anybody", value)
    finally:
        await log.close()


async def killed(rig: Rig) -> None:
    """Take the service away and start another; the connections of the dead are closed, as the kernel does."""
    dead = rig.platform.metrics.carrier
    assert dead is not None
    rig.crash()
    await dead._reading.stop()
    await rig.start()
    await dead.stop()


async def reasons(rig: Rig) -> list[str]:
    return [problem.reason for problem in await rig.platform.problems.now()]


async def test_the_lag_is_the_messages_that_nobody_has_read(
    tmp_path: Path, policy: RunPolicy, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert policy.broker is not None
    monkeypatch.setattr(kafka_log, "FETCHED", 2)
    await write(policy, *(b"%d" % n for n in range(5)))
    log, seen = KafkaLog(policy.broker), 0
    assert log.lag is None

    async def nothing() -> dict[int, int]:
        return {}

    async with aclosing(log.read(nothing)) as lots:
        async for lot in lots:
            seen += len(lot)
            assert not lot or log.lag == 5 - seen
            if seen == 5:
                break
    assert seen == 5
    assert log.lag is None
    await log.close()
    async with running_rig(tmp_path, policy=policy) as rig:

        async def read() -> bool:
            return rig.platform.metrics.lag() == 0

        await until(read, what="all to be read")
        text, _ = await rig.platform.monitoring.scrape("")
        assert b"\nmlp_points_lag_messages 0\n" in text


async def test_points_are_stored_once_and_in_order(tmp_path: Path, policy: RunPolicy) -> None:
    async with running_rig(tmp_path, policy=policy) as rig:
        m = rig.platform.metrics
        await running(rig)
        assert await sent(rig, batch("0.0.a", 1, 10)) == 10
        assert (await m.append(SYSTEM, "ann", "j", batch("0.0.a", 5, 12))).last == 12
        assert (await m.append(SYSTEM, "ann", "j", batch("1.0.b", 1, 3))).last == 3
        assert (await m.append(SYSTEM, "ann", "j", batch("0.0.a", 20, 22))).last == 12  # a gap: go on from 13
        assert (await m.append(SYSTEM, "ann", "j", batch("0.0.a", 13, 13, loss=None))).last == 13
        found = await there(rig, 16)
        assert [p["seq"] for p in found] == list(range(1, 17))
        assert [p["time"] for p in found if p["rank"] == 0] == [float(n) for n in range(1, 14)]
        assert [p["rank"] for p in found].count(1) == 3
        assert math.isnan([p for p in found if p["rank"] == 0][-1]["values"]["loss"])
        assert await reasons(rig) == []


async def test_acknowledged_points_are_stored_although_the_service_is_killed_repeatedly(
    tmp_path: Path, policy: RunPolicy
) -> None:
    async with running_rig(tmp_path, policy=policy) as rig:
        await running(rig)
        for round_ in range(5):
            await sent(rig, batch("0.0.a", round_ * 100 + 1, round_ * 100 + 100))
            await killed(rig)
        found = await there(rig, 500)
        assert [p["time"] for p in found] == [float(n) for n in range(1, 501)]
        await asyncio.gather(*(sent(rig, batch(f"{rank}.0.x", 1, 50)) for rank in range(4)))
        assert len(await there(rig, 700)) == 700


async def test_points_that_arrived_without_a_reader_are_stored_afterwards(
    tmp_path: Path, policy: RunPolicy
) -> None:
    async with running_rig(tmp_path, policy=policy) as rig:
        await running(rig)
        await sent(rig, batch("0.0.a", 1, 10))
        await there(rig, 10)
        await rig.platform.metrics.stop_reading()
        await sent(rig, batch("0.0.a", 11, 3000))
        assert len(await stored(rig)) == 10
        await rig.restart()
        assert [p["time"] for p in await there(rig, 3000)] == [float(n) for n in range(1, 3001)]


async def test_a_transaction_that_fails_takes_its_points_and_its_offset_along(
    tmp_path: Path, policy: RunPolicy, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_rig(tmp_path, policy=policy) as rig:
        await running(rig)
        assert rig.platform.metrics.carrier is not None
        points = rig.platform.metrics.carrier._store
        store, failures = points.store, []

        def fails(*given: Any) -> Any:
            done = store(*given)
            if len(failures) < 3:
                failures.append(done)
                raise RuntimeError("killed after the rows, before the offset")
            return done

        monkeypatch.setattr(points, "store", fails)
        await sent(rig, batch("0.0.a", 1, 10))
        assert [p["time"] for p in await there(rig, 10)] == [float(n) for n in range(1, 11)]
        assert len(failures) == 3
        offsets = await rig.platform.metrics.carrier._offsets()
        assert sum(offsets.values()) == 1


async def test_two_services_that_read_store_each_point_once(tmp_path: Path, policy: RunPolicy) -> None:
    assert policy.broker is not None
    others = [
        policy.broker,  # one that does not know yet that it leads no more
        replace(policy.broker, group="another"),  # with offsets of its own
    ]

    async with running_rig(tmp_path, policy=policy) as rig:
        await running(rig)
        carriers = [Carrier(rig.platform.board, rig.platform.metrics.points, other) for other in others]
        for carrier in carriers:
            carrier.start()
        try:
            for first in range(1, 1000, 100):
                await sent(rig, batch("0.0.a", first, first + 99))
            await there(rig, 1000)

            async def read_by_all() -> bool:
                ends = [sum((await c._offsets()).values()) for c in carriers]
                return min(ends) == 10

            await until(read_by_all, what="both groups to have read all")
            assert [p["time"] for p in await stored(rig)] == [float(n) for n in range(1, 1001)]
        finally:
            for carrier in carriers:
                await carrier.stop()


async def test_a_broker_that_is_down_is_told_and_what_was_sent_then_comes_when_it_is_back(
    tmp_path: Path, policy: RunPolicy, broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_log, "SEND_S", 1.0)
    monkeypatch.setattr(kafka_log, "CONNECT_S", 3.0)

    async with running_rig(tmp_path, policy=policy) as rig:
        await running(rig)
        await sent(rig, batch("0.0.a", 1, 10))
        await there(rig, 10)
        await asyncio.to_thread(broker.stop, kill=True)
        try:
            with pytest.raises(Unavailable, match="processes keep their points"):
                await rig.platform.metrics.append(SYSTEM, "ann", "j", batch("0.0.a", 11, 20))
            assert await reasons(rig) == ["MetricsBroker"]
            await rig.restart()  # it starts without its broker, and says so by itself

            async def told() -> bool:
                return await reasons(rig) == ["MetricsBroker"]

            await until(told, what="the health problem")
        finally:
            await asyncio.to_thread(broker.start)
        await sent(rig, batch("0.0.a", 11, 20))
        assert [p["time"] for p in await there(rig, 20)] == [float(n) for n in range(1, 21)]

        async def well() -> bool:
            return await reasons(rig) == []

        await until(well, what="no problem any more")


POISON = (
    b"",
    b"\xc1",
    b"not msgpack at all",
    b"\x91" * 5000,  # lists in lists
    b"\xdd\xff\xff\xff\xff",  # a list of four billion
    b"\x94\x02\xa1u\xa50.0.a\x90",  # another version
    b"\x94\x01\xa1u\xa6../../\x90",  # no source
    b"\x94\x01\xa1u\xa50.0.a\x91\x93\x00\xcb" + bytes(8) + b"\x80",  # number 0
    b"\x94\x01\xa1u\xa50.0.a\x91\x93\x01\xcb" + bytes(8) + b"\x81\xa0\x01",  # a metric without a name
)


async def test_messages_that_are_none_hold_nothing_up(tmp_path: Path, policy: RunPolicy) -> None:
    async with running_rig(tmp_path, policy=policy) as rig:
        await running(rig)
        carrier = rig.platform.metrics.carrier
        assert carrier is not None
        await write(policy, *POISON)
        # of a job that is not there, and of a source that is ahead of what is stored
        await write(policy, b"\x94\x01\xa1u\xa50.0.a\x91\x93\x01\xcb" + bytes(8) + b"\x81\xa1x\x01")
        await sent(rig, batch("0.0.a", 1, 5))
        assert len(await there(rig, 5)) == 5

        async def all_read() -> bool:
            return sum((await carrier._offsets()).values()) == len(POISON) + 2

        await until(all_read, what="all messages to be read")
        assert carrier.unreadable == len(POISON)


async def test_a_broker_that_takes_small_messages_gets_small_ones(
    tmp_path: Path, policy: RunPolicy, broker: KafkaBroker
) -> None:
    from aiokafka.admin import AIOKafkaAdminClient, NewTopic

    assert policy.broker is not None
    admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap)
    await admin.start()
    small = NewTopic(policy.broker.topic, 1, 1, topic_configs={"max.message.bytes": "4096"})
    await admin.create_topics([small])
    await admin.close()
    async with running_rig(tmp_path, policy=policy) as rig:
        await running(rig)
        await sent(rig, batch("0.0.a", 1, 1000))
        assert [p["time"] for p in await there(rig, 1000)] == [float(n) for n in range(1, 1001)]
        large = batch("0.0.a", 1001, 1001, **{f"{n:0>90}": 1.0 for n in range(100)})
        with pytest.raises(Unavailable, match="large enough for one point"):
            await rig.platform.metrics.append(SYSTEM, "ann", "j", large)


def test_doctor_says_whether_the_broker_answers(
    policy: RunPolicy, broker: KafkaBroker, tmp_path: Path
) -> None:
    assert policy.broker is not None
    environ = {"MLP_HOME": str(tmp_path), "MLP_METRICS_TRANSPORT": "kafka"}
    there = {"MLP_KAFKA_BOOTSTRAP": broker.bootstrap, "MLP_KAFKA_TOPIC": policy.broker.topic}
    (well,) = checks_broker.broker(Settings.load({**environ, **there}))
    assert (well.status, well.found) == (
        "ok",
        f"Kafka, topic {policy.broker.topic} with 3 partitions, group mlp-hub",
    )
    nobody = {"MLP_KAFKA_BOOTSTRAP": f"127.0.0.1:{free_port()}"}
    (ill,) = checks_broker.broker(Settings.load({**environ, **nobody}))
    assert ill.status == "fail"
    assert "MLP_KAFKA_BOOTSTRAP" in ill.remedy
    assert checks_broker.broker(Settings.load({"MLP_HOME": str(tmp_path)})) == []


async def test_a_job_that_does_not_run_sends_nothing_and_deleted_points_do_not_come_back(
    tmp_path: Path, policy: RunPolicy
) -> None:
    async with running_rig(tmp_path, policy=policy) as rig:
        m = rig.platform.metrics
        await running(rig)
        await m.begin(SYSTEM, "ann", "j")
        await sent(rig, batch("0.0.a", 1, 10))
        await there(rig, 10)
        await m.stop_reading()
        await sent(rig, batch("0.0.a", 11, 20))
        await rig.platform.jobs.cancel(SYSTEM, "ann", "j")
        await rig.until("j", "cancelled")
        assert (await m.append(SYSTEM, "ann", "j", batch("0.0.a", 21, 30))).last <= 20
        await m.finish(SYSTEM, "ann", "j")
        await m.delete(SYSTEM, "ann", "j")
        with pytest.raises(Refused):
            await m.append(SYSTEM, "ann", "nobody", batch("0.0.a", 1, 1))
        await running(rig, "k")
        await rig.restart()
        await sent(rig, batch("0.0.a", 1, 1), "k")
        await there(rig, 1, "k")
        carrier = rig.platform.metrics.carrier
        assert carrier is not None

        async def all_read() -> bool:
            return sum((await carrier._offsets()).values()) == 3

        await until(all_read, what="all messages to be read")
        assert await stored(rig) == []


async def test_points_in_transit_when_their_job_ended_are_stored(tmp_path: Path, policy: RunPolicy) -> None:
    async with running_rig(tmp_path, policy=policy) as rig:
        await running(rig)
        await rig.platform.metrics.stop_reading()
        await sent(rig, batch("0.0.a", 1, 10))
        await rig.platform.jobs.cancel(SYSTEM, "ann", "j")
        await rig.until("j", "cancelled")
        await rig.restart()
        assert len(await there(rig, 10)) == 10


async def test_a_recreated_topic_is_read_from_its_beginning(tmp_path: Path, policy: RunPolicy) -> None:
    async with running_rig(tmp_path, policy=policy) as rig:
        carrier = rig.platform.metrics.carrier
        assert carrier is not None
        await running(rig)

        def beyond(tx: Any) -> None:
            for partition in range(3):
                tx.settings.put(carrier._key(partition), 1000)

        await rig.db.write(beyond)
        await rig.restart()
        await sent(rig, batch("0.0.a", 1, 10))
        assert len(await there(rig, 10)) == 10


async def test_a_broker_that_asks_for_a_password_gets_the_right_one_only(
    tmp_path: Path, broker: KafkaBroker
) -> None:
    security = {"protocol": "SASL_PLAINTEXT", "user": "hub", "password": "right"}
    policy = BrokerPolicy((broker.guarded,), f"points-{next(_numbers)}", security=security)

    async with running_rig(tmp_path, policy=replace(FAST, broker=policy)) as rig:
        await running(rig)
        wrong = KafkaLog(replace(policy, security={**security, "password": "wrong"}))
        with pytest.raises(kafka_log.BrokerError):
            await wrong.send(b"k", b"v")
        await wrong.close()
        await sent(rig, batch("0.0.a", 1, 10))
        assert len(await there(rig, 10)) == 10
        assert "right" not in repr(policy)
