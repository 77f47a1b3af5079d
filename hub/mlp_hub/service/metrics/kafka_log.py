"""Topic of Apache Kafka that metric points pass through: writes, and reads in order.

This module does not know jobs. The client library is an extra (`mlp-hub[kafka]`) and is loaded only
at sites with a broker.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlp_hub.service.config import BrokerPolicy

SEND_S = 8.0
"""Tuning: seconds that a message may take to be on the broker: below what its sender waits, above a change of the broker's leader."""
CONNECT_S = 10.0
"""Tuning: seconds that connecting may take: sooner with less, on networks that are slow with more."""
MESSAGE_BYTES = 500_000
"""Safety: bytes of a message: brokers take a million unless they were told otherwise."""
IDLE_ROUNDS = 5
"""Tuning: seconds without a message after which the broker is asked whether it is there: sooner told with less."""
FETCHED = 100
"""Tuning: messages that are read at once: memory, for fewer transactions."""

Offsets = Mapping[int, int]
"""By partition the offset of the next message."""


class BrokerError(Exception):
    """The broker does not answer, or does not take it; the text is its own."""


class MessageTooLargeError(BrokerError):
    """The broker takes no message of this size."""


@dataclass(frozen=True, slots=True)
class KafkaMessage:
    """A message that was read: where it stood, and what it holds."""

    partition: int
    offset: int
    value: bytes


class KafkaLog:
    """One topic of one broker."""

    def __init__(self, policy: BrokerPolicy) -> None:
        self._policy = policy
        self._producer: Any = None
        self._starting = asyncio.Lock()
        self.lag: int | None = None
        """Messages that the brokers have and the reader has not; None while nobody reads."""

    async def send(self, key: bytes, value: bytes) -> None:
        """Write a message, and return once all required replicas of the broker have it. Raises `BrokerError`."""
        from aiokafka.errors import KafkaError, MessageSizeTooLargeError  # noqa: PLC0415 - an extra

        try:
            async with asyncio.timeout(SEND_S):
                producer = await self._started()
                await producer.send_and_wait(self._policy.topic, value, key=key)
        except MessageSizeTooLargeError as error:
            raise MessageTooLargeError(str(error)) from error
        except (KafkaError, OSError) as error:
            raise BrokerError(f"{type(error).__name__}: {error}") from error

    async def read(
        self, stored: Callable[[], Awaitable[Offsets]]
    ) -> AsyncGenerator[Sequence[KafkaMessage], None]:
        """Yield what is in the topic and what comes, from where `stored` says, until its partitions change.

        When the next messages are asked for, those before are the reader's for good. Yields an empty list now and then,
        where the broker answers and has nothing. Raises `BrokerError`.
        """
        from aiokafka import AIOKafkaConsumer, TopicPartition  # noqa: PLC0415 - an extra
        from aiokafka.errors import KafkaError  # noqa: PLC0415

        consumer = AIOKafkaConsumer(
            **self._common(),
            group_id=self._policy.group,
            enable_auto_commit=False,  # the store knows how far it is, in the transaction of the points
            auto_offset_reset="earliest",  # where what was to be read is gone
            fetch_max_wait_ms=250,
        )
        try:
            async with asyncio.timeout(CONNECT_S):
                await consumer.start()
                # all of them: who leads is the only reader, and need not wait until the group has forgotten the one before
                numbers = await self._partitions()
                parts = [TopicPartition(self._policy.topic, number) for number in numbers]
                consumer.assign(parts)
                await _seek(consumer, parts, await stored())
            yield []
            idle = 0
            while True:
                found = await consumer.getmany(timeout_ms=1000, max_records=FETCHED)
                self.lag = sum([await _behind(consumer, part) for part in parts])
                idle = 0 if found else idle + 1
                if found:
                    yield [
                        KafkaMessage(at.partition, m.offset, m.value or b"")
                        for at, many in found.items()
                        for m in many
                    ]
                    # for who looks at the group's lag; nothing is read by it
                    with contextlib.suppress(KafkaError):
                        await consumer.commit({at: many[-1].offset + 1 for at, many in found.items()})
                elif idle >= IDLE_ROUNDS:
                    idle = 0
                    async with asyncio.timeout(CONNECT_S):
                        await consumer.topics()  # who reads in vain does not learn that nobody answers
                        if await self._partitions() != numbers:
                            return
                    yield []
        except (KafkaError, OSError) as error:
            raise BrokerError(f"{type(error).__name__}: {error}") from error
        finally:
            self.lag = None
            with contextlib.suppress(KafkaError, OSError):
                async with asyncio.timeout(CONNECT_S):
                    await consumer.stop()

    async def partitions(self) -> int:
        """Return how many partitions the topic has. Raises `BrokerError`."""
        from aiokafka.errors import KafkaError  # noqa: PLC0415 - an extra

        try:
            async with asyncio.timeout(CONNECT_S):
                return len(await self._partitions())
        except (KafkaError, OSError) as error:
            raise BrokerError(f"{type(error).__name__}: {error}") from error
        finally:
            await self.close()

    async def close(self) -> None:
        """End the connection."""
        producer, self._producer = self._producer, None
        if producer is not None:
            with contextlib.suppress(Exception):  # whatever it says now, nobody waits for it
                async with asyncio.timeout(CONNECT_S):
                    await producer.stop()

    async def _partitions(self) -> Sequence[int]:
        return sorted(await (await self._started()).partitions_for(self._policy.topic))

    async def _started(self) -> Any:
        from aiokafka import AIOKafkaProducer  # noqa: PLC0415 - an extra

        async with self._starting:
            if self._producer is None:
                made = AIOKafkaProducer(
                    **self._common(),
                    acks="all",
                    max_request_size=2 * MESSAGE_BYTES,
                )
                try:
                    await made.start()
                except BaseException:
                    with contextlib.suppress(Exception):
                        await asyncio.shield(made.stop())
                    raise
                self._producer = made
            return self._producer

    def _common(self) -> dict[str, Any]:
        # the library tells each try of a broker that is down; the health problem says it once
        logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
        given = self._policy.security
        found: dict[str, Any] = {
            "bootstrap_servers": list(self._policy.bootstrap),
            "client_id": "mlp-hub",
            "request_timeout_ms": round(SEND_S * 1000),
            "retry_backoff_ms": 200,
            "security_protocol": given.get("protocol", "PLAINTEXT"),
        }
        if given.get("protocol", "").endswith("SSL"):
            context = ssl.create_default_context(cafile=given.get("ca_file"))
            if "certificate_file" in given:
                context.load_cert_chain(given["certificate_file"], given.get("key_file"))
            found["ssl_context"] = context
        if "user" in given:
            found["sasl_mechanism"] = given.get("mechanism", "PLAIN")
            found["sasl_plain_username"] = given["user"]
            found["sasl_plain_password"] = given.get("password", "")
        return found


async def _seek(consumer: Any, parts: Sequence[Any], known: Offsets) -> None:
    """Continue where the store is, or at the beginning if a topic was made again or messages are gone."""
    first, last = await consumer.beginning_offsets(parts), await consumer.end_offsets(parts)
    for part in parts:
        at = known.get(part.partition, 0)
        consumer.seek(part, at if first[part] <= at <= last[part] else first[part])


async def _behind(consumer: Any, part: Any) -> int:
    """Return the messages of a partition that are not read, as the broker's last answer has it: nothing is requested."""
    end = consumer.highwater(part)
    return 0 if end is None else max(0, end - await consumer.position(part))
