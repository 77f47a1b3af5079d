"""`mlp.report()`: a point is in a local file before the call returns, and is delivered from there.

The call costs some microseconds and never waits for the network: it appends one line to this
process's spool file (`<metrics directory>/<rank>.<restart>.<random>.jsonl`). A thread reads the
same file and delivers in order. The service remembers the number of the last point of each source,
so a repeated delivery stores nothing twice. The platform takes points that are not delivered when
the process dies from the spool. The head of the file has the number of points that could not be
written, so that the platform can report them whatever happens to the process and to its output.

Nothing here raises into the training: neither for its values, nor for the disk, nor for a wrong
call.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import threading
import time
from collections.abc import Mapping
from pathlib import Path

from mlp.language import say
from mlp.reporting.delivery import HEAD, HEAD_BYTES, Delivery
from mlp.reporting.measured import Complaints, fitting
from mlp.standard_error import write as _tell

DEFAULT_DIRECTORY = "/workspace/metrics"
EXIT_SECONDS = 2.0
RANK_VARIABLES = ("MLP_RANK", "PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "RANK", "SLURM_PROCID")
LATEST = 2.0**33
"""Time of a point that is believed at most, in seconds since 1970."""

_encode = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


def rank(env: Mapping[str, str] = os.environ) -> int:
    """Return this process's rank within its job, 0 outside of one."""
    for name in RANK_VARIABLES:
        if env.get(name, "").isdecimal():
            return int(env[name])
    return 0


class Reporter:
    """One source: a spool file and, when there is somebody to deliver to, the thread that does so."""

    def __init__(
        self,
        directory: Path,
        env: Mapping[str, str] = os.environ,
        complaints: Complaints | None = None,
        lost: int = 0,
    ) -> None:
        """Make the spool file; `lost` points were lost before that was possible."""
        self.complaints = complaints or Complaints()
        restart = env.get("MLP_RESTART_COUNT", "")
        self.source = f"{rank(env)}.{restart if restart.isdecimal() else 0}.{os.urandom(8).hex()}"
        self.path = directory / f"{self.source}.jsonl"
        most = env.get("MLP_METRICS_MAX", "")
        self._most = int(most) if most.isdecimal() else None
        self.lost = lost
        self._told = False
        self._lock = threading.Lock()
        self._last = 0
        self._size = 0
        directory.mkdir(parents=True, exist_ok=True)
        self._fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        with contextlib.suppress(OSError):  # a file that stays empty says that there was no room
            self._begin()
        self.delivery = Delivery.from_env(self.source, self.path, env)

    def report(self, metrics: Mapping[str, object], at: float | None = None) -> None:
        """Append one point, of the time `at` (now); values that cannot be drawn are left out and reported once."""
        values = fitting(metrics, self.complaints)
        if not values:
            return
        text = _encode(values)
        with self._lock:
            when = at if at is not None and 0 < at < LATEST else time.time()
            line = b'{"n":%d,"t":%.6f,"v":%b}\n' % (self._last + 1, when, text.encode())
            if not self._append(line):
                return
            self._last += 1
            self._size += len(line)
        if self.delivery is not None:
            self.delivery.wake(self._last)

    def _append(self, line: bytes) -> bool:
        """Write the whole line or nothing: a full disk costs points, not the training and not the order."""
        if self._most is not None and self._size + len(line) > self._most:
            return self._lose(say("the limit is {n} MiB of points", n=self._most >> 20))
        try:
            if self._begin() and self._write(line):
                return True
            return self._lose(say("the disk is full"))
        except OSError as error:
            return self._lose(error.strerror or str(error))

    def _begin(self) -> bool:
        """Write the head where that was not possible before; tell whether the file has it. Raises OSError."""
        if not self._size and self._write(HEAD % self.lost):
            self._size = HEAD_BYTES
        return self._size > 0

    def _write(self, line: bytes) -> bool:
        """Write a line at the end, or nothing. Raises OSError."""
        # never at the descriptor's own position, which is beyond the end after a line that did not fit
        if os.pwrite(self._fd, line, self._size) == len(line):
            return True
        os.ftruncate(self._fd, self._size)
        return False

    def _lose(self, why: str) -> bool:
        self.lost += 1
        if self._size:
            with contextlib.suppress(OSError):
                os.pwrite(self._fd, HEAD % self.lost, 0)
        if not self._told:
            self._told = True
            _tell(
                say(
                    "mlp.report: points are being lost, {path} cannot be written: {why}",
                    path=str(self.path),
                    why=why,
                )
            )
        return False

    def close(self, seconds: float = EXIT_SECONDS) -> None:
        """Deliver the remaining points, for at most `seconds`; the rest stays in the spool for the platform."""
        if self.lost:
            _tell(say("mlp.report: {n} of {all} points were lost", n=self.lost, all=self.lost + self._last))
        if self.delivery is not None:
            self.delivery.close(seconds)

    def abandon(self) -> None:
        """In a forked child: this source is the parent's."""
        with contextlib.suppress(OSError):  # a daemon closes all that it finds open
            os.close(self._fd)


