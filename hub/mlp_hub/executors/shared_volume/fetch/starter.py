"""Starter of the process that copies a source: it answers its questions, and ends it when required."""

from __future__ import annotations

import errno
import json
import os
import select
import subprocess
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mlp_hub import helpers
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.executors.workspace import Extent, FetchSteps, OpenSource, SourceAsk, StoredPlace
from mlp_language.message import from_data, msg

_REASONS = {reason.value: reason for reason in Reason}
SILENT_S = 120.0
"""Safety: seconds for which the process may say nothing, though it says something each second."""
LOOK_S = 0.5
"""Tuning: seconds between two looks whether it may continue."""
MEMORY = 2 << 30
"""Safety: bytes of address space of the process: an endpoint's answer is in memory for a moment."""


def fetch(root: Path, source: OpenSource, to: StoredPlace, owner: int | None, steps: FetchSteps) -> Extent:
    """Copy a source; blocks. Raises `Refused`, `OSError` where it may be asked for again, and what `steps` raise."""
    return _run((str(root), to.user, to.name), {"source": asdict(source)}, owner, steps)


def evict(root: Path, of: StoredPlace, owner: int | None) -> None:
    """Remove what came of a source; blocks. Raises `OSError` where it may be asked for again."""
    _run((str(root), of.user, of.name), {"source": None}, owner, _NoSteps())


class _NoSteps:
    """Steps of a process that fetches nothing."""

    def admit(self, size: int) -> None:
        """Never asked."""

    def report_progress(self, percent: int) -> None:
        """Never told."""

    def check_cancelled(self) -> None:
        """Let it."""


def _run(place: tuple[str, str, str], asked: dict[str, Any], owner: int | None, steps: FetchSteps) -> Extent:
    # whose the files are copies them, so that what is written is theirs, and is nobody who may do more
    uid = owner if os.geteuid() == 0 else None
    within = helpers.Confinement(uid, MEMORY, network=True)
    process = subprocess.Popen(
        helpers.command(
            "mlp_hub.executors.shared_volume.fetch.process", within, *place, "" if uid is None else str(uid)
        ),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=helpers.environment(),
        cwd="/",
        start_new_session=True,
        bufsize=0,
    )
    try:
        _send_line(process, json.dumps(asked))
        return _follow(process, steps)
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


def address(source: OpenSource, ask: SourceAsk) -> str:
    """Return the address of one request to a source. Raises `Refused`."""
    try:
        from mlp_hub.executors.shared_volume.fetch import signing  # noqa: PLC0415 - whoever has not installed it is told
    except ImportError:
        text = msg("this hub cannot copy from object stores: its operator must install mlp-hub[s3]")
        raise Refused(Reason.WRONG_STATE, text) from None
    try:
        return signing.address(source, ask)
    except ValueError:
        text = msg("its source has an address that cannot be used: {url}", url=f"s3://{source.bucket}/")
        raise Refused(Reason.INVALID, text) from None


def _follow(process: subprocess.Popen[bytes], steps: FetchSteps) -> Extent:
    for said in _lines(process, steps):
        if "percent" in said:
            steps.report_progress(int(said["percent"]))
        elif "room" in said:
            steps.admit(int(said["room"]))
            _send_line(process, "go")
        elif "files" in said:
            return Extent(int(said["files"]), int(said["size"]))
        elif "reason" in said:
            raise Refused(_REASONS[said["reason"]], from_data(said["message"]))
        elif said.get("errno") in (errno.ENOSPC, errno.EDQUOT):
            raise Refused(
                Reason.DISK_FULL, msg("the disk is full; received files are kept, sync continues from there")
            )
        else:
            raise OSError(int(said.get("errno") or errno.EIO), "what is fetched cannot be written")
    raise OSError(errno.EIO, "the process that copies has died")


def _lines(process: subprocess.Popen[bytes], steps: FetchSteps) -> Iterator[dict[str, Any]]:
    """Yield what it says, until it ends."""
    if process.stdout is None:
        return
    fd, rest, heard = process.stdout.fileno(), b"", time.monotonic()
    while True:
        steps.check_cancelled()
        if select.select([fd], [], [], LOOK_S)[0]:
            data = os.read(fd, 1 << 16)
            if not data:
                return
            heard = time.monotonic()
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                yield json.loads(line)
        elif time.monotonic() - heard > SILENT_S:
            raise OSError(errno.ETIMEDOUT, "the process that copies says nothing any more")


def _send_line(process: subprocess.Popen[bytes], line: str) -> None:
    try:
        if process.stdin is not None:
            process.stdin.write(line.encode() + b"\n")
    except BrokenPipeError:
        raise OSError(errno.EIO, "the process that copies has died") from None
