"""Check whether a component answers: the supervisor asks regularly, and gives up after long silence.

Any answer counts, also a refusal: the check only needs a running event loop. Silence counts only
while the supervisor itself was awake: the time by which it was late does not count, and after a suspend it asks once
more. A silent and busy component can be overloaded, and gets more time than an idle one.
"""

from __future__ import annotations

import errno
from _socket import AF_UNIX, SOCK_CLOEXEC, SOCK_NONBLOCK, SOCK_STREAM, socket
from collections.abc import Callable

ASK_EVERY = 5.0  # seconds from an answer to the next question
TRY_EVERY = 1.0  # seconds between tries to connect
ANSWER_S = 10.0  # after so long a question is a miss, and asked again over another connection
MISSES_IDLE = 3
MISSES_BUSY = 12
BUSY = 0.05  # of one core
START_IDLE = 12  # before the first answer of a component that was just started
START_BUSY = 30


class Liveness:
    """Liveness of one process since it was started or adopted.

    `where` is the UNIX socket and the path to ask for. `heard`: the process has answered before, as an
    adopted one has. Times are seconds of the supervisor's clock.
    """

    def __init__(self, where: tuple[str, str], now: float, *, heard: bool) -> None:
        self._socket_path, path = where
        self._request = f"GET {path} HTTP/1.0\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
        self._heard = heard
        self._looked = False
        self._link: socket | None = None
        self._asked = self._try_at = now
        self._misses = 0
        self._silent_since = now
        self._cpu_then: float | None = None

    @property
    def fd(self) -> int | None:
        """Descriptor that becomes readable when the answer comes."""
        return None if self._link is None else self._link.fileno()

    def due(self) -> float:
        """Return when to look again at the latest."""
        return self._asked + ANSWER_S if self._link is not None else self._try_at

    def check_liveness(self, now: float, cpu_s: Callable[[], float | None], *, late: float) -> str | None:
        """Ask, listen and count; return a message about a process that does not answer any more.

        `late`: seconds by which this look comes later than intended. Silence in them can be the machine's.
        """
        if self._link is not None:
            self._listen(now)
        if not self._looked:
            self._begin(now)
            self._looked = True
        elif late > ANSWER_S:
            self._ask_again(now)
        elif (
            self._asked <= now
        ):  # a supervisor that is late at each look would never count a miss if it asked again
            self._asked += late
            self._silent_since += late
        waits = self._asked <= now and (self._link is not None or now >= self._try_at)
        if not waits:
            return None
        if self._link is None:
            self._ask(now)
        if now - self._asked < ANSWER_S:
            return None
        return self._miss(now, cpu_s)

    def close(self) -> None:
        """Forget the question that is open."""
        if self._link is not None:
            self._link.close()
            self._link = None

    def _begin(self, now: float) -> None:
        self.close()
        self._asked = self._try_at = now
        self._misses = 0
        self._cpu_then = None

    def _ask_again(self, now: float) -> None:
        """Forget the question that is open, but not those that were missed while the supervisor was awake."""
        self.close()
        self._asked = self._try_at = now
        self._silent_since = now - self._misses * ANSWER_S

    def _listen(self, now: float) -> None:
        assert self._link is not None  # noqa: S101 - asked by look
        try:
            answer = self._link.recv(64)
        except BlockingIOError:
            return
        except OSError:
            answer = b""
        self.close()
        if answer:
            self._heard = True
            self._begin(now + ASK_EVERY)
        else:  # it hung up without a word: asked again, in the same question's time
            self._try_at = now + TRY_EVERY

    def _ask(self, now: float) -> None:
        try:
            link = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC)
        except OSError:  # no descriptor is left here: says nothing about the component
            self._begin(now + ASK_EVERY)
            return
        try:
            link.connect(self._socket_path)
            link.send(self._request)
        except OSError as error:
            link.close()
            self._try_at = now + TRY_EVERY
            if error.errno == errno.EACCES:  # not ours to ask
                self._begin(now + ASK_EVERY)
            return
        self._link = link

    def _miss(self, now: float, cpu_s: Callable[[], float | None]) -> str | None:
        if not self._misses:
            self._silent_since = self._asked
            self._cpu_then = cpu_s()
        self._misses += 1
        self.close()
        self._asked = self._try_at = now
        silent = now - self._silent_since
        used = (cpu_s() or 0.0) - (self._cpu_then or 0.0)
        busy = used > BUSY * (silent - ANSWER_S)
        most = (MISSES_BUSY if busy else MISSES_IDLE) if self._heard else (START_BUSY if busy else START_IDLE)
        if self._misses < most:
            return None
        if not self._heard:
            return f"has not answered in the {silent:.0f} s since its start"
        return f"has not answered for {silent:.0f} s{', though busy' if busy else ''}"
