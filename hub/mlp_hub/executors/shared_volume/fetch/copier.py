"""One copy of a source: list, compare, ask for room, fetch what is missing, remove what is gone there."""

from __future__ import annotations

import errno
import hashlib
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any

from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.executors.shared_volume.fetch.landing import Landing
from mlp_hub.executors.shared_volume.fetch.listing import Listing, SourceObject, listed
from mlp_hub.executors.shared_volume.fetch.store import ChangedError, CutError, ObjectStore
from mlp_hub.executors.shared_volume.trees.sizes import entries_beyond
from mlp_hub.executors.workspace import Extent
from mlp_language.message import msg

TOGETHER = 4
"""Tuning: objects on their way at a time: more hide the waiting for the network, and are in each other's way."""
TRIES = 4
"""Tuning: how often an object is fetched that is cut or changes each time, without anything new."""
PROGRESS = 1 << 18
"""Safety: bytes more of an object that have come when it is cut again: with less nothing has come."""
STILL_S, STILL_BYTES = 900.0, 1 << 21
"""Safety: seconds in which this number of bytes has to come, or an object has to be whole.

The list before it has its own bounds.
"""
_MD5 = re.compile(r"[0-9a-f]{32}")


@dataclass
class CopyProgress:
    """Progress of a fetch, counted by several threads."""

    total: int = 0
    done: int = 0
    placed: int = 0  # objects that are whole
    asks: bool = True  # whether an endpoint is waited for
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, count: int) -> None:
        """Count bytes that came; less than nothing where some have to come again."""
        with self.lock:
            self.done += count

    @property
    def percent(self) -> int:
        """How far it is; never 100, which is said when all is in place."""
        return min(99, 100 * self.done // self.total) if self.total else 0


class Standstill:
    """Sees when an endpoint that is waited for brings nothing on, whatever it says meanwhile."""

    def __init__(self, progress: CopyProgress, clock: Callable[[], float]) -> None:
        self._progress, self._clock = progress, clock
        self._begin()

    def _begin(self) -> None:
        self._since, self._done, self._placed = self._clock(), self._progress.done, self._progress.placed

    def is_over(self) -> bool:
        """Tell whether it has brought too little for too long."""
        now = self._progress
        if not now.asks or now.placed > self._placed or now.done >= self._done + STILL_BYTES:
            self._begin()
        return self._clock() - self._since > STILL_S


class SourceCopy:
    """One copy."""

    def __init__(self, store: ObjectStore, landing: Landing, progress: CopyProgress) -> None:
        self._store, self._landing, self._progress = store, landing, progress
        self._ended = threading.Event()

    def run(self, prefix: str, admit: Callable[[int], None]) -> Extent:
        """Have the dataset be what the source is. Raises `Refused`, and `OSError` of the disk."""
        found = listed(prefix, self._store.objects(prefix))
        if not found.objects:
            raise _nothing(prefix)
        self._bring_all(found, admit)
        self._landing.forget({one.parts for one in found.objects})
        self._landing.flush()
        return Extent(len(found.objects), found.size)

    def check_source(self, prefix: str) -> Extent:
        """See whether there is something that can be read. Raises `Refused`."""
        if next(self._store.objects(prefix), None) is None:
            raise _nothing(prefix)
        return Extent(0, 0)

    def bring(self, prefix: str, wanted: Sequence[str], admit: Callable[[int], None]) -> Extent:
        """Have what the source has at these paths be there, beside what is; raises as `run` does. `prefix` ends with a `/`."""
        found = listed(prefix, self._at(prefix, wanted))
        there = ["/".join(one.parts) for one in found.objects]
        for path in wanted:
            if not any(is_within(one, path) for one in there):
                raise _nothing(prefix + path)
        self._bring_all(found, admit)
        self._landing.flush()
        return Extent(len(found.objects), found.size)

    def _at(self, prefix: str, wanted: Sequence[str]) -> Iterator[tuple[str, int, str]]:
        # of two of which one lies in the other the outer one is all
        for path in [one for one in wanted if not any(one != two and is_within(one, two) for two in wanted)]:
            for key, size, tag in self._store.objects(prefix + path):
                if is_within(key[len(prefix) :], path):
                    yield key, size, tag

    def _bring_all(self, found: Listing, admit: Callable[[int], None]) -> None:
        missing = [one for one in found.objects if not self._landing.has(one)]
        self._landing.keep_only(missing)
        self._progress.total = sum(one.size for one in missing)
        self._progress.asks = False
        admit(self._progress.total + entries_beyond(len(found.objects) + len(found.directories)))
        for parts in found.directories:
            self._landing.make(parts)
        self._progress.asks = True
        self._fetch_all(missing)
        self._progress.asks = False

    def _fetch_all(self, missing: list[SourceObject]) -> None:
        left = iter(missing)
        lock = threading.Lock()

        def run() -> None:
            while not self._ended.is_set():
                with lock:
                    one = next(left, None)
                if one is None:
                    return
                self._fetch(one)

        with ThreadPoolExecutor(TOGETHER) as crew:
            runs = [crew.submit(run) for _ in range(TOGETHER)]
            wait(runs, return_when=FIRST_EXCEPTION)
            self._ended.set()
            for one in runs:
                one.result()

    def _fetch(self, one: SourceObject) -> None:
        """Fetch one object, from where it was cut, as what it is by then."""
        admitted, tries, most = one.size, 0, 0
        while True:
            try:
                self._once(one)
            except CutError as cut:
                # `most` moves on with what counts alone: by drops of it nobody gets on for ever
                tries, most = (0, cut.have) if cut.have >= most + PROGRESS else (tries + 1, max(most, 0))
            except ChangedError:
                tries += 1
                now = self._store.now(one)
                if now is None:
                    self._progress.add(admitted)
                    return  # it is gone, as if it had been before
                if now.size > admitted:
                    tries = TRIES  # for which no room was kept
                one = now
            else:
                return
            if self._ended.is_set():
                return
            if tries >= TRIES:
                raise Refused(
                    Reason.CONFLICT,
                    msg(
                        "{key} is cut or changes at each fetch; sync when it does not change; received files are kept",
                        key=one.key[:200],
                    ),
                )

    def _once(self, one: SourceObject) -> None:
        with self._landing.part(one) as file:
            arrival = _Arrival(file, self._progress)
            try:
                plain = self._bring(one, arrival)
                # of what is encrypted otherwise, or came in parts, the tag is no checksum
                if plain and _MD5.fullmatch(one.tag) and arrival.md5.hexdigest() != one.tag:
                    arrival.drop()
                    raise CutError  # noqa: TRY301 - as what was cut
                self._landing.place(one, file.fileno(), arrival.sha.digest())
                self._progress.placed += 1
            except BaseException as error:
                if isinstance(error, CutError):
                    error.have = arrival.have
                if isinstance(error, ChangedError):
                    arrival.drop()
                self._progress.add(-arrival.have)
                raise

    def _bring(self, one: SourceObject, arrival: _Arrival) -> bool:
        """Fetch the missing part of an object; return whether its tag can be the MD5 of the received data."""
        arrival.take_up()
        if arrival.have > one.size:
            arrival.drop()
        if arrival.have == one.size:
            return True
        pieces = self._store.read(one, arrival.have)
        plain = next(pieces) in (b"", b"AES256")
        for data in pieces:
            if self._ended.is_set():
                raise CutError
            arrival.write(data)
        return plain


def is_within(path: str, top: str) -> bool:
    """Tell whether a path is another one, or lies below it; all do below the empty one."""
    return not top or path == top or path.startswith(f"{top}/")


def _nothing(prefix: str) -> Refused:
    return Refused(Reason.NOT_FOUND, msg("the source has nothing below {prefix}", prefix=prefix[:200] or "/"))


class _Arrival:
    """Received part of one object, in an open file."""

    def __init__(self, file: Any, progress: CopyProgress) -> None:
        self._file, self._progress = file, progress
        self._begin()

    def _begin(self) -> None:
        self.sha, self.md5, self.have = hashlib.sha256(), hashlib.md5(usedforsecurity=False), 0

    def take_up(self) -> None:
        """Include the data that came before."""
        while data := self._file.read(1 << 20):
            self._count(data)

    def write(self, data: bytes) -> None:
        """Write on."""
        left = memoryview(data)
        while left:
            count = self._file.write(left)
            if not count:
                raise OSError(errno.ENOSPC, "the disk is full")
            left = left[count:]
        self._count(data)

    def drop(self) -> None:
        """Have nothing of it."""
        self._file.truncate(0)
        self._file.seek(0)
        self._progress.add(-self.have)
        self._begin()

    def _count(self, data: bytes) -> None:
        self.sha.update(data)
        self.md5.update(data)
        self.have += len(data)
        self._progress.add(len(data))
