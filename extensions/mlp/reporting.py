"""`mlp.report()`: a point is in a local file before the call returns, and is delivered from there.

The call costs some microseconds and never waits for the network: it appends one line to this process's spool
file (`<metrics directory>/<rank>.<restart>.<random>.jsonl`). A thread reads the same file and delivers in
order; the service remembers the number of the last point of each source, so a repeated delivery stores
nothing twice. What is not delivered when the process dies is taken from the spool by the platform.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import math
import os
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import SupportsFloat

from mlp.delivery import Delivery
from mlp.errors import UsageError
from mlp.language import say

DEFAULT_DIRECTORY = "/workspace/metrics"
EXIT_SECONDS = 2.0
RANK_VARIABLES = ("MLP_RANK", "PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "RANK", "SLURM_PROCID")
MAX_METRICS = 100
LATEST = 2.0**33
"""Time of a point that is believed at most, in seconds since 1970."""

_encode = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


def rank(env: Mapping[str, str] = os.environ) -> int:
    """Return this process's rank within its job, 0 outside of one."""
    for name in RANK_VARIABLES:
        if env.get(name, "").isdecimal():
            return int(env[name])
    return 0


def _plain(name: str, value: object) -> float | int:
    """Turn numpy's and the frameworks' numbers into Python's."""
    kind = type(value).__name__
    item = getattr(value, "item", None)  # numpy, torch, jax
    if callable(item):
        try:
            value = item()
        except (ValueError, TypeError, RuntimeError):
            raise TypeError(
                say("metric {name}: a single number is needed, not {kind} of several", name=name, kind=kind)
            ) from None
    elif hasattr(value, "numpy"):  # an eager tensor of TensorFlow
        value = value.numpy()
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if not isinstance(value, SupportsFloat):
        raise TypeError(say("metric {name}: a number is needed, not {kind}", name=name, kind=kind))
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(
            say("metric {name}: a single number is needed, not {kind}", name=name, kind=kind)
        ) from None


def number(name: str, value: object) -> float | int:
    """Return a metric's value as a finite Python number.

    Raises TypeError for what is no number and ValueError for what is not finite, naming the metric.
    """
    if type(value) is not float and type(value) is not int:
        value = _plain(name, value)
    if isinstance(value, int):
        if -(2**53) <= value <= 2**53:
            return int(value)
        try:
            return float(value)
        except OverflowError:
            raise ValueError(say("metric {name}: the number is too large", name=name)) from None
    if not math.isfinite(value):
        raise ValueError(
            say(
                "metric {name} is {value}: only finite numbers can be drawn; leave it out of this report",
                name=name,
                value=str(value),
            )
        )
    return float(value)


def _tell(sentence: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # standard error may be closed
        sys.stderr.write(sentence + "\n")


class Reporter:
    """One source: a spool file and, when there is somebody to deliver to, the thread that does so."""

    def __init__(self, directory: Path, env: Mapping[str, str] = os.environ) -> None:
        restart = env.get("MLP_RESTART_COUNT", "")
        self.source = f"{rank(env)}.{restart if restart.isdecimal() else 0}.{os.urandom(8).hex()}"
        self.path = directory / f"{self.source}.jsonl"
        most = env.get("MLP_METRICS_MAX", "")
        self._most = int(most) if most.isdecimal() else None
        self.lost = 0
        self._lock = threading.Lock()
        self._last = 0
        self._size = 0
        directory.mkdir(parents=True, exist_ok=True)
        self._fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self.delivery = Delivery.from_env(self.source, self.path, env)

    def report(self, metrics: Mapping[str, object], at: float | None = None) -> None:
        """Append one point, of the time `at` (now); raises only for values that are no finite numbers."""
        if not metrics:
            return
        if len(metrics) > MAX_METRICS:
            raise ValueError(
                say("{n} metrics in one report; at most {most}", n=len(metrics), most=MAX_METRICS)
            )
        values: dict[str, float | int] = {}
        for name, value in metrics.items():
            if not 0 < len(name) <= 100:
                raise ValueError(say("metric {name}...: a name has 1 to 100 characters", name=name[:20]))
            values[name] = number(name, value)
        if "progress" in values:
            values["progress"] = min(max(values["progress"], 0), 100)
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
            return self._lose(say("{n} MiB of points is all that it may hold", n=self._most >> 20))
        try:
            written = os.write(self._fd, line)
            if written == len(line):
                return True
            os.ftruncate(self._fd, self._size)
            return self._lose(say("the disk is full"))
        except OSError as error:
            return self._lose(error.strerror or str(error))

    def _lose(self, why: str) -> bool:
        self.lost += 1
        if self.lost == 1:
            _tell(
                say(
                    "mlp.report: points are being lost, {path} cannot be written: {why}",
                    path=str(self.path),
                    why=why,
                )
            )
        return False

    def close(self, seconds: float = EXIT_SECONDS) -> None:
        """Deliver what is left, for at most so long; the rest stays in the spool for the platform."""
        if self.lost:
            _tell(say("mlp.report: {n} of {all} points were lost", n=self.lost, all=self.lost + self._last))
        if self.delivery is not None:
            self.delivery.close(seconds)

    def abandon(self) -> None:
        """In a forked child: this source is the parent's."""
        os.close(self._fd)


class _Process:
    """What this process has: its reporter, made with the first report."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.reporter: Reporter | None = None
        self.told = False

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
                return Reporter(Path(directory))
            except OSError as error:
                why = say(
                    "mlp.report() does nothing: {path} cannot be written ({why})",
                    path=directory,
                    why=str(error.strerror),
                )
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


def report(**metrics: object) -> None:
    """Report metrics of this process: `mlp.report(epoch=3, loss=0.1, accuracy=0.98, progress=30)`.

    Any name is a curve of its own; `epoch`, `step` and `progress` (0 to 100) have their known meanings. Values are finite
    numbers (Python's, numpy's, one-element tensors); TypeError or ValueError names the metric that is not. The
    call returns after some microseconds, whatever the network does. Outside of a job it does nothing.
    """
    reporter = this_process()
    if reporter is not None:
        reporter.report(metrics)


def flush(seconds: float = EXIT_SECONDS) -> bool:
    """Wait until all points reported so far are stored, for at most so long; tell whether they are."""
    if seconds < 0:
        raise UsageError(say("flush({n}): seconds must not be negative", n=seconds))
    reporter = _process.reporter
    return reporter is None or reporter.delivery is None or reporter.delivery.flush(seconds)
