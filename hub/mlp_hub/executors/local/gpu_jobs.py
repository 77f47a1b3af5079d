"""Files that name the jobs on each GPU, as the DCGM exporter reads them: it then labels its metrics by our jobs.

The directory has a file for each GPU with jobs, named by the GPU's number, with a line for each job. Other files there are left
alone. The files follow from the run directories, so a new process writes them again.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

log = logging.getLogger(__name__)
LONGEST = 320
"""Safety: characters of a line: it becomes a label."""
MODE, DIRECTORY_MODE = 0o644, 0o755
"""Given: modes of a file, and of a directory that the hub makes; the exporter runs as another user."""


class GpuJobFiles:
    """Files of one directory; for threads. `numbers` returns the exporter's number of each device, by our number of it."""

    def __init__(self, directory: Path, numbers: Callable[[], Mapping[int, int]]) -> None:
        self._directory = directory
        self._numbers = numbers
        self._jobs: dict[str, tuple[str, frozenset[int]]] = {}
        self._lock = threading.Lock()
        self._trouble = ""

    def begin(self, jobs: Mapping[str, tuple[str, Collection[int]]]) -> None:
        """Replace all that is known, by attempt: the job's line, and its devices. Files that another process left are corrected."""
        with self._lock:
            self._jobs = {attempt: (line_of(job), frozenset(on)) for attempt, (job, on) in jobs.items() if on}
            self._write(None)

    def add(self, attempt: str, job: str, devices: Collection[int]) -> None:
        """Note that an attempt has these devices."""
        if not devices:
            return
        with self._lock:
            self._jobs[attempt] = line_of(job), frozenset(devices)
            self._write(frozenset(devices))

    def remove(self, attempt: str) -> None:
        """Note that an attempt has ended."""
        with self._lock:
            found = self._jobs.pop(attempt, None)
            if found is not None:
                self._write(found[1])

    def _write(self, devices: frozenset[int] | None) -> None:
        """Write the files of these devices, or of all. What cannot be written is logged once, and stops no job."""
        try:
            if not self._directory.is_dir():
                self._directory.mkdir(parents=True)
                self._directory.chmod(DIRECTORY_MODE)  # whatever the umask is
            for device, number in self._numbers().items():
                if devices is None or device in devices:
                    self._write_one(number, device)
        except Exception as error:  # noqa: BLE001 - the driver's library has errors of its own
            if str(error) != self._trouble:
                log.warning("jobs on GPUs cannot be written for the DCGM exporter: %s", error)
            self._trouble = str(error)
        else:
            self._trouble = ""

    def _write_one(self, number: int, device: int) -> None:
        file = self._directory / str(number)
        lines = sorted({line for line, on in self._jobs.values() if device in on})
        if not lines:
            file.unlink(missing_ok=True)
            return
        new = self._directory / f".{number}.{os.getpid()}"
        with contextlib.suppress(FileNotFoundError):
            new.unlink()  # of a process of this number that was killed
        try:
            fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, MODE)
            with os.fdopen(fd, "w", encoding="utf-8", errors="replace") as out:
                os.fchmod(fd, MODE)  # whatever the umask is
                out.writelines(f"{line}\n" for line in lines)
            new.replace(file)
        except BaseException:
            new.unlink(missing_ok=True)
            raise


def line_of(job: str) -> str:
    """Return a job as a line of such a file: without characters that end lines or do not print."""
    return "".join(char if char.isprintable() else "?" for char in job)[:LONGEST]
