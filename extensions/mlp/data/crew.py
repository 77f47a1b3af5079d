"""Transfer of several files at a time: the first that fails stops the others, and so does Ctrl+C."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from mlp.data.progress import TransferProgress
from mlp.data.remote import Remote

T = TypeVar("T")
LOOK_S = 0.25


@dataclass(frozen=True, slots=True)
class Crew:
    """How many files are on their way at a time, what counts them, and what stops them."""

    workers: int
    told: TransferProgress
    stop: threading.Event

    def each(
        self,
        work: Callable[[T], None],
        of: Iterable[T],
        remote: Remote,
        meanwhile: Callable[[], object] = lambda: None,
    ) -> None:
        """Do the work of each in threads; `meanwhile` is called now and then in this one. Raises what the first raised."""
        left, lock = iter(of), threading.Lock()
        wrong: list[BaseException] = []

        def run() -> None:
            try:
                while not self.stop.is_set() and (one := _next(left, lock)):
                    work(one[0])
            except BaseException as error:  # noqa: BLE001 - it is raised by who waits
                wrong.append(error)
                self._end(remote)

        threads = [threading.Thread(target=run, name="mlp-data", daemon=True) for _ in range(self.workers)]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                while thread.is_alive():
                    thread.join(LOOK_S)
                    meanwhile()
        except BaseException:
            self._end(remote)
            for thread in threads:
                thread.join()
            raise
        if wrong:
            raise wrong[0]
        remote.go_on()

    def _end(self, remote: Remote) -> None:
        self.stop.set()
        remote.close()


def lots(
    of: Iterable[T], weigh: Callable[[T], tuple[object, tuple[int, ...]] | None], most: tuple[int, ...]
) -> Iterator[list[T]]:
    """Yield things in lists that go in one request each, in order.

    `weigh` returns what all of a list have in common, and the weights of one; the sums of these are at most
    `most`. Where it returns None the thing goes alone.
    """
    lot: list[T] = []
    common: object = None
    sums: tuple[int, ...] = ()
    for one in of:
        weighed = weigh(one)
        if weighed is None:
            yield [one]
            continue
        own, weights = weighed
        more = tuple(map(sum, zip(sums, weights, strict=True))) if lot else weights
        if lot and (own != common or any(a > b for a, b in zip(more, most, strict=True))):
            yield lot
            lot, more = [], weights
        lot.append(one)
        common, sums = own, more
    if lot:
        yield lot


def _next(left: Iterator[T], lock: threading.Lock) -> tuple[T] | None:
    with lock:
        for one in left:
            return (one,)
    return None
