"""Files of one dataset at the platform, by WebDAV: listed, sent, fetched, removed.

Each request can be repeated without harm, and is repeated while the platform is away. Each thread
has its own connection.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import random
import re
import socket
import ssl
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, TypeVar
from urllib.parse import unquote

from mlp.client.connection import RETRIED, TRANSFER_S, Answer, quote
from mlp.client.rest import Client
from mlp.data.local import BLOCK, read_into
from mlp.data.places import may_be_step
from mlp.errors import Refused, TransferFailed, TransferStopped, Unreachable
from mlp.language import say

T = TypeVar("T")
PAGE_MAX = 64 * 2**20
"""Safety: bytes of a page of a directory: bounds memory."""
ANSWER_MAX = 2**20
"""Safety: bytes of any answer that is not a file: bounds memory."""
PACKED = "application/vnd.mlp-hub.files"
"""Contract: content type of many files in one request."""
PACKS_UNKNOWN = frozenset({404, 405, 413, 415, 501})
"""Given: statuses by which a server says that it does not take many files in one request."""
_PACKED_LINE = re.compile(rb"(\d{1,9}) [0-9a-f]{64} ([!-~]{1,4096})\n")
SLOWEST = 8 * 2**20
"""Tuning: bytes that a disk stores in a second at least: for how long the answer to a file is waited for."""
CUT = (ConnectionError, TimeoutError, http.client.HTTPException, ssl.SSLError)


class Cut(Exception):  # noqa: N818 - what happened
    """Request without an answer, or with one of a wrong server; it can be repeated after a while."""

    def __init__(self, why: object, wait: float = 0.0) -> None:
        super().__init__(str(why) or type(why).__name__)
        self.wait = wait


class StaleConnection(Cut):
    """A connection that was kept, and that the other end had closed meanwhile: a fresh one is tried at once."""


@dataclass(frozen=True, slots=True)
class WholeFile:
    """A small file as it was read: its path in the dataset, its content, and that one's SHA-256."""

    path: str
    content: bytes
    digest: bytes


@dataclass(frozen=True, slots=True)
class DataEntry:
    """A file or a directory as it is there; `digest` is its SHA-256 where the platform knows that."""

    name: str
    directory: bool
    size: int = 0
    tag: str = ""
    digest: bytes | None = None
    modified: str = ""


