"""Files of a dataset that is read through, for one request: the source lists and sends them.

Nothing of them is kept here. The service signs each address, for that one request, and no
credential is here. A source can send anything, so its data is bounded, and its names are used as
names only.
"""

from __future__ import annotations

import hashlib
import re
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from os import stat_result
from typing import Any, BinaryIO, NamedTuple, cast
from urllib.parse import unquote_plus
from xml.etree.ElementTree import XMLPullParser

from defusedxml.ElementTree import DefusedXMLParser
from wsgidav.dav_error import HTTP_CONFLICT, DAVError

from mlp_hub.dav.access_client import Access, AccessClient
from mlp_hub.dav.connections.slow_clients import LOWEST, SPARE_S
from mlp_hub.dav.files.tree import MOST_NAMES, Parts, Tree
from mlp_hub.dav.files.upload import refusal
from mlp_hub.executors.shared_volume.fetch.listing import is_path
from mlp_hub.executors.shared_volume.fetch.patience import patience
from mlp_hub.executors.shared_volume.fetch.words import is_private, not_as_it_should, said_of
from mlp_language.message import msg

PAGE_MAX = 4 << 20
"""Safety: bytes of one page of a list: a thousand keys of the longest, with their properties."""
PAGE_S = 60.0
"""Safety: seconds in which a page has to be whole."""
MOST_PAGES = 2 * MOST_NAMES // 1000
"""Safety: pages of one directory: an endpoint may have another one for ever, with nothing in it."""
LISTING_S = 300.0
"""Safety: seconds after which no further page of a directory is asked for."""
PIECE = 1 << 16
"""Safety: bytes of a page that are parsed at a time: each has the beginning or the end of an element."""
MOST_PARTS = 25
"""Safety: elements for each object in a page: twice the properties of one object."""
ERROR_MAX = 1 << 16
"""Safety: bytes of a refusal that are looked at."""
TAG_MAX = 200
"""Safety: characters of a tag, which is sent back in a header."""
_CODE = re.compile(rb"<Code>([A-Za-z0-9]{1,60})</Code>")
_BAD_GATEWAY = 502


class FoundObject(NamedTuple):
    """Entry at a path: its status as a file, and the tag of its content; directories have no tag."""

    at: stat_result
    tag: str = ""


@dataclass(frozen=True, slots=True)
class SourceAnswer:
    """Answer of a source, with its host and its prefix; the caller has to close it."""

    body: Any
    host: str
    prefix: str


class SourceClient:
    """Sends requests that the service signed, to allowed addresses only."""

    def __init__(self, service: AccessClient, allowed: Sequence[str]) -> None:
        self._service, self._allowed = service, tuple(allowed)
        self._pool: Any = None

    def get(self, access: Access, headers: dict[str, str], **ask: object) -> SourceAnswer:
        """Send one request. Raises `DAVError`."""
        said = self._service.open_source({"uid": access.uid, **ask}, access.language)
        if said.status != 200:
            raise refusal(said.status, said.body, said.message)
        host = str(said.body["host"])[:100]
        try:
            return SourceAnswer(self._sent(said.body, host, headers), host, str(said.body["prefix"]))
        except DAVError:
            raise
        except Exception as error:  # noqa: BLE001 - an endpoint that a user named may do whatever it likes
            raise _failed(error, host) from None

    def _sent(self, to: dict[str, Any], host: str, headers: dict[str, str]) -> Any:
        # so no body is in memory as a whole, and nothing is sent again behind the back of who waits
        response = self._client().urlopen(
            "GET", to["url"], headers=headers, preload_content=False, retries=False
        )
        if response.status in {200, 206}:
            return response
        with closing(response), patience.within(response.line, PAGE_S):
            found = _CODE.search(response.read(ERROR_MAX, decode_content=False))
        if response.status == 412:
            raise DAVError(HTTP_CONFLICT, msg("the object changed at the source meanwhile; ask for it again"))
        code = found[1].decode() if found else str(int(response.status))
        if code == "NoSuchKey":
            raise DAVError(404)
        raise DAVError(_BAD_GATEWAY, said_of(code, host, str(to["bucket"]), secret=bool(to["secret"])))

    def _client(self) -> Any:
        if self._pool is None:
            import certifi  # noqa: PLC0415 - of mlp-hub[s3], without which the service signs nothing

            from mlp_hub.executors.shared_volume.fetch import addresses  # noqa: PLC0415

            self._pool = addresses.client(self._allowed, certifi.where(), most=None)
        return self._pool


