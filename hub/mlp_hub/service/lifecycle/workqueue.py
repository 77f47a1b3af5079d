"""Queue of objects to work on, of any kind: each is there once, and one worker at a time handles it.

A key names an object, not an action: a worker reads the action again, so that nothing is in memory
alone. The code that starts the queue adds all objects that are not at rest. The rules are those of
client-go's work queue, which dask-gateway also has in Python, as a part of its server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from mlp_hub.service.support.backoff import KeyedBackoff

Key = tuple[str, str]
"""Kind and uid of an object."""
Work = Callable[[str], Awaitable[bool]]
"""Work on the object of a uid. True: again at once; an error, which it has told to whom it concerns: again after a wait."""

WORKERS = 512
"""Safety: objects that are worked on at a time, of all kinds together: bounds threads and memory when all of a cluster changes
at once."""


class WorkQueue:
    """Keys in the order of their addition, and the workers that take them: keys are kept from `open` on, and taken from `start` on.

    A key that is added during its work is worked on once more. A failed key is added again after a wait
    that doubles with each failure in a row, from `first_s` to `most_s` seconds.
    """

    def __init__(self, first_s: float, most_s: float) -> None:
        self._work: dict[str, Work] = {}
        self._backoff: KeyedBackoff[Key] = KeyedBackoff(first_s, most_s)
        self._open = self._works = False
        self._waiting: dict[Key, None] = {}
        self._active: dict[Key, asyncio.Task[None]] = {}
        self._again: set[Key] = set()
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self.failures = 0
        """Turns of workers that failed, since this process began."""

    def serve(self, kind: str, work: Work) -> None:
        """Have objects of a kind worked on by `work`."""
        self._work[kind] = work

    def open(self) -> None:
        """Keep keys from now on. Nothing is worked on yet: workers need components that are still to be started."""
        self._open = True

    def start(self) -> None:
        """Take keys from now on, also those that were kept."""
        self._open = self._works = True
        self._fill()

    def close(self) -> list[asyncio.Task[None]]:
        """Take no more, forget all, and cancel the workers, which are returned."""
        self._open = self._works = False
        for timer in self._timers.values():
            timer.cancel()
        workers = list(self._active.values())
        for worker in workers:
            worker.cancel()
        for kept in (self._timers, self._active, self._waiting, self._again):
            kept.clear()
        return workers

    async def stop(self) -> None:
        """Close, and wait until no worker is at anything."""
        await asyncio.gather(*self.close(), return_exceptions=True)

    @property
    def depth(self) -> dict[str, int]:
        """Numbers of objects: those that a worker is at, that wait for one, and that wait for a time, as a retry."""
        return {"active": len(self._active), "waiting": len(self._waiting), "later": len(self._timers)}

    def is_at(self, key: Key) -> bool:
        """Whether a worker is at an object."""
        return key in self._active

    def add(self, key: Key) -> None:
        """Have an object worked on soon."""
        if key in self._active:
            self._again.add(key)
        elif self._open:
            self._waiting[key] = None
            self._fill()

    def add_after(self, key: Key, delay_s: float) -> None:
        """Have an object worked on after a delay; where that is planned to be earlier, it stays so."""
        if not self._open:
            return
        loop = asyncio.get_running_loop()
        planned = self._timers.get(key)
        if planned is not None:
            if planned.when() <= loop.time() + delay_s:
                return
            planned.cancel()
        self._timers[key] = loop.call_later(delay_s, self._ripe, key)

    def _ripe(self, key: Key) -> None:
        del self._timers[key]
        self.add(key)

    def _fill(self) -> None:
        while self._works and self._waiting and len(self._active) < WORKERS:
            key = next(iter(self._waiting))
            del self._waiting[key]
            task = asyncio.ensure_future(self._run(key))
            self._active[key] = task
            task.add_done_callback(partial(self._done, key))

    async def _run(self, key: Key) -> None:
        kind, uid = key
        work = self._work[kind]
        while await work(uid):
            self._again.discard(key)
            self._backoff.forget(key)

    def _done(self, key: Key, worker: asyncio.Task[None]) -> None:
        if self._active.get(key) is not worker:
            return  # the queue was closed
        del self._active[key]
        if (
            worker.cancelled() or worker.exception() is not None
        ):  # cancelled by what it waited for: none is lost
            self.failures += 1
            self.add_after(key, self._backoff.failed(key))
        else:
            self._backoff.forget(key)
        if key in self._again:
            self._again.discard(key)
            self._waiting[key] = None
        self._fill()