class Remote:
    """Files of one dataset of the client's user; `stop` ends transfers in progress, in any thread."""

    def __init__(self, client: Client, name: str, stop: threading.Event | None = None) -> None:
        self._client = client
        self._base = f"/{quote(client.user)}/{quote(name)}"
        self._plain = f"/{client.user}/{name}"
        self._stop = stop or threading.Event()
        self._local = threading.local()
        self._takes_many = True
        self._open: set[http.client.HTTPConnection] = set()
        self._lock = threading.Lock()

    def close(self) -> None:
        """End all connections, those too that another thread is waiting at."""
        with self._lock:
            connections = list(self._open)
            self._open.clear()
        for connection in connections:
            with contextlib.suppress(OSError, AttributeError):
                connection.sock.shutdown(socket.SHUT_RDWR)

    def go_on(self) -> None:
        """Raise where all is to end."""
        if self._stop.is_set():
            raise TransferStopped(say("it was stopped"))

    def patiently(self, act: Callable[[], T], brings: Callable[[], int] = lambda: 0) -> T:
        """Call `act` repeatedly while it is cut; while it `brings` more each time, the repeats have no limit."""
        client = self._client
        patience = max(client.patience, TRANSFER_S) if client.patience else 0.0
        until, most, wait = float("inf"), -1, 0.1
        while True:
            self.go_on()
            try:
                return act()
            except StaleConnection:
                continue
            except (Cut, *CUT) as cut:
                self.go_on()
                if brings() > most:
                    until, most, wait = client.clock() + patience, brings(), 0.1
                pause = max(wait * (0.5 + random.random() / 2), getattr(cut, "wait", 0.0))  # noqa: S311 - spreads retries
                if client.clock() + pause > until:
                    raise client.unreachable(cut) from cut
                self._stop.wait(pause)
                wait = min(wait * 2, 2.0)

    # ------------------------------------------------------------ requests

    def entries(self, path: str = "") -> list[DataEntry]:
        """List a directory by name, page by page; a file lists as itself. Raises `Refused`."""
        found: dict[str, DataEntry] = {}
        after = ""
        while True:
            _, page, following = self.patiently(lambda after=after: self._page(path, after))  # type: ignore[misc]
            for entry in page:
                if entry.name not in found or not entry.directory:  # of one that is both the file is seen
                    found[entry.name] = entry
            if not following or following == after:
                return sorted(found.values(), key=lambda entry: entry.name)
            after = following

    def find(self, path: str) -> DataEntry | None:
        """Return what is at a path, without listing what is beside it; None for nothing. Raises `Refused`."""
        own = path.rpartition("/")[2]
        try:
            directory, page, _ = self.patiently(lambda: self._page(path, "", 1))
        except Refused as refused:
            if refused.reason == "NotFound":
                return None
            raise
        if directory:
            return DataEntry(own, True)
        return next((entry for entry in page if entry.name == own), None)

    def make_directory(self, path: str) -> None:
        """Make a directory where there is none."""
        answer = self.patiently(lambda: self._small("MKCOL", path))
        if answer.status != 405:  # something has its name: who lists sees what
            self._checked(answer)

    def delete(self, path: str) -> None:
        """Remove a file, or a directory with all in it."""
        self._checked(self.patiently(lambda: self._small("DELETE", path)))

    def put(self, path: str, file: BinaryIO, size: int, digest: bytes, sent: Callable[[int], object]) -> bool:
        """Send `size` bytes of a file once; False if the platform received bytes that do not match the digest."""
        headers = {
            "Content-Length": str(size),
            "Content-Type": "application/octet-stream",
            "Repr-Digest": f"sha-256=:{base64.b64encode(digest).decode()}:",
        }
        with self._connected() as connection:
            self._begin(connection, "PUT", path, headers)
            try:
                self._send(connection, file, size, sent)
            except (BrokenPipeError, ConnectionResetError):
                answer = _answer(connection)  # it was refused before all was read
            else:
                answer = self._late_answer(connection, size)
        if answer.status == 400:
            return False
        self._checked(answer)
        return True

    def put_many(self, files: Sequence[WholeFile]) -> bool:
        """Send small files in one request; False if they have to be sent one by one, which says what is wrong with which."""
        if not self._takes_many:
            return False
        body = b"".join(
            b"%d %s %s\n%s" % (len(f.content), f.digest.hex().encode(), quote(f.path).encode(), f.content)
            for f in files
        )
        headers = {"Content-Length": str(len(body)), "Content-Type": PACKED}
        with self._connected() as connection:
            self._begin(connection, "POST", "", headers)
            try:
                connection.send(body)
            except (BrokenPipeError, ConnectionResetError):
                answer = _answer(connection)
            else:
                answer = self._late_answer(connection, len(body))
        if answer.status in RETRIED:
            raise self._busy(answer)
        self._takes_many = answer.status not in PACKS_UNKNOWN
        return answer.status == 200

    def get_many(self, directory: str, names: Collection[str]) -> dict[str, bytes]:
        """Return the contents of small files of a directory by their names, of those that the platform sends together."""
        if not self._takes_many:
            return {}
        query = "&".join(f"contents={quote(name)}" for name in names)
        with self._connected() as connection:
            self._begin(connection, "GET", directory, {}, f"?{query}")
            answer = _whole(connection.getresponse(), PAGE_MAX)
        if answer.status in RETRIED:
            raise self._busy(answer)
        if answer.status == 200 and answer.headers.get("content-type") == PACKED:
            with contextlib.suppress(ValueError):
                return _unpacked(answer.body)
        self._takes_many = False
        return {}

    def arrived(self, path: str, size: int, digest: bytes) -> int:
        """Return the bytes of a large file that already arrived; its size if it is whole by that."""
        answer = self._part(path, None, (0, 0, size), digest, lambda _: None)
        return size if answer.status in {201, 204} else _offset(answer)

    def put_part(
        self,
        path: str,
        file: BinaryIO,
        part: tuple[int, int, int],
        digest: bytes,
        sent: Callable[[int], object],
    ) -> int | None:
        """Send a part (begin, end, size of all) of a large file; return how much is there, None where all has another digest."""
        answer = self._part(path, file, part, digest, sent)
        if answer.status == 400:
            return None
        return part[2] if answer.status in {201, 204} else _offset(answer)

    def _part(
        self,
        path: str,
        file: BinaryIO | None,
        part: tuple[int, int, int],
        digest: bytes,
        sent: Callable[[int], object],
    ) -> Answer:
        begin, end, size = part
        headers = {
            "Content-Length": str(end - begin),
            "Content-Range": f"bytes {begin}-{end - 1}/{size}" if file else f"bytes */{size}",
            "Content-Type": "application/octet-stream",
            "Repr-Digest": f"sha-256=:{base64.b64encode(digest).decode()}:",
        }
        with self._connected() as connection:
            self._begin(connection, "PUT", path, headers)
            try:
                if file is not None:
                    self._send(connection, file, end - begin, sent, begin)
            except (BrokenPipeError, ConnectionResetError):
                answer = _answer(connection)
            else:
                answer = self._late_answer(connection, size)
        if answer.status == 409 and "upload-offset" in answer.headers:
            return answer
        return answer if answer.status == 400 else self._checked(answer)

    def _late_answer(self, connection: http.client.HTTPConnection, size: int) -> Answer:
        """Wait for the answer to a file of that size, or its last part: it comes when all was verified and is on the disk."""
        connection.sock.settimeout(self._client.timeout + size / SLOWEST)
        answer = _answer(connection)
        if (
            connection.sock is not None
        ):  # else that answer was the last one on it, as a proxy may say at any time
            connection.sock.settimeout(self._client.timeout)
        return answer

    @contextlib.contextmanager
    def get(self, path: str, headers: Mapping[str, str]) -> Iterator[http.client.HTTPResponse]:
        """Give the answer to a request for a file, to be read piece by piece."""
        with self._connected() as connection:
            self._begin(connection, "GET", path, headers)
            response = connection.getresponse()
            if response.status not in {200, 206, 416}:
                self._checked(_whole(response))
            yield response
            if not response.isclosed():  # left in the middle: what comes next on it would be the rest
                connection.close()

    # ----------------------------------------------------------- internals

    def _page(self, path: str, after: str, limit: int = 10_000) -> tuple[bool, list[DataEntry], str]:
        """Return whether it is a directory, some of its entries, and the key of the next ones (empty: no more)."""
        with self._connected() as connection:
            self._begin(connection, "GET", path, {}, f"?entries&limit={limit}&after={quote(after)}")
            answer = _whole(connection.getresponse(), PAGE_MAX)
        if answer.status != 200:
            self._checked(answer)
            raise self._foreign(answer.status)
        said = _json(answer)
        listed, following = said.get("entries"), said.get("next") or ""
        if not isinstance(listed, list) or not isinstance(following, str):
            raise Cut(say("the answer is not a list of files"))
        return said.get("directory") is True, [self._entry(one, path) for one in listed], following

    def _entry(self, told: Any, path: str) -> DataEntry:
        try:
            found = _entry(told)
        except (KeyError, TypeError, ValueError):
            raise Cut(say("the answer is not a list of files")) from None
        if not may_be_step(found.name):
            text = say(
                "{address} lists a file outside of the requested directory: {path}",
                address=self._client.data.shown,
                path=f"{path}/{found.name}"[:200],
            )
            raise TransferFailed(text)
        return found

    def _small(self, method: str, path: str) -> Answer:
        with self._connected() as connection:
            self._begin(connection, method, path, {})
            answer = _answer(connection)
        if answer.status in RETRIED:
            raise self._busy(answer)
        return answer

    def _send(
        self,
        connection: http.client.HTTPConnection,
        file: BinaryIO,
        size: int,
        sent: Callable[[int], object],
        begin: int = 0,
    ) -> None:
        buffer = memoryview(bytearray(min(BLOCK, max(size, 1))))
        file.seek(begin)
        left = size
        while left:
            count = read_into(file, buffer[: min(left, len(buffer))])
            if not count:  # it is shorter by now: what comes is not what was announced
                raise Cut(say("the file became shorter while it was sent"))
            connection.send(buffer[:count])
            left -= count
            sent(count)
            self.go_on()

    @contextlib.contextmanager
    def _connected(self) -> Iterator[http.client.HTTPConnection]:
        """Give this thread's connection; one that anything goes wrong with is not used again."""
        connection: http.client.HTTPConnection | None = getattr(self._local, "connection", None)
        kept = connection is not None and connection.sock is not None
        if connection is None or not kept:
            connection = self._client.data.http(self._client.timeout)
            self._local.connection = connection
            with self._lock:
                self._open.add(connection)
        try:
            yield connection
        except BaseException as error:
            self._local.connection = None
            with self._lock:
                self._open.discard(connection)
            connection.close()
            if kept and isinstance(error, ConnectionError):
                raise StaleConnection(error) from error
            raise

    def _begin(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        headers: Mapping[str, str],
        query: str = "",
    ) -> None:
        if connection.sock is None:
            try:
                connection.connect()
            except OSError as error:  # whatever a network has
                raise Cut(error) from error
        steps = "".join(f"/{quote(step)}" for step in path.split("/") if step)
        connection.putrequest(
            method, f"{self._client.data.base}{self._base}{steps}{query}", skip_accept_encoding=True
        )
        for name, value in {**self._client.told(), **headers}.items():
            connection.putheader(name, value)
        connection.endheaders()

    def _checked(self, answer: Answer) -> Answer:
        """Return an answer that is a success; raises for any other."""
        if answer.status in RETRIED:
            raise self._busy(answer)
        said = _json(answer)
        if answer.status in {404, 409, 412, 413, 423, 507}:
            if not said:
                raise self._foreign(answer.status)
            raise Refused(str(said.get("reason") or "Conflict"), str(said.get("msg")))
        return self._client.checked(answer)

    def _busy(self, answer: Answer) -> Cut:
        after = answer.headers.get("retry-after", "")
        return Cut(
            _json(answer).get("msg") or f"HTTP {answer.status}", float(after) if after.isdecimal() else 0.0
        )

    def _foreign(self, status: int) -> Unreachable:
        args = {"address": f"{self._client.data.shown}{self._client.data.base}", "status": status}
        return Unreachable(
            say(
                "{address} does not serve files of datasets (HTTP {status}); set another address with MLP_DATA_URL",
                **args,
            )
        )