class SourceTree(Tree):
    """Files of one dataset, to read; requests that would write are refused before."""

    def __init__(self, client: SourceClient, access: Access) -> None:
        self.access = access
        self._client = client
        self._known: dict[Parts, FoundObject | None] = {(): _directory()}

    def close(self) -> None:
        """Do nothing: nothing is open."""

    def stat(self, parts: Parts) -> stat_result | None:
        """Return the object of that name, or else a directory where other keys continue the name."""
        found = self._at(parts)
        return None if found is None else found.at

    def names(self, parts: Parts) -> list[str]:
        """List a directory; the entries are known afterwards."""
        top, after = "".join(f"{part}/" for part in parts), ""
        found: dict[str, FoundObject] = {}
        until = time.monotonic() + LISTING_S
        for _ in range(MOST_PAGES):
            page, following = self._page(top, after=after)
            self._take(top, page, found)
            if len(found) > MOST_NAMES:
                raise DAVError(_BAD_GATEWAY, msg("there are more than {n} entries", n=MOST_NAMES))
            if not following or following == after:
                self._known |= {(*parts, name): one for name, one in found.items()}
                return sorted(found)
            after = following
            if time.monotonic() > until:
                break
        raise _endless()

    def page(self, parts: Parts, after: str, limit: int) -> tuple[list[str], str]:
        """List a part of a directory in the order of the source; the entries are known afterwards."""
        top = "".join(f"{part}/" for part in parts)
        found: dict[str, FoundObject] = {}
        until = time.monotonic() + LISTING_S
        for _ in range(MOST_PAGES):
            page, following = self._page(top, after=after)
            self._take(top, page, found)
            if not following or following == after:
                after = ""
                break
            after = following
            if len(found) >= limit or (found and time.monotonic() > until):
                break
        else:
            raise _endless()
        self._known |= {(*parts, name): one for name, one in found.items()}
        return sorted(found), after

    def looked_at(
        self, parts: Parts, names: Sequence[str], attribute: str
    ) -> Iterator[tuple[str, stat_result, bytes | None]]:
        """Yield what these of a directory are."""
        del attribute
        for name in names:
            if (found := self.stat((*parts, name))) is not None:
                yield name, found, None

    @staticmethod
    def _take(top: str, page: list[tuple[str, FoundObject]], found: dict[str, FoundObject]) -> None:
        for path, one in page:
            name = path[len(top) :].removesuffix("/")
            if path.startswith(top) and is_path((name,)) and "/" not in name:
                # of one that is both the file is seen, as by `stat`
                found[name] = one if one.tag else found.get(name, one)

    def read(self, parts: Parts) -> BinaryIO:
        """Open an object as it was when it was looked at."""
        found = self._at(parts)
        if found is None:
            raise DAVError(404)
        path, tag = "/".join(parts), found.tag

        def get(begin: int) -> SourceAnswer:
            headers = {"If-Match": tag, **({"Range": f"bytes={begin}-"} if begin else {})}
            return self._client.get(self.access, headers, path=path)

        return cast("BinaryIO", SourceFile(get, found.at.st_size))

    def attribute(self, parts: Parts, name: str) -> bytes | None:
        """Return None: the checksum of a file that is not here is unknown."""
        del parts, name
        return None

    def _at(self, parts: Parts) -> FoundObject | None:
        if parts not in self._known:
            self._known[parts] = self._look("/".join(parts)) if is_path(parts) else None
        return self._known[parts]

    def _look(self, path: str) -> FoundObject | None:
        # of all keys that begin so the one that is no longer comes first
        for one, found in self._page(path, limit=1, flat=False)[0]:
            if one == path:
                return found
        inside, _ = self._page(f"{path}/", limit=1, flat=False)
        return _directory() if any(one.startswith(f"{path}/") for one, _ in inside) else None

    def _page(
        self, path: str, *, after: str = "", limit: int = 1000, flat: bool = True
    ) -> tuple[list[tuple[str, FoundObject]], str]:
        """Return a page of the objects below a path, directories with a `/` at the end; and the next cursor."""
        answer = self._client.get(
            self.access, {}, path=path, listed=True, flat=flat, after=after, limit=limit
        )
        try:
            with closing(answer.body), patience.within(answer.body.line, PAGE_S):
                data = answer.body.read(PAGE_MAX + 1, decode_content=False)
            return _read_page(data, answer.prefix, limit)
        except DAVError:
            raise
        except Exception as error:  # noqa: BLE001 - as above
            raise _failed(error, answer.host) from None


