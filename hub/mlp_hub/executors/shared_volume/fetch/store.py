"""An object store, as much of it as is needed: list below a prefix, and read an object in one state of it from any byte."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import certifi
from minio import Minio
from minio.error import InvalidResponseError, MinioException, S3Error
from urllib3.exceptions import HTTPError, LocationParseError

from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.executors.shared_volume.fetch import addresses
from mlp_hub.executors.shared_volume.fetch.listing import MOST_KEYS, SourceObject
from mlp_hub.executors.shared_volume.fetch.patience import patience
from mlp_hub.executors.shared_volume.fetch.signing import AMAZON
from mlp_hub.executors.shared_volume.fetch.words import is_private, not_as_it_should, said_of
from mlp_hub.executors.workspace import OpenSource
from mlp_language.message import Message, msg

BLOCK = 1 << 20
"""Tuning: bytes that are read at a time."""
MOST_PAGES = 2 * MOST_KEYS // 1000
"""Safety: pages of one list: an endpoint may have another one for ever."""
LISTING_S = 600.0
"""Safety: seconds after which no further page is asked for."""
SPARE_S, LOWEST = 60.0, 4096
"""Safety: seconds for a piece of an object, plus the time of its size at this number of bytes a second."""
MOST_TAG = 1024
"""Safety: characters of an object's tag, which is kept beside each file and sent with each request; real ones have up to 40."""
MOST_SIZE = 1 << 60
"""Safety: bytes of an object; no store has one that is larger, nor one of less than nothing, which would be read to no end."""
_CODE = re.compile(r"[A-Za-z0-9]{1,60}")


class ChangedError(Exception):
    """The object is another one by now, or gone."""


class CutError(Exception):
    """Error for an object of which less came than it has; `have` is the number of bytes that are here."""

    def __init__(self, have: int = 0) -> None:
        super().__init__(have)
        self.have = have


class EndlessListError(Exception):
    """Error for an endpoint whose list does not end."""


class LongTagError(Exception):
    """An endpoint gives an object a tag longer than `MOST_TAG`."""


class WrongSizeError(Exception):
    """An endpoint gives an object a size below 0, or of `MOST_SIZE` or more."""


def _size_of(found: Any) -> int:
    """Return the bytes of an object. Raises `WrongSizeError`."""
    size = int(found.size or 0)
    if not 0 <= size < MOST_SIZE:
        raise WrongSizeError
    return size


def _tag_of(found: Any) -> str:
    """Return the tag of an object as it is kept. Raises `LongTagError`."""
    tag = str(found.etag or "").strip('"')
    if len(tag) > MOST_TAG:
        raise LongTagError
    return tag


class _Pages:
    """Counter of the pages of a list in progress, before each request for one."""

    def __init__(self) -> None:
        self._listing, self._until = False, 0.0
        self._pages = self._keys = self._before = 0

    def bounded(self, keys: Iterator[Any]) -> Iterator[Any]:
        """Yield what is listed. Raises `EndlessListError`."""
        self._listing, self._until = True, time.monotonic() + LISTING_S
        self._pages, self._keys, self._before = 0, 0, -1
        try:
            for one in keys:
                self._keys += 1
                yield one
        finally:
            self._listing = False

    def ask(self, url: str) -> None:
        """Note a request. Raises `EndlessListError` where the list comes to no end: nothing new came, or too much for too long."""
        if not self._listing or "list-type=2" not in url:
            return
        if self._keys == self._before or self._pages >= MOST_PAGES or time.monotonic() > self._until:
            raise EndlessListError
        self._before = self._keys
        self._pages += 1


