"""Messages inside the service: subscribers of a topic get the messages published on it.

Queues are bounded. A slow subscriber loses its queue and gets `RESYNC` instead: it reads the
present state from the store and continues. Publishing never waits.
"""

from __future__ import annotations

import asyncio
from collections import deque
from types import TracebackType
from typing import Any, Final, Self

Topic = tuple[str, ...]
MOST_QUEUED = 1000
"""Safety: messages that wait for one subscriber before it must read again.

This bounds the memory held by watchers that do not read.
"""


class _Resync:
    """The one message of a subscriber that was too slow."""

    def __repr__(self) -> str:
        return "RESYNC"


RESYNC: Final = _Resync()
QUEUE_TOPIC: Final[Topic] = ("queue",)


def job_topic(uid: str) -> Topic:
    """Return the topic of all that concerns one job."""
    return ("job", uid)


class Subscription:
    """An asynchronous iterator of a topic's messages from now on; also a context manager that ends it."""

    def __init__(self, bus: Bus, topic: Topic, limit: int) -> None:
        self._bus = bus
        self._topic = topic
        self._limit = limit
        self._queue: deque[Any] = deque()
        self._ready = asyncio.Event()
        self._closed = False

    def queue_message(self, message: Any) -> None:
        """Queue a message; when the queue is full, everything in it becomes one `RESYNC`."""
        if len(self._queue) >= self._limit:
            self._queue.clear()
            self._queue.append(RESYNC)
        else:
            self._queue.append(message)
        self._ready.set()

    def holds(self, message: object) -> bool:
        """Tell whether this very message is queued already."""
        return any(m is message for m in self._queue)

    def close(self) -> None:
        """Get no more messages; the iteration ends."""
        self._closed = True
        self._bus.drop(self._topic, self)
        self._ready.set()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        while not self._queue:
            if self._closed:
                raise StopAsyncIteration
            self._ready.clear()
            await self._ready.wait()
        return self._queue.popleft()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Bus:
    """Topics and who subscribes to them; for use on one event loop."""

    def __init__(self) -> None:
        self._topics: dict[Topic, set[Subscription]] = {}

    def subscribe(self, topic: Topic, limit: int = MOST_QUEUED) -> Subscription:
        """Return all messages of the topic from now on, as an asynchronous iterator; close it when done."""
        subscription = Subscription(self, topic, limit)
        self._topics.setdefault(topic, set()).add(subscription)
        return subscription

    def publish(self, topic: Topic, message: Any) -> None:
        """Give the message to all who subscribe to the topic; never waits."""
        for subscription in self._topics.get(topic, ()):
            subscription.queue_message(message)

    def watched(self, topic: Topic) -> bool:
        """Tell whether anybody subscribes, so that nothing need be made for nobody."""
        return topic in self._topics

    def watched_jobs(self) -> list[str]:
        """Return the uids of the jobs that anybody watches."""
        return [topic[1] for topic in self._topics if topic[0] == "job"]

    def drop(self, topic: Topic, subscription: Subscription) -> None:
        """Forget a subscription; called by its `close`."""
        subscribers = self._topics.get(topic)
        if subscribers is not None:
            subscribers.discard(subscription)
            if not subscribers:
                del self._topics[topic]

    def close(self) -> None:
        """End all subscriptions."""
        for subscribers in list(self._topics.values()):
            for subscription in list(subscribers):
                subscription.close()