class SourceFile:
    """An object that is open for reading from the sought position; `get` requests it from a byte on."""

    def __init__(self, get: Callable[[int], SourceAnswer], size: int) -> None:
        self._get, self._size = get, size
        self._begin = self._here = 0
        self._answer: SourceAnswer | None = None

    def seek(self, to: int) -> int:
        """Go there, before anything is read."""
        self._begin = self._here = to
        return to

    def read(self, size: int) -> bytes:
        """Read on; only the last piece is shorter than `size`. Raises `DAVError`, so that the client notices the missing rest."""
        size = min(size, self._size - self._here)
        if size <= 0:
            return b""
        if self._answer is None:
            self._answer = self._get(self._begin)
            self._check(self._answer)
        body = self._answer.body
        try:
            with patience.within(body.line, SPARE_S + size / LOWEST):
                data: bytes = body.read(size, decode_content=False)
        except Exception as error:  # noqa: BLE001 - as above
            raise _failed(error, self._answer.host) from None
        if not data:
            raise DAVError(_BAD_GATEWAY, not_as_it_should(self._answer.host))
        self._here += len(data)
        return data

    def close(self) -> None:
        """Leave off."""
        if self._answer is not None:
            self._answer.body.close()

    def _check(self, answer: SourceAnswer) -> None:
        """Refuse another part than was asked for, or another object."""
        said = answer.body.headers
        ranged = str(said.get("content-range", "")).startswith(f"bytes {self._begin}-")
        whole = said.get("content-length") == str(self._size - self._begin)
        if not whole or (self._begin and (answer.body.status != 206 or not ranged)):
            raise DAVError(HTTP_CONFLICT, msg("the object changed at the source meanwhile; ask for it again"))


def _read_page(data: bytes, prefix: str, limit: int) -> tuple[list[tuple[str, FoundObject]], str]:
    """Read a page. Raises what XML, numbers and dates do that are none."""
    found: list[tuple[str, FoundObject]] = []
    after = ""
    for item in _items(data, limit):
        kind = item.tag.rpartition("}")[2]
        texts = {each.tag.rpartition("}")[2]: each.text or "" for each in item}
        key = unquote_plus(texts.get("Key") or texts.get("Prefix") or "", errors="strict")
        if kind == "Contents" and key.startswith(prefix):
            found.append((key[len(prefix) :], _object(texts)))
        elif kind == "CommonPrefixes" and key.startswith(prefix):
            found.append((key[len(prefix) :], _directory()))
        elif kind == "NextContinuationToken":
            after = item.text or ""
    return found, after


def _items(data: bytes, limit: int) -> Iterator[Any]:
    """Yield what a page says, one after the other: of a page that is none no more is in memory than of one that is.

    Elements and attributes take many times what they are written with.
    """
    if len(data) > PAGE_MAX:
        raise ValueError("a page is too long")
    parser = XMLPullParser(("start", "end"), _parser=DefusedXMLParser(forbid_dtd=True))
    depth = parts = 0
    for at in range(0, len(data), PIECE):
        parser.feed(data[at : at + PIECE])
        before = parts
        events: Iterator[Any] = parser.read_events()
        for event, element in events:
            parts += 1
            depth += 1 if event == "start" else -1
            if parts > 2 * MOST_PARTS * (limit + 1) or depth > MOST_PARTS:
                raise ValueError("a page has more elements than there is to say")
            if event == "end" and depth == 1:
                yield element
                element.clear()
        if parts == before and at + PIECE < len(data):
            raise ValueError("a page has an element without an end")
    parser.close()


def _object(texts: dict[str, str]) -> FoundObject:
    size, tag = int(texts["Size"]), texts["ETag"]
    if not 0 <= size < 1 << 60 or not 0 < len(tag) <= TAG_MAX or not tag.isprintable() or not tag.isascii():
        raise ValueError("no object of such a size, or with such a tag")
    when = datetime.fromisoformat(texts["LastModified"]).timestamp()
    return FoundObject(_as_file(stat.S_IFREG | 0o444, size, when, tag), tag if tag[0] == '"' else f'"{tag}"')


def _directory() -> FoundObject:
    return FoundObject(_as_file(stat.S_IFDIR | 0o555, 0, 0.0, ""))


def _as_file(mode: int, size: int, when: float, tag: str) -> stat_result:
    # who asks again whether it is the same is told by a number of its content, as of a file by its inode
    number = int.from_bytes(hashlib.sha256(tag.encode()).digest()[:8], "big")
    seconds = int(when)
    times = {"st_mtime": when, "st_ctime": when, "st_mtime_ns": seconds * 10**9}
    return stat_result((mode, number, 0, 1, 0, 0, size, seconds, seconds, seconds), times)


def _endless() -> DAVError:
    return DAVError(
        _BAD_GATEWAY,
        msg("the source lists this directory without an end; list one below it"),
    )


def _failed(error: BaseException, host: str) -> DAVError:
    inner: BaseException | None = error
    while inner is not None:
        if type(inner).__name__ == "ForbiddenAddressError":
            return DAVError(403, is_private(host))
        inner = inner.__cause__ or inner.__context__
    return DAVError(_BAD_GATEWAY, not_as_it_should(host))