class _Process:
    """State of this process: its reporter, made with the first report."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.reporter: Reporter | None = None
        self.complaints = Complaints()
        self.told = False
        self.missed = 0

    def get(self) -> Reporter | None:
        with self.lock:
            if self.reporter is None:
                self.reporter = self._make()
            return self.reporter

    def _make(self) -> Reporter | None:
        env = os.environ
        directory = env.get("MLP_METRICS_DIR") or (DEFAULT_DIRECTORY if env.get("MLP_JOB") else "")
        why = ""
        if directory:
            try:
                return Reporter(Path(directory), complaints=self.complaints, lost=self.missed)
            except (OSError, ValueError) as error:  # a path of the environment may be none
                why = say(
                    "mlp.report() does nothing: {path} cannot be written ({why})",
                    path=directory,
                    why=str(getattr(error, "strerror", None) or error),
                )
                self.missed += 1
        if not self.told:
            self.told = True
            why = why or say("this is not a job of MLP Hub, so mlp.report() does nothing here")
            _tell(say("mlp: {what}.", what=why))
        return None

    def after_fork(self) -> None:
        if self.reporter is not None:
            self.reporter.abandon()
        told = self.told
        self.__init__()  # type: ignore[misc]
        self.told = told

    def at_exit(self) -> None:
        if self.reporter is not None:
            self.reporter.close()


_process = _Process()
os.register_at_fork(after_in_child=_process.after_fork)
atexit.register(_process.at_exit)


def this_process() -> Reporter | None:
    """Return the reporter of this process; None where there is nobody to report to."""
    return _process.reporter or _process.get()


def report(*named: object, **metrics: object) -> None:
    """Report metrics of this process: `mlp.report(epoch=3, loss=0.1, accuracy=0.98, progress=30)`.

    Any name is a separate curve; `epoch`, `step` and `progress` (0 to 100) have their known meanings.
    Values are finite numbers (Python's, numpy's, one-element arrays and tensors). Any other is left
    out, with one message on standard error. A dictionary is also accepted, for names that Python cannot
    write: `mlp.report({"train/loss": 0.1})`. The call returns after some microseconds, whatever the
    network does, and never raises. Outside of a job it does nothing.
    """
    reporter = this_process()
    if reporter is None:
        return
    for one in named:
        if isinstance(one, Mapping):
            metrics = {**one, **metrics}
        else:
            said = say(
                "mlp.report takes names, such as mlp.report(loss=0.1), not {kind}", kind=type(one).__name__
            )
            reporter.complaints.tell("unnamed", "", said)
    reporter.report(metrics)


def flush(seconds: float = EXIT_SECONDS) -> bool:
    """Wait for at most `seconds` until all points so far are stored; return whether they are."""
    reporter = _process.reporter
    if not isinstance(seconds, (int, float)) or not seconds >= 0:
        said = say("mlp.flush({n}): a number of seconds is needed, not negative", n=repr(seconds)[:40])
        _process.complaints.tell("seconds", "", said)
        seconds = EXIT_SECONDS
    return reporter is None or reporter.delivery is None or reporter.delivery.flush(seconds)
