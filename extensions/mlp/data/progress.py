"""How far a transfer is: counted by its threads, shown on a terminal or in a notebook, and nowhere else."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator

from mlp.language import say
from mlp.rendering.format import file_size, span
from mlp.rendering.tables import terminal_width
from mlp.rendering.words import shell

Shown = bool | Callable[[int, int], object]
EVERY_S = 0.2
BAR = 24


class TransferProgress:
    """Bytes and files done of those there are; `changed` is called with each step, by whatever thread takes it."""

    def __init__(self, changed: Callable[[TransferProgress], object] = lambda _: None) -> None:
        self._lock = threading.Lock()
        self._changed = changed
        self.done = self.total = self.files = self.all_files = 0

    def expect(self, total: int, files: int) -> None:
        """Say how much there is."""
        with self._lock:
            self.total, self.all_files = total, files
        self._changed(self)

    def add(self, count: int) -> None:
        """Count bytes that went; less than nothing where some have to go again."""
        with self._lock:
            self.done += count
        self._changed(self)

    def add_file(self) -> None:
        """Count a file that is whole."""
        with self._lock:
            self.files += 1
        self._changed(self)

    @property
    def percent(self) -> int:
        """How far it is; 100 only when all is there."""
        if self.files == self.all_files:
            return 100
        return min(99, 100 * self.done // self.total) if self.total else 0


@contextlib.contextmanager
def shown(how: Shown) -> Iterator[TransferProgress]:
    """Give a progress that is shown as is wanted, until this ends."""
    if callable(how):
        yield TransferProgress(lambda now: how(now.done, now.total))
        return
    out = sys.stderr if sys.stderr is not None and sys.stderr.isatty() else None
    if how and shell() is not None:
        out = sys.stdout
    if not how or out is None:
        yield TransferProgress()
        return
    line = _Line(lambda text: (out.write(text), out.flush()))
    try:
        yield TransferProgress(line.draw)
    finally:
        line.clear()


class _Line:
    """One line that is written again and again."""

    def __init__(self, write: Callable[[str], object], clock: Callable[[], float] = time.monotonic) -> None:
        self._write, self._clock = write, clock
        self._lock = threading.Lock()
        self._begun = clock()
        self._last = float("-inf")
        self._length = 0

    def draw(self, now: TransferProgress) -> None:
        """Write how far it is, now and then."""
        at = self._clock()
        with self._lock:
            if at - self._last < EVERY_S:
                return
            self._last = at
            text = self._text(now, at - self._begun)[: max((terminal_width() or 80) - 1, 20)]
            self._write("\r" + text.ljust(self._length))
            self._length = len(text)

    def clear(self) -> None:
        """Leave an empty line."""
        if self._length:
            self._write("\r" + " " * self._length + "\r")

    def _text(self, now: TransferProgress, seconds: float) -> str:
        full = BAR * now.percent // 100
        speed = now.done / seconds if seconds > 1 else 0.0
        parts = [
            f"[{'#' * full}{'.' * (BAR - full)}] {now.percent:3d} %",
            say("{done} of {total}", done=file_size(now.done), total=file_size(now.total)),
            say("{done} of {total} files", done=now.files, total=now.all_files),
        ]
        if speed > 1:
            parts += [say("{size}/s", size=file_size(speed)), span(max(now.total - now.done, 0) / speed)]
        return "  ".join(parts)
