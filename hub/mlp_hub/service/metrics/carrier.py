"""Metric points through a broker: durable there before the sender's answer, then stored exactly once.

A batch is accepted as without a broker: if the job runs, numbered from its source's last point on.
It is answered once the broker has it. The leader reads the topic, and stores points with the offset
of the next ones in one transaction. So after any crash the topic is read from there, and points
that are already stored are recognised by their numbers. Points that the broker never had are in the
spool of their process, as always.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from typing import Annotated

import msgspec
from msgspec import Meta

from mlp_api.jobs.jobs import SOURCE_PATTERN
from mlp_api.jobs.metrics import MetricAck
from mlp_hub.background import BackgroundTask
from mlp_hub.domain.errors import Unavailable
from mlp_hub.domain.jobs.job import FINAL
from mlp_hub.domain.tenants.tenant_context import SYSTEM, TenantContext
from mlp_hub.service.config import BrokerPolicy
from mlp_hub.service.health.problems import Problem
from mlp_hub.service.metrics.kafka_log import (
    MESSAGE_BYTES,
    BrokerError,
    KafkaLog,
    KafkaMessage,
    MessageTooLargeError,
)
from mlp_hub.service.metrics.storing import REPORTING, PointStore
from mlp_hub.service.state.board import Board, Changes
from mlp_hub.service.state.leadership import LeaseLost
from mlp_hub.service.support.runs import found_job
from mlp_hub.store.records import Appended, Sample
from mlp_hub.store.repos.jobs.metrics import following
from mlp_hub.store.tx import Tx
from mlp_language.message import Message, msg

log = logging.getLogger(__name__)
LOT_POINTS = 20_000
"""Tuning: points in a transaction, about: others write between two."""
LOT_BYTES = 2**20
"""Safety: bytes of the messages whose points are in a transaction, about: bounds memory."""
FIRST_WAIT_S, LONGEST_WAIT_S = 0.2, 5.0
"""Tuning: seconds before the broker is tried again: back sooner with less, fewer tries with more."""
MOST_PARTITIONS = 1000
"""Safety: partitions of a topic whose offsets are kept."""
MOST_SOURCES = 100_000
"""Safety: sources whose last number is remembered; of others the store is asked."""


class CarriedPoint(msgspec.Struct, array_like=True, frozen=True):
    """A point in a message."""

    n: Annotated[int, Meta(ge=1, le=2**53)]
    t: float
    v: Annotated[dict[Annotated[str, Meta(min_length=1, max_length=100)], float | int], Meta(max_length=100)]


class CarriedBatch(msgspec.Struct, array_like=True, frozen=True):
    """A message: consecutive points of one source of one job. `version` is that of this form."""

    version: Annotated[int, Meta(ge=1, le=1)]
    job: Annotated[str, Meta(min_length=1, max_length=100)]
    source: Annotated[str, Meta(pattern=SOURCE_PATTERN)]
    points: list[CarriedPoint]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(CarriedBatch).decode


class Carrier:
    """Way of points through the broker's topic: `accept` writes, and while it is started it reads and stores."""

    def __init__(self, board: Board, store: PointStore, policy: BrokerPolicy) -> None:
        self._board = board
        self._store = store
        self._topic = KafkaLog(policy)
        self._name = f"{policy.group} {policy.topic}"  # what the offsets are of
        self._last: dict[tuple[str, str], int] = {}  # numbers that the broker has
        self._reading = BackgroundTask(self._read_on)
        self._write_trouble: Message | None = None
        self._read_trouble: Message | None = None
        self._trying = 0
        self.unreadable = 0

    @property
    def lag(self) -> int | None:
        """Messages that the broker has and the service has not read; None while it does not read."""
        return self._topic.lag

    async def accept(
        self, context: TenantContext, user: str, name: str, source: str, points: Sequence[Sample]
    ) -> MetricAck:
        """Write a batch's new points to the topic; say how far the broker has the source's points."""

        def look(tx: Tx) -> tuple[str, bool, int]:
            job = found_job(tx, context, user, name)
            return job.uid, job.phase in REPORTING, tx.metrics.last(job.uid, source)

        uid, runs, stored = await self._board.db.read(look)
        last = max(stored, self._last.get((uid, source), 0))
        fresh = following(points, last) if runs else ()
        if not fresh:
            return MetricAck(last=last)
        if self._write_trouble is not None and self._trying:
            raise Unavailable(self._write_trouble)  # one is trying; nobody waits in a row behind it
        self._trying += 1
        try:
            for part, message in _messages(uid, source, fresh):
                await self._send(uid, source, part, message)
        finally:
            self._trying -= 1
        self._write_trouble = None
        return MetricAck(last=last + len(fresh))

    async def _send(self, uid: str, source: str, points: Sequence[Sample], message: bytes) -> None:
        """Write points as one message, or as smaller ones where the broker does not take one of that size."""
        try:
            await self._topic.send(uid.encode(), message)
        except MessageTooLargeError as error:
            if len(points) == 1:
                raise self._cannot_write(
                    msg("the broker of metrics accepts no message that is large enough for one point"), error
                ) from error
            middle = len(points) // 2
            for half in (points[:middle], points[middle:]):
                await self._send(uid, source, half, _message(uid, source, half))
            return
        except BrokerError as error:
            raise self._cannot_write(
                msg("the broker of metrics does not answer; processes keep their points until it does"), error
            ) from error
        if len(self._last) >= MOST_SOURCES:
            self._last.clear()
        key = (uid, source)
        self._last[key] = max(self._last.get(key, 0), points[-1].n)

    def _cannot_write(self, text: Message, error: BrokerError) -> Unavailable:
        if self._write_trouble is None:
            log.warning("metric points cannot be written to the broker: %s", error)
        self._write_trouble = text
        return Unavailable(text)

    def forget(self, uid: str) -> None:
        """Forget what a job's sources sent: it has ended."""
        for key in [key for key in self._last if key[0] == uid]:
            del self._last[key]

    async def problems(self) -> list[Problem]:
        """Tell whether points come through."""
        trouble = self._write_trouble or self._read_trouble
        return [] if trouble is None else [Problem("metrics", "MetricsBroker", trouble, fails=False)]

    # ------------------------------------------------------------------- reading

    def start(self) -> None:
        """Read and store from now on."""
        if not self._reading.is_running:
            self._last.clear()  # another service may have written since
            self._reading.start()

    async def stop(self) -> None:
        """Stop reading; points that are being stored are stored."""
        await self._reading.stop()
        await self._topic.close()

    async def _read_on(self) -> None:
        wait = FIRST_WAIT_S
        while True:
            try:
                async with aclosing(self._topic.read(self._offsets)) as reading:
                    async for messages in reading:
                        self._works()
                        wait = FIRST_WAIT_S
                        for lot in self._lots(messages):
                            await self._take(lot)
            except LeaseLost:
                return
            except (BrokerError, TimeoutError, Unavailable) as error:
                self._cannot_read(error)
            except Exception as error:
                log.exception("reading metric points from the broker failed; it is tried again")
                self._cannot_read(error)
            await asyncio.sleep(wait)
            wait = min(wait * 2, LONGEST_WAIT_S)

    def _works(self) -> None:
        if self._read_trouble is not None:
            log.warning("metric points come from the broker again")
        self._read_trouble = self._write_trouble = None

    def _cannot_read(self, error: Exception) -> None:
        if self._read_trouble is None:
            log.warning("metric points cannot be read from the broker: %s", error)
        self._read_trouble = msg(
            "metric points cannot be read from their broker. Curves are not updated until they can; nothing is lost"
        )

    def _key(self, partition: int) -> str:
        return f"metrics.kafka {self._name} {partition}"

    async def _offsets(self) -> dict[int, int]:
        keys = {self._key(partition): partition for partition in range(MOST_PARTITIONS)}
        found = await self._board.db.read(lambda tx: tx.settings.get_all(list(keys)))
        return {keys[key]: int(value) for key, value in found.items()}

    def _lots(
        self, messages: Sequence[KafkaMessage]
    ) -> Iterator[list[tuple[KafkaMessage, CarriedBatch | None]]]:
        lot: list[tuple[KafkaMessage, CarriedBatch | None]] = []
        count = size = 0
        for message in messages:
            batch = self._batch(message)
            lot.append((message, batch))
            count += 0 if batch is None else len(batch.points)
            size += len(message.value)
            if count >= LOT_POINTS or size >= LOT_BYTES:
                yield lot
                lot, count, size = [], 0, 0
        if lot:
            yield lot

    def _batch(self, message: KafkaMessage) -> CarriedBatch | None:
        """Return what a message holds; None for one that is not ours, which holds up nothing."""
        try:
            return _decode(message.value)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            self.unreadable += 1
            log.warning(
                "message %d of partition %d of the metrics' topic is none of ours and is passed over: %s",
                message.offset,
                message.partition,
                error,
            )
            return None

    async def _take(self, lot: Sequence[tuple[KafkaMessage, CarriedBatch | None]]) -> None:
        def work(tx: Tx, changes: Changes) -> list[tuple[str, Appended]]:
            taken = []
            ahead: dict[int, int] = {}
            for message, batch in lot:
                ahead[message.partition] = message.offset + 1
                if batch is not None and (done := self._one(tx, changes, batch)) is not None:
                    taken.append((batch.job, done))
            for partition, offset in ahead.items():
                tx.settings.put(self._key(partition), offset)
            return taken

        # the broker has them: a power cut takes the offsets along, and they are read again
        for uid, done in await self._board.commit(work, durable=False):
            self._store.show(uid, done)

    def _one(self, tx: Tx, changes: Changes, batch: CarriedBatch) -> Appended | None:
        job = tx.jobs.get(SYSTEM, batch.job)
        if job is None or tx.metrics.is_closed(job.uid):
            return None  # it was deleted, or its points were, while they were on their way
        done = self._store.store(tx, changes, job.uid, batch.source, batch.points)
        if batch.points and batch.points[0].n > done.last + 1:
            self._last.pop(
                (job.uid, batch.source), None
            )  # a gap: its process sends it again, or its spool has it
        if done.accepted and job.phase in FINAL:
            tx.runs.reopen(job.uid)
            tx.ended.put(tx.ended.measure([job.uid]))
        return done


def _message(uid: str, source: str, points: Sequence[Sample]) -> bytes:
    return _encode((1, uid, source, [(p.n, p.t, p.v) for p in points]))


def _messages(uid: str, source: str, points: Sequence[Sample]) -> Iterator[tuple[Sequence[Sample], bytes]]:
    """Yield points with their messages, none of which has more bytes than brokers take."""
    message = _message(uid, source, points)
    if len(message) <= MESSAGE_BYTES or len(points) == 1:
        yield points, message
        return
    middle = len(points) // 2
    yield from _messages(uid, source, points[:middle])
    yield from _messages(uid, source, points[middle:])