class ObjectStore:
    """One bucket; its errors are `Refused` with the reason, and never contain a credential."""

    def __init__(self, source: OpenSource) -> None:
        self._source = source
        where = urlsplit(source.endpoint or AMAZON)
        self.host = where.netloc
        self._pages = _Pages()
        self._client = Minio(
            where.netloc,
            source.key_id or None,
            source.key or None,
            source.token or None,
            secure=where.scheme == "https",
            region=source.region or None,
            http_client=addresses.client(source.allowed, certifi.where(), before=self._pages.ask),
        )

    def objects(self, prefix: str) -> Iterator[tuple[str, int, str]]:
        """Yield the key, size and tag of each object whose key begins with a prefix."""
        try:
            for one in self._pages.bounded(
                self._client.list_objects(self._source.bucket, prefix=prefix, recursive=True)
            ):
                yield one.object_name, _size_of(one), _tag_of(one)
        except Exception as error:  # noqa: BLE001 - each becomes a refusal
            raise self._refused(error) from None

    def now(self, one: SourceObject) -> SourceObject | None:
        """Return what an object is now; None where it is gone."""
        try:
            found = self._client.stat_object(self._source.bucket, one.key)
            size, tag = _size_of(found), _tag_of(found)
        except S3Error as error:
            if error.code in {"NoSuchKey", "NoSuchObject"}:
                return None
            raise self._refused(error) from None
        except Exception as error:  # noqa: BLE001 - each becomes a refusal
            raise self._refused(error) from None
        return SourceObject(one.key, one.parts, size, tag)

    def read(self, one: SourceObject, begin: int) -> Iterator[bytes]:
        """Yield an object from a byte on; first how it is encrypted, as text. Raises `ChangedError`, `CutError`."""
        response = self._opened(one, begin)
        try:
            length = response.headers.get("content-length")
            ranged = str(response.headers.get("content-range", "")).startswith(f"bytes {begin}-")
            if length != str(one.size - begin) or (begin and (response.status != 206 or not ranged)):
                raise ChangedError
            yield str(response.headers.get("x-amz-server-side-encryption", "")).encode()
            left = one.size - begin
            try:
                while left and (data := self._piece(response, min(BLOCK, left))):
                    left -= len(data)
                    yield data
            except (HTTPError, OSError):
                raise CutError from None
            if left:
                raise CutError
        finally:
            response.close()

    @staticmethod
    def _piece(response: Any, size: int) -> bytes:
        with patience.within(getattr(response, "line", None), SPARE_S + size / LOWEST):
            data: bytes = response.read(size, decode_content=False)
        return data

    def _opened(self, one: SourceObject, begin: int) -> Any:
        try:
            return self._client.get_object(
                self._source.bucket, one.key, offset=begin, request_headers={"If-Match": f'"{one.tag}"'}
            )
        except S3Error as error:
            if error.code in {"PreconditionFailed", "NoSuchKey", "NoSuchObject", "InvalidRange"}:
                raise ChangedError from None
            raise self._refused(error) from None
        except Exception as error:  # noqa: BLE001 - each becomes a refusal
            raise self._refused(error) from None

    def _refused(self, error: BaseException) -> Refused:
        """Return the refusal for an error, without the endpoint's long message."""
        if isinstance(error, Refused):
            return error
        inner: BaseException | None = error
        while inner is not None:
            if isinstance(inner, addresses.ForbiddenAddressError):
                return Refused(Reason.FORBIDDEN, is_private(inner.host[:100]))
            inner = inner.__cause__ or inner.__context__
        return Refused(Reason.INVALID, self._words(error))

    def _words(self, error: BaseException) -> Message:
        source, host = self._source, self.host[:100]
        if isinstance(error, EndlessListError):
            return msg(
                "{host} lists bucket {bucket} without an end; choose a longer prefix",
                host=host,
                bucket=source.bucket,
            )
        code = error.code if isinstance(error, S3Error) and _CODE.fullmatch(str(error.code)) else ""
        if code:
            return said_of(str(code), host, source.bucket, secret=bool(source.key_id))
        if isinstance(error, (HTTPError, LocationParseError, OSError)):
            return not_as_it_should(host)
        if isinstance(error, (InvalidResponseError, MinioException, LongTagError, WrongSizeError)):
            return msg("the answer of {host} is not from an object store", host=host)
        return msg("the answer of {host} cannot be read", host=host)
