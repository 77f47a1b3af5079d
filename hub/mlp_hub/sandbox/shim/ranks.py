"""The shim's knowledge of the ranks, and the socket by which the inside reports on them."""

from __future__ import annotations

import array
import contextlib
import fcntl
import json
import os
import select
import socket
import stat
import time
from collections.abc import Callable
from typing import Any

from mlp_hub.sandbox.shim import files
from mlp_hub.sandbox.shim.logs import writer

_MESSAGE = 4 << 10  # bytes; what is longer is cut off and thereby no message
_TURN = 16  # messages and new senders that are taken at once
_RATE = 100.0  # of both in a second, in the long run


class RankProcess:
    """One rank; with `asked` the platform asked it to end, so its exit status is not a failure."""

    def __init__(self, number: int, role: str) -> None:
        self.number = number
        self.role = role
        self.state = "pending"
        self.pid: int | None = None
        self.start: int | None = None  # of the process with that number: numbers are used again
        self.code: int | None = None
        self.signal: int | None = None
        self.asked = False
        self.over_at: float | None = (
            None  # by the monotonic clock: its program came to its end, or its process ended
        )
        self.told_over = False  # its program came to its end, by its own account
        self.raised = False  # and that by an exception or an exit status, for which MPI_Finalize aborts all
        self.streams: tuple[writer.Stream, ...] = ()

    def end(self, code: int | None, signum: int | None, *, excused: bool) -> bool:
        """Record its end; return whether that is a failure."""
        self.code, self.signal = code, signum
        self.over_at = self.over_at or time.monotonic()
        failed = code != 0 and not excused
        self.state = "failed" if failed else "finished"
        return failed

    @property
    def living(self) -> bool:
        """Whether it may still do something."""
        return self.state in ("pending", "running")

    def to_json(self) -> dict[str, Any]:
        """Return it for state.json and exit.json."""
        return {
            "rank": self.number,
            "role": self.role,
            "state": self.state,
            "pid": self.pid,
            "start": self.start,
            "code": self.code,
            "signal": self.signal,
        }


