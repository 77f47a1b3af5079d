"""Upload of a file or a directory into a dataset: present files stay, others are sent whole and verified."""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
import time
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from mlp.client.rest import Client
from mlp.data import local
from mlp.data.crew import Crew, lots
from mlp.data.local import LocalFile
from mlp.data.places import DataPlace
from mlp.data.remote import CUT, Cut, DataEntry, Remote, WholeFile
from mlp.errors import MLPError, Refused, TransferFailed, Unreachable, UsageError
from mlp.language import say

BEAT_S = 2.0
"""Tuning: seconds between two heartbeats."""
PART = 64 * 2**20
"""Tuning: bytes of a part of a large file: less to send again after a cut, for more requests."""
TRIES = 3
"""Tuning: how often a file is sent that is another one each time."""
SMALL = 2**20
"""Tuning: bytes of a file that goes together with others in one request: fewer requests, for how much is in memory."""
MOST_TOGETHER = 200
"""Tuning: files in one request."""
TOGETHER = 8 * 2**20
"""Tuning: bytes of the files in one request."""
LAST_WORD_S = 3.0
"""Tuning: seconds for which a failed upload is tried to be told."""


@dataclass
class Pushed:
    """Result of an upload."""

    place: DataPlace
    dataset: dict[str, Any] = field(default_factory=dict)
    sent: list[str] = field(default_factory=list)
    there: int = 0
    size: int = 0
    left_out: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)


