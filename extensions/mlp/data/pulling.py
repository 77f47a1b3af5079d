"""Files of a dataset on their way here: gone on with where they were cut, and in their place once they are verified."""

from __future__ import annotations

import hashlib
import os
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mlp.client.connection import quote
from mlp.client.downloads import through_no_link
from mlp.client.rest import Client
from mlp.data import local
from mlp.data.crew import Crew, lots
from mlp.data.local import BLOCK
from mlp.data.places import DataPlace
from mlp.data.progress import TransferProgress
from mlp.data.remote import Cut, DataEntry, Remote, digest_of
from mlp.errors import Refused, TransferFailed, UsageError
from mlp.language import say

SMALL = 2**19
"""Tuning: bytes of a file that comes together with others in one request: fewer requests, for how much is in memory."""
MOST_TOGETHER = 200
"""Tuning: files in one request."""
TOGETHER = 2 * 2**20
"""Given: bytes of the files in one request; the platform sends no more."""
QUERY = 6000
"""Tuning: letters of a request for many files: proxies take 8 KiB of an address."""


@dataclass
class Pulled:
    """Result of a download."""

    place: DataPlace
    to: str
    came: list[str] = field(default_factory=list)
    there: int = 0
    size: int = 0
    unverified: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Wanted:
    path: str
    to: Path
    entry: DataEntry


class Pull:
    """Download that can be ended at any moment; the same call again continues with the missing parts."""

    def __init__(self, client: Client, place: DataPlace, to: str | None, crew: Crew) -> None:
        self._place, self._crew, self._told = place, crew, crew.told
        self._remote = Remote(client, place.name, crew.stop)
        self._to = to
        self._lock = threading.Lock()
        self._found = Pulled(place, "")

    def run(self) -> Pulled:
        """Fetch all that is missing. Raises `Refused`, `TransferFailed` or `Unreachable`."""
        try:
            wanted = self._look()
            self._found.size = sum(one.entry.size for one in wanted)
            self._told.expect(self._found.size, len(wanted))
            self._crew.each(self._some, lots(wanted, _weigh, (MOST_TOGETHER, TOGETHER, QUERY)), self._remote)
        finally:
            self._remote.close()
        self._found.came.sort()
        return self._found

    def _look(self) -> list[_Wanted]:
        place = self._place
        own = place.path.rpartition("/")[2] or place.name
        if place.path:
            itself = self._remote.find(place.path)
            if itself is None:
                raise Refused(
                    "NotFound", say("dataset {name} has no {path}", path=place.path, name=place.name)
                )
            if not itself.directory:
                to = Path(self._to or ".")
                to = to / own if to.is_dir() or str(self._to).endswith("/") else to
                self._found.to = str(to)
                self._directory(to.parent)
                return [_Wanted(place.path, to, itself)]
        top = Path(self._to or own)
        self._found.to = str(top)
        found: list[_Wanted] = []
        left = [(place.path, top)]
        while left:
            path, here = left.pop()
            entries = self._remote.entries(path)
            self._directory(here)  # only for what exists
            for entry in entries:
                below = f"{path}/{entry.name}" if path else entry.name
                if entry.directory:
                    left.append((below, here / entry.name))
                else:
                    found.append(_Wanted(below, here / entry.name, entry))
        return found

    def _directory(self, path: Path) -> None:
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _unwritable(path, error) from error

    def _some(self, wanted: list[_Wanted]) -> None:
        """Fetch files of one directory in one request; missing ones are fetched alone."""
        missing = {one.entry.name: one for one in wanted if not self._is_kept(one)}
        came: dict[str, bytes] = {}
        if len(missing) > 1:
            directory = wanted[0].path.rpartition("/")[0]
            came = self._remote.patiently(lambda: self._remote.get_many(directory, missing))
        for name, one in missing.items():
            self._remote.go_on()
            download, content = _FileDownload(self._remote, one, self._told), came.get(name)
            verified = (content is not None and download.keep(content)) or download.run()
            with self._lock:
                self._found.came.append(one.path)
                if not verified:
                    self._found.unverified.append(one.path)
            self._told.add_file()

    def _is_kept(self, one: _Wanted) -> bool:
        """Whether the same file is already here; it is counted then."""
        if not self._is_there(one):
            return False
        with self._lock:
            self._found.there += 1
        self._told.add(one.entry.size)
        self._told.add_file()
        return True

    def _is_there(self, one: _Wanted) -> bool:
        """Return whether the same file is already here; a file with another content is overwritten."""
        if one.entry.digest is None or one.to.is_symlink():
            return False
        try:
            with one.to.open("rb", buffering=0) as file:
                at = local.plain(file)
                return (
                    at is not None
                    and at.st_size == one.entry.size
                    and local.checksum(file, self._remote.go_on) == one.entry.digest
                )
        except OSError:
            return False


