"""Children of a pod's first process that are not ranks: sshd, mpirun, a launcher."""

from __future__ import annotations

import codecs
import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType

_MOST = 64 << 10
"""Safety: characters of output that are kept, for the log and for a failure's sentence."""
_DRAIN_S = 5.0
"""Safety: seconds for the rest of the output: a remaining process can hold it open for ever."""


def waker(asked: Callable[[int, FrameType | None], None]) -> int:
    """Return what can be read whenever a child has ended or this process is `asked` to end."""
    read, write = os.pipe()
    for fd in (read, write):
        os.set_blocking(fd, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, asked)
    return read


def ended(wake: int) -> Iterator[tuple[int, int]]:
    """Yield the children that have ended, as numbers and as of `waitstatus_to_exitcode`.

    A pod's first process inherits whatever others leave behind.
    """
    with contextlib.suppress(BlockingIOError):
        while os.read(wake, 512):
            pass
    with contextlib.suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            yield found[0], os.waitstatus_to_exitcode(found[1])


class Children:
    """Children that run, and what they said last; `on_ask` is called once the pod is told to end."""

    def __init__(self, on_ask: Callable[[], None]) -> None:
        self._asked = False
        self.tail = ""
        self._on_ask = on_ask
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._pipes: dict[int, tuple[int, int]] = {}  # whose output it is, and where it goes on
        self._texts: dict[int, codecs.IncrementalDecoder] = {}  # a read may end within a character
        self._poll = select.poll()
        self._wake = waker(self._ask)
        self._poll.register(self._wake, select.POLLIN)

    def asked(self) -> bool:
        """Whether the pod was told to end."""
        return self._asked

    def _ask(self, _number: int, _frame: FrameType | None) -> None:
        if not self._asked:
            self._asked = True
            self._on_ask()

    def start(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, echo: bool = False
    ) -> subprocess.Popen[bytes]:
        """Start one; its output is passed on, and the end of it kept."""
        pipe = subprocess.PIPE if echo else None
        process = subprocess.Popen(
            argv, env=None if env is None else dict(env), stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe
        )
        self._processes[process.pid] = process
        for end, to in ((process.stdout, 1), (process.stderr, 2)):
            if end is not None:
                os.set_blocking(end.fileno(), False)
                self._pipes[end.fileno()] = process.pid, to
                self._texts[end.fileno()] = codecs.getincrementaldecoder("utf-8")("replace")
                self._poll.register(end.fileno(), select.POLLIN)
        return process

    def wait(self, seconds: float | None) -> None:
        """Handle events for at most `seconds` seconds; return once one has happened."""
        for fd, _ in self._poll.poll(None if seconds is None else seconds * 1000):
            if fd == self._wake:
                for pid, status in ended(fd):
                    if pid in self._processes:
                        self._processes[pid].returncode = status
            elif fd in self._pipes:
                self._read(fd)

    def drain(self, process: subprocess.Popen[bytes]) -> None:
        """Read the rest of its output."""
        until = time.monotonic() + _DRAIN_S
        while time.monotonic() < until and any(pid == process.pid for pid, _ in self._pipes.values()):
            self.wait(0.1)

    def _read(self, fd: int) -> None:
        data = b""
        with contextlib.suppress(BlockingIOError):
            data = os.read(fd, _MOST)
            if not data:
                self._poll.unregister(fd)
                del self._pipes[fd]
        if data:
            self.tail = (self.tail + self._texts[fd].decode(data))[-_MOST:]
            with contextlib.suppress(OSError):
                os.write(self._pipes[fd][1], data)
