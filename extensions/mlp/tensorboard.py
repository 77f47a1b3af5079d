"""TensorBoard's event files that this process writes, reported as `mlp.report` would: an existing program needs no change.

The writers' modules are patched as they are imported (`mlp_job_start`), so that it is known which files are
this process's own: nobody else's in the same directory are read. A thread reads them as they grow and appends to the spool
of `mlp.report`, from where points come to the service exactly once. The process reads its own files, with its own
rights; the platform never does.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import math
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mlp.language import say
from mlp.reporting import points
from mlp.reporting.event_file import Damaged, EventFile, Scalars

EVERY = 0.5
"""Seconds between two looks at the files."""
FLUSH = 2
"""Seconds after which writers put what they have into their file, at most: 120 is theirs, and a curve is looked at while it grows."""
MOST_FILES = 200
MOST_TAGS = 500
"""Curves of one process: a program with more draws nothing that people can read."""
AT_ONCE = 2000
"""Records of one file at a look: one that is written faster is read later, and holds nobody up."""
IN_ONE = 90
"""Values of one point."""
LAST_SECONDS = 2.0
"""Seconds that a process's end waits at most until its files are read."""
_VALIDATION = {"validation", "val"}
_NAME = ".tfevents."


class Names:
    """Names of curves; tags are used as they are, except Keras' own, which get the names of its logs.

    The first directory that a process writes to is its run. Tags in other directories have that place
    before them.
    """

    def __init__(self) -> None:
        self._run: Path | None = None

    def prefix(self, directory: Path) -> str:
        """Return the prefix of the tags of a directory."""
        if self._run is None:
            self._run = directory
        if directory == self._run:
            return ""
        if directory.is_relative_to(self._run):
            return f"{directory.relative_to(self._run)}/"
        return f"{directory.name}/"

    def point(self, prefix: str, step: int, values: dict[str, float]) -> dict[str, float]:
        """Return the point of a step: values by name, with the place of the point."""
        point: dict[str, float] = {}
        for tag, value in values.items():
            if not math.isfinite(value):
                continue  # nothing that can be drawn; the file has it
            keras = tag.removeprefix("epoch_")
            if keras != tag and keras:
                # Keras counts epochs from 0 here, and from 1 wherever it tells people
                short = "val_" if prefix.rstrip("/").rpartition("/")[2] in _VALIDATION else prefix
                point[f"{short}{keras}"[:100]] = value
                point["epoch"] = step + 1
            else:
                point[f"{prefix}{tag}"[:100]] = value
                point.setdefault("step", step)
        if "epoch" in point and "epoch" not in values:
            point.pop("step", None)
        return point


class _Followed:
    """One event file that is read."""

    def __init__(self, path: Path, prefix: str) -> None:
        self.file = EventFile(path)
        self.prefix = prefix
        self.held: Scalars | None = None  # of the step that may not be complete yet


class Follower:
    """Files of this process, and the thread that reads them."""

    def __init__(self, report: Callable[[dict[str, float], float], None]) -> None:
        self._report = report
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._names = Names()
        self._files: dict[Path, _Followed | None] = {}  # None: no more of it
        self._directories: dict[Path, set[Path]] = {}  # and what was there before
        self._writers: weakref.WeakSet[Any] = weakref.WeakSet()
        self._tags: set[str] = set()
        self._told: set[str] = set()
        self._thread: threading.Thread | None = None

    def add(self, path: Path) -> None:
        """Follow a file that this process has begun."""
        with self._lock:
            if path in self._files or len(self._files) >= MOST_FILES:
                return
            try:
                self._files[path] = _Followed(path, self._names.prefix(path.parent))
            except FileNotFoundError:
                return  # not yet: the next look sees it
            except OSError as error:
                self._files[path] = None
                self._tell(path, error.strerror or str(error))
        self._start()

    def add_directory(self, directory: Path) -> None:
        """Follow the files that this process begins there; those that are there already are of others."""
        with self._lock:
            if len(self._directories) < MOST_FILES:
                self._directories.setdefault(directory, set(_event_files(directory)))
                self._names.prefix(directory)
        self._start()

    def add_writer(self, writer: object) -> None:
        """Note a writer, whose last events are wanted at the end."""
        with contextlib.suppress(TypeError):
            self._writers.add(writer)

    def look(self) -> bool:
        """Report what came since the last time; tell whether there may be more at once."""
        with self._lock:
            if self._pid != os.getpid():
                return False
            mine = f".{self._pid}."
            for directory, before in self._directories.items():
                for path in _event_files(directory):
                    if path not in before and mine in path.name:
                        self.add(path)
            more = [self._read(path, one) for path, one in self._files.items() if one is not None]
            return any(more)

    def finish(self) -> None:
        """Read what is there at the end of the process, within bounds."""
        if self._pid != os.getpid():
            return
        for writer in list(self._writers):
            with contextlib.suppress(Exception):  # one that is closed already
                writer.flush()
        until = time.monotonic() + LAST_SECONDS
        while self.look() and time.monotonic() < until:
            pass

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="mlp-tensorboard", daemon=True)
                with contextlib.suppress(RuntimeError):  # at the interpreter's end the last look reads them
                    thread.start()
                    self._thread = thread

    def _run(self) -> None:
        while True:
            time.sleep(EVERY)
            with contextlib.suppress(Exception):  # never into the program, and the next look goes on
                while self.look():
                    time.sleep(0.01)  # the program has its turn

    def _read(self, path: Path, one: _Followed) -> bool:
        count = 0
        try:
            for found in one.file.read(AT_ONCE):
                count += 1
                if one.held is not None and (
                    one.held.step != found.step
                    or len(one.held.values) + len(found.values) > IN_ONE
                    or not one.held.values.keys().isdisjoint(found.values)
                ):
                    self._say(one)
                if one.held is None:
                    one.held = found
                else:
                    one.held.values.update(found.values)
        except (Damaged, OSError) as error:
            self._files[path] = None
            one.file.close()
            self._tell(
                path,
                say("it is damaged from byte {n} on", n=error.args[0])
                if isinstance(error, Damaged)
                else str(error),
            )
        self._say(one)
        return count >= AT_ONCE

    def _say(self, one: _Followed) -> None:
        held, one.held = one.held, None
        if held is None:
            return
        known = {}
        for tag, value in held.values.items():
            key = f"{one.prefix}{tag}"
            if key not in self._tags:
                if len(self._tags) >= MOST_TAGS:
                    self._tell(
                        one.file.path,
                        say("it has more than {n} tags; the rest is left out", n=MOST_TAGS),
                    )
                    continue
                self._tags.add(key)
            known[tag] = value
        items = list(known.items())
        for first in range(0, len(items), IN_ONE):
            point = self._names.point(one.prefix, held.step, dict(items[first : first + IN_ONE]))
            if point.keys() - {"step", "epoch"}:
                self._report(point, held.time)

    def _tell(self, path: Path, why: str) -> None:
        if why not in self._told and len(self._told) < 10:
            self._told.add(why)
            with contextlib.suppress(OSError, ValueError):
                sys.stderr.write(say("mlp: {path} is no longer drawn: {why}", path=str(path), why=why) + "\n")


