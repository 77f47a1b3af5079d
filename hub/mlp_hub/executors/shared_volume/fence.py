"""Separation of one service's and the next one's work on the same attempts.

The process that decides has a number, its epoch, that is higher than all before. The highest one so
far is stored next to the attempts. An act under an older one is refused. A process with a newer
epoch waits until no act under an older one is in progress. Both hold even if processes are stopped,
killed or slow, since the kernel keeps the locks: the locks of an ended process are gone with it. A
process that hangs in the middle of an act, after another began, is killed for that.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from mlp_hub.domain.errors import Unavailable
from mlp_hub.durable import sync_directory
from mlp_hub.executors.base import Superseded
from mlp_hub.executors.shared_volume.lock_holders import end_holders
from mlp_language.message import msg

_DIGITS = 20
"""Given: digits of the epoch in its file, which is always as long."""
_LOOK_S = 0.01
"""Tuning: seconds between two tries for the lock: processor time, for the delay of a waiting process."""
_GRACE_S = 1.5
"""Safety: seconds that an act under an older epoch has to end by itself, before its process is ended."""
_BRIEF_S = 5.0
"""Safety: seconds to wait for a lock that is held for a few instructions only, unless its holder hangs."""


class Acting(Protocol):
    """A fence, as threads act under it."""

    def acting(self, epoch: int) -> AbstractContextManager[None]:
        """Act under this epoch. Raises `Superseded` where a newer one was seen."""
        ...


class Fence:
    """The highest epoch seen, and who acts. `directory` is that of the attempts; without one only this object knows.

    Acts may overlap with each other; nothing here needs an event loop, and `raise_to` may block.
    """

    def __init__(self, directory: str | Path | None = None) -> None:
        self._epoch, self._acts = (self._file(directory, name) for name in ("epoch", "acts"))
        self._looks, self._acting = _Shared(self._epoch), _Shared(self._acts)

    def _file(self, directory: str | Path | None, name: str) -> str:
        if directory is not None:
            return f"{directory}/{name}"
        fd = os.memfd_create(name)
        weakref.finalize(self, os.close, fd)
        return f"/proc/self/fd/{fd}"

    @property
    def seen(self) -> int:
        """The highest epoch that was ever seen here; 0 for none. Raises `Unavailable` where who writes it hangs."""
        with self._looks as fd:
            return _epoch_in(fd)

    @contextmanager
    def acting(self, epoch: int) -> Iterator[None]:
        """Act under this epoch. Raises `Superseded` where a newer one was seen; none can begin before the act is over."""
        with self._acting:
            if not self._looks.reads(_written(epoch)):
                seen = self.seen
                if epoch < seen:
                    raise Superseded
                if epoch > seen:
                    self._record(epoch)
            yield

    def raise_to(self, epoch: int, wait_s: float) -> None:
        """Refuse acts under older epochs from now on; return once none is in progress.

        Raises `Superseded` where a newer one was seen, and `Unavailable` where an act takes longer than
        `wait_s` seconds. In the second case no other act can begin, and this can be called again.
        """
        end = time.monotonic() + wait_s
        self._record(epoch, wait_s)
        if epoch < self.seen:
            raise Superseded
        with _locked(self._acts, fcntl.LOCK_EX, end - time.monotonic(), ending=True):
            return

    def _record(self, epoch: int, wait_s: float = _BRIEF_S) -> None:
        # who takes over has the lease already: one that hangs over this file is the one before, or one that tried as well
        with _locked(self._epoch, fcntl.LOCK_EX, wait_s, ending=True) as fd:
            if epoch > _epoch_in(fd):
                os.pwrite(fd, _written(epoch), 0)
                os.fsync(fd)
                with contextlib.suppress(OSError):  # of a file without a name there is no directory
                    sync_directory(Path(self._epoch).parent)


class Fenced:
    """Executor whose epochs are kept by its fence."""

    _fence: Fence

    async def epoch(self) -> int:
        """Return the highest epoch that was ever seen beside the attempts."""
        return await asyncio.to_thread(lambda: self._fence.seen)

    async def fence(self, epoch: int, wait_s: float) -> None:
        """Refuse older epochs from now on; return once all work that was begun under one is over."""
        await asyncio.to_thread(self._fence.raise_to, epoch, wait_s)


class _Shared:
    """A lock on a file that all acts of this process hold together: one lock and one descriptor, however many they are.

    Every job is started and forgotten under it, and opening a file costs more than the lock.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._fd = -1
        self._opened: list[int] = []
        self._holders = 0
        self._mutex = threading.Lock()
        weakref.finalize(self, _close, self._opened)

    def __enter__(self) -> int:
        with self._mutex:
            if not self._holders:
                self._open()
                _lock(self._fd, fcntl.LOCK_SH, _BRIEF_S)
            self._holders += 1
            return self._fd

    def __exit__(self, *error: object) -> None:
        with self._mutex:
            self._holders -= 1
            if not self._holders:
                fcntl.flock(self._fd, fcntl.LOCK_UN)

    def reads(self, content: bytes) -> bool:
        """Whether the file holds just this, looked at without a lock.

        What is read while another is written may be a mix of both, but it is the former only where the latter was not
        written yet: True is as sure as under the lock. False says nothing.
        """
        with self._mutex:
            self._open()
            return os.pread(self._fd, len(content), 0) == content

    def _open(self) -> None:
        """Open the file, and open it again where it was removed.

        A lock on a file that nobody else can find excludes nobody.
        """
        if self._fd >= 0 and os.fstat(self._fd).st_nlink:
            return
        _close(self._opened)
        self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._opened.append(self._fd)


def _epoch_in(fd: int) -> int:
    """Return the epoch that a file holds; 0 where it cannot be read, as after a power cut.

    The process that acted at that time does not act any more.
    """
    try:
        return int(os.pread(fd, _DIGITS, 0) or 0)
    except ValueError:
        return 0


def _written(epoch: int) -> bytes:
    return b"%0*d" % (_DIGITS, epoch)


def _close(descriptors: list[int]) -> None:
    while descriptors:
        os.close(descriptors.pop())


@contextmanager
def _locked(path: str, how: int, wait_s: float, *, ending: bool) -> Iterator[int]:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _lock(fd, how, wait_s, ending=ending)
        yield fd
    finally:
        os.close(fd)  # and with it the lock


def _lock(fd: int, how: int, wait_s: float, *, ending: bool = False) -> None:
    """Take a lock within `wait_s` seconds, or raise `Unavailable`. `ending`: of this machine's processes that keep it."""
    began = time.monotonic()
    while True:
        try:
            fcntl.flock(fd, how | fcntl.LOCK_NB)
        except BlockingIOError:
            waited = time.monotonic() - began
        else:
            return
        if waited >= wait_s:
            raise Unavailable(
                msg(
                    "another part of the hub is still starting, ending or removing something, without progress; end its process if it hangs"
                )
            )
        if ending and waited >= _GRACE_S:
            end_holders(fd)
        time.sleep(_LOOK_S)