class Push:
    """Upload that can be ended at any moment; the same call again continues with the missing parts."""

    def __init__(
        self, client: Client, path: str, place: DataPlace, crew: Crew, *, tenant: str | None = None
    ) -> None:
        self._client, self._path, self._place, self._tenant = client, path, place, tenant
        self._crew, self._told = crew, crew.told
        self._remote = Remote(client, place.name, crew.stop)
        self._found = Pushed(place)
        self._there: dict[str, DataEntry] = {}
        self._lock = threading.Lock()
        self._beat_at = time.monotonic()

    def run(self) -> Pushed:
        """Send all that is missing. Raises `Refused`, `TransferFailed` or `Unreachable`."""
        files = self._look()
        found = self._found
        found.size, found.left_out = files.size, files.left_out
        self._told.expect(files.size, len(files.files))
        found.dataset = self._take_up(files.size)
        try:
            self._prepare(files.directories)
            self._crew.each(
                self._some, lots(files.files, _weigh, (MOST_TOGETHER, TOGETHER)), self._remote, self._beat
            )
            _check(found.changed)
            found.dataset = self._say("ready", 100)
        except BaseException:
            self._crew.stop.set()
            self._last_word()
            raise
        finally:
            self._remote.close()
        return found

    # ------------------------------------------------------------ the dataset

    def _look(self) -> local.LocalFiles:
        path, place = self._path, self._place
        if os.path.isdir(path):  # noqa: PTH112 - what is given may be a link
            return local.find(path)
        try:
            with open(path, "rb") as file:  # noqa: PTH123 - likewise
                at = local.plain(file)
        except OSError as error:
            raise local.unreadable(path, error) from error
        if at is None:
            raise UsageError(say("{path} is not a file and not a directory", path=path))
        name = os.path.basename(os.path.abspath(path))  # noqa: PTH119, PTH100 - likewise
        alone = not place.path or place.into
        self._place = DataPlace(place.name, place.path if alone else place.path.rpartition("/")[0])
        return local.LocalFiles(
            [LocalFile(path, name if alone else place.path.rpartition("/")[2], at.st_size)]
        )

    def _take_up(self, size: int) -> dict[str, Any]:
        """Make the dataset with room for all of it, or continue with the existing one."""
        name = self._place.name
        wanted = {"name": name, "size": size, **({"tenant": self._tenant} if self._tenant else {})}
        try:
            return self._client.make_dataset(wanted)
        except Refused as refused:
            if refused.reason != "Conflict":
                raise
        there = self._client.dataset(name)
        if self._tenant not in (None, there["tenant"]):
            raise UsageError(
                say("{name} is a dataset of team {tenant}", name=name, tenant=str(there["tenant"]))
            )
        return self._say("creating", 0)

    def _say(self, state: str, progress: int) -> dict[str, Any]:
        self._client.beat(self._place.name, state, progress)
        return {**self._found.dataset, "name": self._place.name, "state": state, "progress": progress}

    def _beat(self) -> None:
        if time.monotonic() - self._beat_at >= BEAT_S:
            self._beat_at = time.monotonic()
            with contextlib.suppress(Unreachable):  # files may go on meanwhile
                self._say("creating", min(99, self._told.percent))

    def _last_word(self) -> None:
        """Report that it is incomplete, so that it can be deleted.

        If the report fails, a repeated upload or a deletion still works.
        """
        client = Client(
            self._client.url, self._client.token, self._client.user, timeout=LAST_WORD_S, patience=LAST_WORD_S
        )
        with contextlib.suppress(MLPError):
            client.beat(self._place.name, "error", min(99, self._told.percent))

    # ------------------------------------------------------------ files

    def _prepare(self, directories: list[str]) -> None:
        """List what is there, and make the directories that are not."""
        way = self._place.path.split("/") if self._place.path else []
        for deep in range(1, len(way) + 1):
            self._remote.make_directory("/".join(way[:deep]))
        known = {""}
        self._list("")
        for path in directories:
            parent = path.rpartition("/")[0]
            if parent in known and path in self._there and self._there[path].directory:
                known.add(path)
                self._list(path)
            else:
                self._remote.make_directory(self._place.below(path))

    def _list(self, path: str) -> None:
        for entry in self._remote.entries(self._place.below(path)):
            self._there[f"{path}/{entry.name}" if path else entry.name] = entry

    def _some(self, files: list[LocalFile]) -> None:
        """Send files in one request; files that cannot be in it are sent alone."""
        if len(files) == 1:
            return self._one(files[0])
        sent: dict[LocalFile, WholeFile] = {}
        for file in files:
            self._remote.go_on()
            whole = self._whole(file)
            if whole is None:
                self._one(file)
            elif self._is_there(file.path, len(whole.content), whole.digest):
                self._told.add_file()
            else:
                sent[file] = whole
        together = bool(sent) and self._remote.patiently(lambda: self._remote.put_many(list(sent.values())))
        for file, whole in sent.items():
            if not together:
                self._one(file)
                continue
            self._told.add(len(whole.content))
            self._told.add_file()
            with self._lock:
                self._found.sent.append(file.path)
        return None

    def _whole(self, file: LocalFile) -> WholeFile | None:
        """Read a small file; None for one that is written to meanwhile, is large by now, or is no plain file any more."""
        try:
            with open(file.here, "rb", buffering=0) as source:  # noqa: PTH123 - a link of today is followed
                before = local.plain(source)
                if before is None or before.st_size > SMALL:
                    return None
                content = source.read(SMALL + 1) or b""
                if len(content) != before.st_size or not local.same(before, os.fstat(source.fileno())):
                    return None
        except OSError as error:
            raise local.unreadable(file.here, error) from error
        return WholeFile(self._place.below(file.path), content, hashlib.sha256(content).digest())

    def _is_there(self, path: str, size: int, digest: bytes) -> bool:
        """Whether the platform has the same file already; it is counted then."""
        there = self._there.get(path)
        if there is None or there.directory or (there.size, there.digest) != (size, digest):
            return False
        with self._lock:
            self._found.there += 1
        self._told.add(size)
        return True

    def _one(self, file: LocalFile) -> None:
        """Send a file, unless the same is there. One that is written to meanwhile is sent again, and then given up."""
        try:
            source = open(file.here, "rb", buffering=0)  # noqa: SIM115, PTH123 - closed below
        except OSError as error:
            raise local.unreadable(file.here, error) from error
        with source:
            for _ in range(TRIES):
                before = local.plain(source)
                if before is None:
                    raise UsageError(say("{path} is not a file any more", path=file.here))
                done = self._once(file, source, before)
                unchanged = local.same(before, os.fstat(source.fileno()))
                if done and unchanged:
                    self._told.add_file()
                    return
                if done:
                    self._told.add(-before.st_size)
        if unchanged:
            raise TransferFailed(
                say(
                    "{path} arrived at the platform with different content, {n} times; nothing was kept",
                    path=file.path,
                    n=TRIES,
                )
            )
        with self._lock:
            self._found.changed.append(file.path)

    def _once(self, file: LocalFile, source: Any, before: os.stat_result) -> bool:
        """Have the platform hold what the file is now; return whether it does."""
        digest = local.checksum(source, self._remote.go_on)
        size = before.st_size
        if self._is_there(file.path, size, digest):
            return True
        send = self._sent if size <= PART else self._sent_in_parts
        if not send(file.path, source, size, digest):
            return False
        with self._lock:
            self._found.sent.append(file.path)
        return True

    def _sent_in_parts(self, path: str, source: BinaryIO, size: int, digest: bytes) -> bool:
        """Send a large file part by part, after the bytes that are already there."""
        place, counted = self._place.below(path), 0

        def count(more: int) -> None:
            nonlocal counted
            counted += more
            self._told.add(more)

        here = self._remote.patiently(lambda: self._remote.arrived(place, size, digest))
        count(here)
        while here < size:

            def send(begin: int = here) -> int | None:
                count(begin - counted)
                try:
                    part = (begin, min(begin + PART, size), size)
                    return self._remote.put_part(place, source, part, digest, count)
                except (Cut, *CUT):
                    if os.fstat(source.fileno()).st_size < size:
                        return None  # it is shorter by now
                    return self._remote.arrived(place, size, digest)

            found = self._remote.patiently(send, lambda: counted)
            if found is None:
                count(-counted)
                return False
            here = found
            count(here - counted)
        return True

    def _sent(self, path: str, source: BinaryIO, size: int, digest: bytes) -> bool:
        sent = most = 0

        def count(more: int) -> None:
            nonlocal sent, most
            sent += more
            most = max(most, sent)
            self._told.add(more)

        def send() -> bool:
            nonlocal sent
            try:
                whole = self._remote.put(self._place.below(path), source, size, digest, count)
            except (Cut, *CUT):
                self._told.add(-sent)
                sent = 0
                if os.fstat(source.fileno()).st_size < size:
                    return False  # it is shorter by now
                raise
            if not whole:
                self._told.add(-sent)
                sent = 0
            return whole

        return self._remote.patiently(send, lambda: most)


def _weigh(file: LocalFile) -> tuple[object, tuple[int, ...]] | None:
    return None if file.size > SMALL else ("", (1, file.size))


def _check(changed: list[str]) -> None:
    if changed:
        names = say(", ").join(changed[:5])
        raise TransferFailed(
            say(
                "{names}: changed while being read; repeat the command to continue with the missing files",
                names=names,
            )
        )