class Reports:
    """Control socket; the tenant sends the messages, so they are not trusted beyond the tenant's own job.

    The number of messages taken at once and in a second is limited, over all senders in turn. `fileno`
    is readable when there is a message to take. `take` returns the seconds for which to leave it alone.
    """

    def __init__(
        self, directory: str, handle: Callable[[str, int, dict[str, Any], list[int]], None], ranks: int
    ) -> None:
        self._handle = handle
        self._room = 4 * ranks + 16
        self._last = ranks - 1
        self._most = 8 * ranks + 64  # far more than honest ranks have to say
        self._bucket = writer.Bucket(_RATE, self._most)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        fd = os.open(directory, os.O_PATH | os.O_CLOEXEC)
        try:  # by descriptor, since a socket's path has but 107 bytes
            self.listener.bind(f"/proc/self/fd/{fd}/control.sock")
        finally:
            os.close(fd)
        os.chmod(f"{directory}/control.sock", 0o666)
        self.listener.listen(64)
        self.listener.setblocking(False)
        self.senders: dict[int, tuple[socket.socket, int, set[int]]] = {}
        self._epoll = select.epoll()
        self._epoll.register(self.listener, select.EPOLLIN)

    def say(self, word: bytes) -> None:
        """Send a word to all that have started ranks; those that do not listen miss it."""
        for sender, _, _ in self.senders.values():
            with contextlib.suppress(OSError):
                sender.send(word, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)

    def fileno(self) -> int:
        """Return what to wait for."""
        return self._epoll.fileno()

    def take(self) -> float:
        """Take a few messages and new senders; return the seconds for which to take no more after that."""
        self._round()
        return self._bucket.wait()

    def finish(self) -> None:
        """Take what has come by now, within bounds, and close: all senders are dead, or should not be there."""
        until = self._bucket.taken + self._most
        while self._bucket.taken < until and self._round():
            pass
        self.close()

    def _round(self) -> int:
        ready = self._epoll.poll(0, _TURN)
        self._bucket.take(len(ready))
        for fd, _ in ready:  # one of each, and those behind are first in the next round
            if fd == self.listener.fileno():
                self.accept()
            elif fd in self.senders:
                self.read(fd)
        return len(ready)

    def accept(self) -> int | None:
        """Take a new sender; return its descriptor."""
        try:
            sender, _ = self.listener.accept()
        except OSError:
            return None
        if len(self.senders) >= self._room:
            sender.close()
            return None
        sender.setblocking(False)
        pid = int.from_bytes(sender.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)[:4], "little")
        self.senders[sender.fileno()] = (sender, pid, set())
        self._epoll.register(sender, select.EPOLLIN)
        return sender.fileno()

    def read(self, fd: int) -> bool:
        """Take a sender's next message; `False` when it hung up (its descriptor is closed then)."""
        sender, pid, started = self.senders[fd]
        try:
            data, ancillary, _, _ = sender.recvmsg(_MESSAGE, socket.CMSG_SPACE(8 * 4))
        except BlockingIOError:
            return True
        except OSError:
            data, ancillary = b"", []
        fds = array.array("i")
        for level, kind, content in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds.frombytes(content[: len(content) - len(content) % fds.itemsize])
        if data:
            if self._message(pid, started, data, list(fds)):
                with contextlib.suppress(OSError):
                    sender.send(b"+")
            return True
        for one in fds:
            os.close(one)
        del self.senders[fd]
        sender.close()
        for rank in started:
            self._handle("gone", pid, {"rank": rank}, [])
        return False

    def _message(self, pid: int, started: set[int], data: bytes, fds: list[int]) -> bool:
        """Do what a message says; return whether its sender waits for an answer."""
        message: Any = None
        with contextlib.suppress(ValueError, RecursionError):
            message = json.loads(data)
        # no other number is even remembered, or a liar could fill our memory
        good = isinstance(message, dict) and small_int(message.get("rank"), 0, self._last) is not None
        kind = message.get("t") if good else None
        if kind == "start" and len(fds) == 2 and all(map(_is_pipe, fds)):
            ours = _reopened(fds)
            if ours is not None:
                started.add(message["rank"])
                self._handle("start", pid, message, ours)
                return True
            fds = []
        for fd in fds:
            os.close(fd)
        if kind == "exit":
            started.discard(message["rank"])
            self._handle("exit", pid, message, [])
        elif kind in ("fail", "over"):
            self._handle(kind, pid, message, [])
        return kind == "start"

    def close(self) -> None:
        """Close all of it."""
        self._epoll.close()
        self.listener.close()
        for sender, _, _ in self.senders.values():
            sender.close()
        self.senders.clear()


def _is_pipe(fd: int) -> bool:
    if not stat.S_ISFIFO(os.fstat(fd).st_mode):
        return False
    return fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY


def _reopened(pipes: list[int]) -> list[int] | None:
    """Open pipes again, non-blocking, and close the ones that were sent; `None` where that fails.

    Whether a read blocks is a property of the open file, and the tenant can still hold the file that it
    sent. The tenant could remove the flag again and block the shim for ever.
    """
    ours: list[int] = []
    try:
        for fd in pipes:
            ours += [os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)]
    except OSError:
        for fd in ours:
            os.close(fd)
        return None
    finally:
        for fd in pipes:
            os.close(fd)
    return ours


def host_pid(starter: int, inner: Any, above: int | None) -> int | None:
    """Find the host's number of the starter's child that has this number inside.

    Only what is below `above`, the sandbox's first process, is taken: a starter that ended long ago, whose number
    another process of the machine got meanwhile, must not make us signal that one's children.
    """
    for child in files.children(starter):
        if files.inner_pid(child) == inner and (above is None or files.is_below(child, above)):
            return child
    return None


def small_int(value: Any, low: int, high: int) -> int | None:
    """Return the value if it is a whole number in this range."""
    return value if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high else None