def _event_files(directory: Path) -> list[Path]:
    found = []
    with contextlib.suppress(OSError), os.scandir(directory) as entries:
        for number, entry in enumerate(entries):
            if number >= 10_000:
                break
            if _NAME in entry.name:
                found.append(Path(entry.path))
    # as they were begun: the writers count in the name, and a directory lists its files in any order
    return sorted(found, key=lambda path: (len(path.name), path.name))


# ---------------------------------------------------------------------------- this process

_follower: Follower | None = None


def _report(point: dict[str, float], at: float) -> None:
    reporter = points.this_process()
    if reporter is not None:
        reporter.report(point, at)


def follower() -> Follower:
    """Return the follower of this process."""
    global _follower  # noqa: PLW0603 - a process has one
    if _follower is None:
        _follower = Follower(_report)
    return _follower


def _after_fork() -> None:
    global _follower  # noqa: PLW0603 - the parent goes on reading its files
    _follower = None


def finish() -> None:
    """Read what is there at the end of the process."""
    if _follower is not None:
        with contextlib.suppress(Exception):
            _follower.finish()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(finish)  # before `mlp.report`'s own, which then delivers


def patch(module: Any) -> None:
    """Have what a writers' module opens followed; called as it has been imported."""
    if module.__name__.startswith("tensorflow."):
        module.create_file_writer_v2 = _tensorflow(module.create_file_writer_v2)
        return
    _sooner(module.EventFileWriter)
    writer = getattr(module, "EventsWriter", module.EventFileWriter)
    begin = writer.__init__

    @functools.wraps(begin)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        begin(self, *args, **kwargs)
        with contextlib.suppress(Exception):
            path = _local(self._file_name)
            if path is not None:
                follower().add_writer(self)
                follower().add(path)

    writer.__init__ = init


def _sooner(writer: Any) -> None:
    begin = writer.__init__

    @functools.wraps(begin)
    def init(
        self: Any,
        logdir: Any,
        max_queue_size: Any = 10,
        flush_secs: Any = 120,
        filename_suffix: Any = "",
        *args: Any,
        **kwargs: Any,
    ) -> None:
        with contextlib.suppress(TypeError):
            flush_secs = min(flush_secs, FLUSH)
        begin(self, logdir, max_queue_size, flush_secs, filename_suffix or _suffix(), *args, **kwargs)

    writer.__init__ = init


def _tensorflow(create: Any) -> Any:
    @functools.wraps(create)
    def made(
        logdir: Any,
        max_queue: Any = None,
        flush_millis: Any = None,
        filename_suffix: Any = None,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        path = None
        with contextlib.suppress(Exception):
            path = _local(logdir)
            if path is not None:
                follower().add_directory(path)
        if flush_millis is None:
            flush_millis = FLUSH * 1000
        if filename_suffix is None:
            filename_suffix = f"{_suffix()}.v2"  # the latter is its own default
        writer = create(logdir, max_queue, flush_millis, filename_suffix, *args, **kwargs)
        if path is not None:
            follower().add_writer(writer)
        return writer

    return made


def _suffix() -> str:
    """Return an end of names that no other process of a job has.

    Writers name a file after the second and the host, some also after the process's number, which
    begins again in each sandbox: two that begin side by side in one directory would overwrite each
    other's.
    """
    names = ("MLP_JOB", "MLP_RUN", "MLP_RESTART_COUNT", "MLP_RANK")
    return "".join(f".{os.environ[name]}" for name in names if os.environ.get(name))


def _local(place: Any) -> Path | None:
    """Return the path of a place on this machine; None for one elsewhere, as in `s3://`."""
    if hasattr(place, "numpy"):
        place = place.numpy()
    text = os.fsdecode(place)
    return None if "://" in text else Path(text).absolute()