class _FileDownload:
    """One file: the bytes of one state of it that are here; they outlive this process."""

    def __init__(self, remote: Remote, wanted: _Wanted, told: TransferProgress) -> None:
        self._remote, self._wanted, self._told = remote, wanted, told
        self._entry = wanted.entry
        state = self._entry.digest.hex() if self._entry.digest else self._entry.tag
        own = hashlib.sha256(f"{wanted.to.name}\0{self._entry.size}\0{state}".encode()).hexdigest()[:24]
        self._part = wanted.to.with_name(f".mlp-{own}.part")
        self._done = self._counted = 0
        self._digest = self._entry.digest
        self._hash = hashlib.sha256()

    def run(self) -> bool:
        """Fetch, verify and put it into place; return whether there was a checksum to hold it against."""
        to = self._wanted.to
        try:
            for again in (True, False):
                with open(self._part, "a+b", buffering=0, opener=through_no_link) as file:
                    _alone(file, to)
                    self._take_up(file)
                    self._remote.patiently(lambda file=file: self._fetch(file), lambda: self._done)  # type: ignore[misc]
                    if self._digest in (None, self._hash.digest()):
                        self._part.replace(to)
                        return self._digest is not None
                    self._part.unlink(missing_ok=True)
                    self._count(0)
                if not again:
                    break
        except OSError as error:
            raise _unwritable(to, error) from error
        raise TransferFailed(
            say(
                "{path} arrived with content that differs from its checksum; it was not kept",
                path=self._wanted.path,
            )
        )

    def keep(self, content: bytes) -> bool:
        """Put the file into place with this content; return False, and do nothing, if the content is not that of its checksum."""
        if len(content) != self._entry.size or hashlib.sha256(content).digest() != self._entry.digest:
            return False
        to = self._wanted.to
        try:
            with open(self._part, "a+b", buffering=0, opener=through_no_link) as file:
                _alone(file, to)
                file.truncate(0)
                left = memoryview(content)
                while left:
                    left = left[file.write(left) :]
                self._part.replace(to)
        except OSError as error:
            raise _unwritable(to, error) from error
        self._count(len(content))
        return True

    def _take_up(self, file: Any) -> None:
        """Begin with the bytes that are here."""
        size = os.fstat(file.fileno()).st_size
        if size > self._entry.size or (size and not (self._entry.digest or self._entry.tag)):
            file.truncate(0)
        self._hash = hashlib.sha256()
        buffer = memoryview(bytearray(BLOCK))
        file.seek(0)
        self._count(0)
        while count := file.readinto(buffer):
            self._hash.update(buffer[:count])
            self._count(self._done + count)
            self._remote.go_on()

    def _fetch(self, file: Any) -> None:
        if self._done == self._entry.size and (self._done or self._entry.digest):
            return
        asked = {}
        if self._done:
            asked = {
                "Range": f"bytes={self._done}-",
                **({"If-Range": self._entry.tag} if self._entry.tag else {}),
            }
        with self._remote.get(self._wanted.path, asked) as answer:
            if answer.status != 206 or not str(answer.getheader("content-range")).startswith(
                f"bytes {self._done}-"
            ):
                file.truncate(0)
                self._hash = hashlib.sha256()
                self._count(0)
                if answer.status != 200:
                    raise Cut(say("the file changes all the time"))
            self._digest = digest_of(answer.getheader("repr-digest")) or self._entry.digest
            whole = self._done + int(answer.getheader("content-length") or 0)
            self._copy(answer, file, whole)
        if self._done != whole:
            raise Cut(say("the connection was cut"))

    def _copy(self, answer: Any, file: Any, whole: int) -> None:
        buffer = memoryview(bytearray(BLOCK))
        while self._done < whole and (count := answer.readinto(buffer)):
            piece = buffer[:count]
            self._hash.update(piece)
            while piece:
                piece = piece[file.write(piece) :]
            self._count(self._done + count)
            self._remote.go_on()

    def _count(self, done: int) -> None:
        self._done = done
        self._told.add(done - self._counted)
        self._counted = done


def _weigh(one: _Wanted) -> tuple[object, tuple[int, ...]] | None:
    if one.entry.size > SMALL or one.entry.digest is None:
        return None
    return one.to.parent, (1, one.entry.size, len("&contents=") + len(quote(one.entry.name)))


def _alone(file: Any, to: Path) -> None:
    """Raise where another program is at the same file."""
    try:
        import fcntl  # noqa: PLC0415 - not on every system
    except ImportError:
        return
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UsageError(say("{path} is being written by another mlp data pull", path=str(to))) from None


def _unwritable(path: Path, error: OSError) -> UsageError:
    return UsageError(
        say("{path} cannot be written ({why})", path=str(path), why=error.strerror or str(error))
    )