def _unpacked(body: bytes) -> dict[str, bytes]:
    """Take apart the answer to a request for many files. Raises ValueError for one that cannot be read."""
    found, at = {}, 0
    while at < len(body):
        line = _PACKED_LINE.match(body, at)
        if line is None or line.end() + int(line[1]) > len(body):
            raise ValueError("it is not a list of files")
        at = line.end() + int(line[1])
        found[unquote(line[2].decode())] = body[line.end() : at]
    return found


def _offset(answer: Answer) -> int:
    said = answer.headers.get("upload-offset", "")
    if not said.isdecimal():
        raise Cut(say("the platform does not report how many bytes are there"))
    return int(said)


def digest_of(header: str | None) -> bytes | None:
    """Return the SHA-256 that a `Repr-Digest` says; None where it says none."""
    kind, _, value = (header or "").strip().partition("=")
    try:
        found = base64.b64decode(value.strip(":"), validate=True) if kind.lower() == "sha-256" else b""
    except ValueError:
        found = b""
    return found if len(found) == 32 else None


def _entry(told: Any) -> DataEntry:
    """Read an entry of a page. Raises KeyError, TypeError and ValueError for an invalid one."""
    name, size, tag = told["name"], told["size"], told["tag"]
    digest, modified = told["digest"], told["modified"]
    if (
        not isinstance(size, int)
        or size < 0
        or not all(isinstance(text, str) for text in (name, tag, modified))
    ):
        raise TypeError
    return DataEntry(name, told["directory"] is True, size, tag, digest_of(digest), modified)


def _answer(connection: http.client.HTTPConnection) -> Answer:
    return _whole(connection.getresponse())


def _whole(response: http.client.HTTPResponse, most: int = ANSWER_MAX) -> Answer:
    body = response.read(most + 1)
    if len(body) > most:
        raise Cut(say("the answer is too long"))
    if response.length:
        raise Cut(say("the answer was cut"))
    response.read()  # the end of one in chunks: the connection may be used again
    return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, body)


def _json(answer: Answer) -> dict[str, Any]:
    with contextlib.suppress(Unreachable):
        found = answer.json()
        if isinstance(found, dict):
            return found
    return {}
