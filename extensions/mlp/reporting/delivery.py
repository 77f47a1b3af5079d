"""Delivery of a spool file: in order, in batches, over one kept connection, as patient as it takes."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from mlp.client.connection import quote
from mlp.client.transport import Address
from mlp.errors import MLPError

COALESCE = 0.01
BATCH_BYTES = 512 * 1024
BATCH_POINTS = 5000
FIRST_WAIT = 0.1
LONGEST_WAIT = 15.0
HEAD = b'{"lost":%-20d}\n'
"""First line of a spool file: the number of points that could not be written. Its length is fixed, so that a change needs no room."""
HEAD_BYTES = len(HEAD % 0)
TIMEOUT = 10.0


class Delivery:
    """Delivery of the lines of one spool file; `stored` is the number of the last point known to be stored.

    A point's number is its line's number, not counting the head, so the place to continue from after any trouble follows from
    the service's answer alone. Nothing here ever raises into the training program.
    """

    def __init__(self, address: Address, token: str, target: str, source: str, path: Path) -> None:
        self._address = address
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._target = target
        self._source = source
        self._path = path
        self._connection: http.client.HTTPConnection | None = None
        self._wanted = 0
        self._sent = 0  # number of the last line that was read from the file
        self.stored = 0
        self._event = threading.Event()
        self._progress = threading.Condition()
        self._closing = False
        self._thread: threading.Thread | None = None

    @classmethod
    def from_env(cls, source: str, path: Path, env: Mapping[str, str]) -> Delivery | None:
        """Make the delivery of this job, or None when there is nobody to deliver to (the platform sweeps)."""
        url, user, job = env.get("MLP_API_URL"), env.get("MLP_USER"), env.get("MLP_JOB")
        token = env.get("MLP_JOB_TOKEN")
        if not (url and user and job and token):
            return None
        try:
            address = Address.parse(url)
        except (MLPError, ValueError):  # what is no address: nobody to deliver to, the platform sweeps
            return None
        return cls(
            address, token, f"{address.base}/users/{quote(user)}/job_metrics/{quote(job)}", source, path
        )

    def wake(self, last: int) -> None:
        """Tell that points up to `last` are in the file."""
        self._wanted = last
        if not self._event.is_set():
            self._event.set()
        if self._thread is None:
            self._start()

    def _start(self) -> None:
        with self._progress:
            if self._thread is None and not self._closing:
                thread = threading.Thread(target=self._run, name="mlp-report", daemon=True)
                # at the interpreter's end no thread can be started any more: the spool has the points
                with contextlib.suppress(RuntimeError):
                    thread.start()
                    self._thread = thread

    def flush(self, seconds: float) -> bool:
        """Wait until all that was reported is stored."""
        until = time.monotonic() + seconds
        self._event.set()
        with self._progress:
            while self.stored < self._wanted:
                left = until - time.monotonic()
                if left <= 0 or self._thread is None or not self._thread.is_alive():
                    return False
                self._progress.wait(left)
        return True

    def close(self, seconds: float) -> None:
        """Flush and stop."""
        self._closing = True
        self.flush(seconds)

    # -------------------------------------------------------- in the thread

    def _run(self) -> None:
        wait, due = FIRST_WAIT, 0.0
        with contextlib.suppress(OSError), self._path.open("rb") as spool:
            spool.seek(HEAD_BYTES)
            while True:
                if self.stored >= self._wanted:
                    if self._closing:
                        return
                    self._event.wait()
                self._event.clear()
                # what comes within a moment goes in one batch; what came while the last one was under way has waited
                if not self._closing and (left := due - time.monotonic()) > 0:
                    time.sleep(left)
                due = time.monotonic() + COALESCE
                if self._batch(spool):
                    wait = FIRST_WAIT
                elif self.stored < self._wanted:
                    time.sleep(min(wait, FIRST_WAIT) if self._closing else wait)
                    wait = min(wait * 2, LONGEST_WAIT)

    def _batch(self, spool: BinaryIO) -> bool:
        """Send the next lines; tell whether the service has more than before."""
        if self._sent != self.stored:
            self._seek(spool)
        lines = self._read(spool)
        if not lines:
            return True
        body = b'{"source":"%b","points":[%b]}' % (self._source.encode(), b",".join(lines))
        try:
            last = self._post(body)
        except (OSError, http.client.HTTPException, ValueError, TypeError, KeyError):
            if self._connection is not None:
                self._connection.close()
                self._connection = None
            return False
        if last <= self.stored:
            return False  # the job does not take points now; the platform sweeps the spool at its end
        with self._progress:
            self.stored = min(last, self._wanted)
            self._progress.notify_all()
        return True

    def _read(self, spool: BinaryIO) -> list[bytes]:
        lines: list[bytes] = []
        size = 0
        while len(lines) < BATCH_POINTS and size < BATCH_BYTES and self._sent < self._wanted:
            line = spool.readline()
            if not line.endswith(b"\n"):
                spool.seek(-len(line), os.SEEK_CUR)
                break
            lines.append(line[:-1])
            size += len(line)
            self._sent += 1
        return lines

    def _seek(self, spool: BinaryIO) -> None:
        """Go to the line after the last one stored."""
        spool.seek(HEAD_BYTES)
        for _ in range(self.stored):
            spool.readline()
        self._sent = self.stored

    def _post(self, body: bytes) -> int:
        if self._connection is None:
            self._connection = self._address.http(TIMEOUT)
        self._connection.request("POST", self._target, body, self._headers)
        response = self._connection.getresponse()
        answer = response.read()
        if response.status != 200:
            raise ValueError(response.status)
        return int(json.loads(answer)["last"])
