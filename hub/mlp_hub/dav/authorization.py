"""The entrance of requests: their dataset, the rights of their token, and headers that keep browsers from running files."""

from __future__ import annotations

import base64
import contextlib
import json
import logging
import re
import stat
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote, urlparse
from xml.sax.saxutils import escape

from wsgidav.dav_error import DAVError

from mlp_hub.dav.access_client import Access, AccessClient, DataAsker, ServiceAnswer
from mlp_hub.dav.connections.draining import drain, linger
from mlp_hub.dav.connections.slow_clients import SlowBodies
from mlp_hub.dav.files import batches, listing
from mlp_hub.dav.files.multipart_uploads import FilePart, PartUploads
from mlp_hub.dav.files.resources import LENGTH, MADE, STILL, TREE
from mlp_hub.dav.files.tree import BadPathError, Parts, Tree, UploadPlaces, parts_of
from mlp_hub.dav.read_through import SourceClient, SourceTree
from mlp_hub.domain.errors import OutOfReach
from mlp_hub.isolation import TenantRoots
from mlp_language.catalogue import LANGUAGES, catalogue, chosen
from mlp_language.message import Message, msg, verbatim
from mlp_language.render import Reader, render

log = logging.getLogger(__name__)
Environ = dict[str, Any]
Start = Callable[..., Any]
App = Callable[[Environ, Start], Iterable[bytes]]

STARTED = "mlp.started"
READS = frozenset({"GET", "HEAD", "OPTIONS", "PROPFIND"})
WRITES = frozenset({"PUT", "DELETE", "MKCOL", "COPY", "MOVE", "PROPPATCH", "LOCK", "UNLOCK", "POST"})
MOST_OF_USER = 24
"""Limit of data: requests of one user for files of datasets at a time."""
MOST = 72
"""Safety: requests for files of all together, however slowly they are sent and taken: the rest of the threads refuse, and say that this lives."""
SHARED = 48
"""Safety: of these, requests of users with another request in progress; the rest is for first ones.

So a few users do not hold all.
"""
MOST_LISTINGS = 4
"""Safety: of these, listings: each has a whole directory in memory."""
MOST_THROUGH_OF_USER = 8
"""Safety: of these, requests for files of a source: an endpoint that hardly sends keeps each of them."""
MOST_THROUGH = 40
"""Safety: requests for files of sources, of all users together: whatever endpoints do, files that are here find a thread."""
SHARED_THROUGH = 20
"""Safety: of these, requests of users with another request in progress; the rest is for first ones.

So a few users do not hold all.
"""
XML_MAX = 1 << 17
"""Safety: bytes of a body that is not a file."""
_RANGE = re.compile(r"bytes=(\d{1,18}-\d{0,18}|-\d{1,18})")
COOKIES_MAX = 8192
"""Safety: characters of the cookies that are handed on."""
GUARD = (
    ("Content-Security-Policy", "sandbox; default-src 'none'"),
    ("X-Content-Type-Options", "nosniff"),
    ("Content-Disposition", "attachment"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cache-Control", "private, no-cache"),
)
"""Headers for tenants' files, which are never a page of the platform: browsers show and run nothing."""


for _tag in LANGUAGES:
    catalogue(_tag)  # read now: no file is read while requests are served


class NotServed(Exception):  # noqa: N818 - what happened
    """Answer that replaces the requested one."""

    def __init__(
        self, status: int, message: Message, reason: str | None = None, *headers: tuple[str, str]
    ) -> None:
        super().__init__(str(message))
        self.status, self.message, self.reason, self.headers = status, message, reason, headers


class AuthorizingApp:
    """WSGI application around wsgidav's. `prefixes` are the paths below which users' datasets are, each without its last `/`."""

    def __init__(
        self,
        app: App,
        service: AccessClient,
        roots: TenantRoots,
        uploads: UploadPlaces,
        prefixes: Iterable[str],
        *,
        is_locked: Callable[[Tree, Parts, Environ], bool] = lambda *_: False,
        endpoints: Sequence[str] = (),
    ) -> None:
        """`endpoints`: those at private addresses that the operator named."""
        self._sources = SourceClient(service, endpoints)
        self._parts = PartUploads(service, is_locked)
        self._batches = batches.Batches(service, is_locked)
        self._app, self._service, self._roots, self._uploads = app, service, roots, uploads
        self._prefixes = sorted(prefixes, key=len, reverse=True)
        self.slow = SlowBodies()
        self._busy: Counter[str] = Counter()
        self._listing: Counter[str] = Counter()
        self._through: Counter[str] = Counter()
        self._lock = threading.Lock()
        self.ready = threading.Event()

    def __call__(self, environ: Environ, start: Start) -> Iterator[bytes]:
        """Answer one request."""
        if environ["PATH_INFO"] == "/health":
            yield from self._health(start)
            return
        yield from self._answered(environ, start)
        linger(environ)

    def _answered(self, environ: Environ, start: Start) -> Iterator[bytes]:
        try:
            yield from self._admitted(environ, start)
        except NotServed as refused:
            yield from _refuse(environ, start, refused)
        except DAVError as error:
            yield from _refuse(environ, start, _of(error))
        except (ValueError, OverflowError):  # a header says what is no number, no date or no address
            log.info("a request that cannot be read was refused", exc_info=True)
            said = NotServed(400, msg("a header of the request cannot be read"), "Invalid")
            yield from _refuse(environ, start, said)

    def _health(self, start: Start) -> Iterator[bytes]:
        """Answer that it is alive, whether it serves, and the service's answer about its token.

        It reads no disk, because a disk can hang.
        """
        body = json.dumps({"ready": self.ready.is_set(), "token": self._service.token_state}).encode()
        start("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
        yield body

    def drain(self, patience_s: float) -> None:
        """Stop new requests; return when all are answered, or after `patience_s` seconds."""
        self.ready.clear()
        until = time.monotonic() + patience_s
        while self._busy and time.monotonic() < until:
            time.sleep(0.02)

    def _admitted(self, environ: Environ, start: Start) -> Iterator[bytes]:
        if not self.ready.is_set():
            raise NotServed(
                503, msg("the platform is starting; try again in a moment"), None, ("Retry-After", "1")
            )
        _check_browser(environ)
        asker = _asker(environ)
        method = environ["REQUEST_METHOD"]
        if method not in READS | WRITES:
            raise NotServed(405, msg("{method} is not a WebDAV method", method=method[:20]))
        prefix, path = self._place(environ)
        try:
            parts = parts_of(path)
        except BadPathError as bad:
            raise NotServed(403, bad.message, "Invalid") from None
        if len(parts) < 2:
            raise NotServed(403, msg("name a dataset: {prefix}/USER/DATASET/", prefix=prefix), "Invalid")
        if method in {"COPY", "MOVE"}:
            _check_destination(environ, prefix, parts)
        user, name = parts[:2]
        language = str(environ.get("HTTP_ACCEPT_LANGUAGE", ""))[:200]
        if method == "DELETE" and len(parts) == 2:
            yield from self._delete(environ, start, asker, self._service.delete(asker, user, name, language))
            return
        access = self._access(asker, user, name, language, write=method in WRITES)
        environ[LENGTH] = _length(environ)
        if not _RANGE.fullmatch(str(environ.get("HTTP_RANGE", ""))):
            # of several, and of what is none, the whole file comes (RFC 9110, 14.2)
            environ.pop("HTTP_RANGE", None)
        environ["wsgidav.auth.user_name"] = user
        environ["wsgidav.auth.realm"] = environ["wsgidav.auth.roles"] = ""
        with self._turn(self._busy, user, MOST_OF_USER), contextlib.ExitStack() as held:
            self._check_shared(self._busy, user, MOST, SHARED)
            self._hold(environ, asker, access, held)
            yield from self._answer(environ, start, environ[TREE], parts[2:])

    def _hold(self, environ: Environ, asker: DataAsker, access: Access, held: contextlib.ExitStack) -> None:
        """Open the objects that an authorised request needs until it is answered."""
        method, user, name = environ["REQUEST_METHOD"], access.user, access.name
        if method == "PROPFIND" or batches.are_wanted(environ) or listing.is_asked(environ):
            held.enter_context(self._turn(self._listing, user, MOST_LISTINGS))

        def still_reads() -> bool:
            return self._service.may(asker, user, name, write=False).status not in {401, 403, 404}

        def still_may() -> bool:
            return self._service.may(asker, user, name, write=True).status not in {401, 403}

        if method not in WRITES:
            held.enter_context(self.slow.answers(environ, still_reads))
        environ[STILL] = still_may
        if access.through:
            environ[TREE] = held.enter_context(self._source_tree(access))
            return

        def still_there() -> None:
            self._access(asker, user, name, access.language, write=False)

        writes = method in WRITES
        environ[TREE] = held.enter_context(self._tree(access, still_there, write=writes))
        if writes:
            held.enter_context(self.slow.watched(environ, still_may))

    def _answer(self, environ: Environ, start: Start, tree: Tree, parts: Parts) -> Iterator[bytes]:
        """Answer an authorised request for a path within a dataset."""
        listed = environ["REQUEST_METHOD"] == "PROPFIND"
        if listed and environ.get("HTTP_DEPTH", "infinity").strip() not in {"0", "1"}:
            found = tree.stat(parts)
            if found is not None and stat.S_ISDIR(found.st_mode):
                yield from _refuse_endless(environ, start)
                return
        packed = batches.are_wanted(environ)
        if packed or listing.is_asked(environ):
            body_of, kind = (
                (batches.contents, batches.KIND) if packed else (listing.page_of, "application/json")
            )
            yield from self.slow.taken(environ, [_whole(environ, start, body_of(environ, tree, parts), kind)])
            return
        if batches.is_asked(environ):
            if parts:
                raise NotServed(
                    403, msg("many files in one request are sent to the dataset itself"), "Invalid"
                )
            count = self._batches.receive(environ, tree, environ[LENGTH])
            yield _whole(environ, start, json.dumps({"files": count}).encode())
            return
        part = FilePart.from_request(environ, environ[LENGTH]) if environ["REQUEST_METHOD"] == "PUT" else None
        if part is not None:
            yield from self._take_part(environ, start, tree, parts, part)
            return
        yield from self.slow.taken(environ, self._app(environ, _guarded(environ, start)))

    def _take_part(
        self, environ: Environ, start: Start, tree: Tree, parts: Parts, part: FilePart
    ) -> Iterator[bytes]:
        status, here = self._parts.receive(environ, tree, parts, part)
        headers = [("Content-Length", "0"), ("Upload-Offset", str(here))]
        _guarded(environ, start)(f"{status} {HTTPStatus(status).phrase}", headers)
        yield b""

    @contextlib.contextmanager
    def _turn(self, busy: Counter[str], user: str, most: int) -> Iterator[None]:
        """Count a request of a user until this ends; refuse one too many."""
        with self._lock:
            if busy[user] >= most:
                raise NotServed(
                    429,
                    msg(
                        "{n} requests for files of {user} are in progress; try again in a moment",
                        n=most,
                        user=user,
                    ),
                    None,
                    ("Retry-After", "1"),
                )
            busy[user] += 1
        try:
            yield
        finally:
            with self._lock:
                busy[user] -= 1
                if not busy[user]:
                    del busy[user]

    @contextlib.contextmanager
    def _tree(self, access: Access, still_there: Callable[[], None], *, write: bool) -> Iterator[Tree]:
        """Open the tree of the dataset's tenant, which stays where it is meanwhile."""
        try:
            with (
                self._roots.using(access.tenant, write=write) as root,
                self._uploads.uploads_of(root) as uploads,
                contextlib.closing(Tree(root, uploads, access, still_there)) as tree,
            ):
                yield tree
        except OutOfReach as away:
            raise NotServed(503, away.message, None, ("Retry-After", "30")) from away
        except OSError as error:
            raise NotServed(503, msg("the disk reports: {error}", error=str(error.strerror))) from error

    @contextlib.contextmanager
    def _source_tree(self, access: Access) -> Iterator[Tree]:
        """Open what the source of a dataset has."""
        with self._turn(self._through, access.user, MOST_THROUGH_OF_USER):
            self._check_shared(self._through, access.user, MOST_THROUGH, SHARED_THROUGH)
            yield SourceTree(self._sources, access)

    def _check_shared(self, busy: Counter[str], user: str, most: int, shared: int) -> None:
        """Refuse a request of a user, counted already, that is one too many beside those of all."""
        with self._lock:
            others, of_user = sum(busy.values()) - 1, busy[user]
        if others < (most if of_user == 1 else shared):
            return
        through = busy is self._through
        text = (
            msg("{n} requests for files of sources are in progress; try again in a moment", n=others)
            if through
            else msg("{n} requests for files are in progress; try again in a moment", n=others)
        )
        raise NotServed(429, text, None, ("Retry-After", "1"))

    def _place(self, environ: Environ) -> tuple[str, str]:
        """Return the prefix of a request's path, and the rest of it."""
        raw = environ["PATH_INFO"]
        try:
            path = raw.encode("latin-1").decode()
        except UnicodeError:
            raise NotServed(403, msg("the path is not UTF-8"), "Invalid") from None
        if "%2f" in path.lower():  # which the server leaves as it is
            raise NotServed(403, msg("the path has an encoded /, which a name cannot have"), "Invalid")
        for prefix in self._prefixes:
            if path.startswith(f"{prefix}/"):
                return prefix, path[len(prefix) :]
        raise NotServed(404, msg("there is nothing here"))

    def _access(self, asker: DataAsker, user: str, name: str, language: str, *, write: bool) -> Access:
        said = self._service.may(asker, user, name, write=write, language=language)
        if said.status != 200:
            raise _said(said, asker)
        found = said.body
        return Access(
            found["uid"],
            found["user"],
            found["name"],
            found["owner"],
            language,
            found["tenant"],
            found["through"],
        )

    def _delete(
        self, environ: Environ, start: Start, asker: DataAsker, said: ServiceAnswer
    ) -> Iterator[bytes]:
        if said.status != 200:
            raise _said(said, asker)
        start_response = _guarded(environ, start)
        start_response("204 No Content", [("Content-Length", "0")])
        yield b""


def _refuse_endless(environ: Environ, start: Start) -> Iterator[bytes]:
    """Refuse to list all that is below, as RFC 4918 (9.1) has it: it would be in memory as a whole."""
    said = msg("directories are listed one at a time: send the header Depth: 1, or 0")
    text = render(said, Reader(chosen("", str(environ.get("HTTP_ACCEPT_LANGUAGE", ""))[:200])))
    body = (
        '<?xml version="1.0" encoding="utf-8"?>'
        f'<D:error xmlns:D="DAV:"><D:propfind-finite-depth/><msg xmlns="urn:mlp-hub">{escape(text)}</msg></D:error>'
    ).encode()
    headers = [("Content-Type", "application/xml; charset=utf-8"), ("Content-Length", str(len(body)))]
    _guarded(environ, start)("403 Forbidden", headers)
    yield body


def _check_destination(environ: Mapping[str, Any], prefix: str, parts: tuple[str, ...]) -> None:
    """Refuse what WsgiDAV would take for another place, and what it would empty before it fails."""
    asked = unquote(str(environ.get("HTTP_DESTINATION", "")))
    try:
        # as WsgiDAV reads it, lest it is another place there
        path = urlparse(asked, allow_fragments=False).path
    except ValueError:
        raise NotServed(400, msg("the Destination is not an address"), "Invalid") from None
    if set(asked) & set(";?#"):
        raise NotServed(
            403, msg("a file cannot be copied or moved to a name with ;, ? or #; upload it there"), "Invalid"
        )
    try:
        there = parts_of(path.removeprefix(prefix))
    except BadPathError as bad:
        raise NotServed(403, bad.message, "Invalid") from None
    shorter = min(len(there), len(parts))
    if there[:shorter] == parts[:shorter]:
        raise NotServed(
            403,
            msg("one of the two places is inside the other, or the same; nothing was changed"),
            "Invalid",
        )


def _said(said: ServiceAnswer, asker: DataAsker) -> NotServed:
    reason = said.body.get("reason") if isinstance(said.body, dict) else None
    if said.status == 401:
        # a browser would ask for a password, over a page that knows better where one logs in
        return _who() if asker.token else NotServed(401, msg("the session is over: log in again"))
    status = 404 if reason == "NotFound" else said.status if said.status in (403, 429, 503) else 503
    return NotServed(status, said.message, reason)


def _who() -> NotServed:
    return NotServed(
        401,
        msg("send a token: Authorization: Bearer TOKEN, or as the password of any user"),
        None,
        ("WWW-Authenticate", 'Bearer realm="data"'),
        ("WWW-Authenticate", 'Basic realm="data", charset="UTF-8"'),
    )


def _asker(environ: Mapping[str, Any]) -> DataAsker:
    """Return who asks: the token of a request goes before what a browser sends by itself."""
    cookies, xsrf = str(environ.get("HTTP_COOKIE", "")), str(environ.get("HTTP_X_XSRFTOKEN", ""))
    if "HTTP_AUTHORIZATION" in environ or not cookies:
        return DataAsker(_token(environ))
    if max(len(cookies), len(xsrf)) > COOKIES_MAX or not f"{cookies}{xsrf}".isprintable():
        raise NotServed(
            400, msg("the cookies are longer than any cookie of the platform, or not text"), "Invalid"
        )
    return DataAsker(cookies=cookies, xsrf=xsrf)


def _token(environ: Mapping[str, Any]) -> str:
    """Return the token of a request."""
    kind, _, value = str(environ.get("HTTP_AUTHORIZATION", "")).partition(" ")
    value = value.strip()
    if kind.lower() == "basic":
        try:
            value = base64.b64decode(value, validate=True).decode().partition(":")[2]
        except ValueError:
            value = ""
    elif kind.lower() not in ("bearer", "token"):
        value = ""
    if not value or not value.isascii() or not value.isprintable() or " " in value or len(value) > 4096:
        raise _who()
    return value


def _check_browser(environ: Mapping[str, Any]) -> None:
    """Refuse what a page of another site has a browser send: it would know a password that was once entered."""
    if environ.get("HTTP_SEC_FETCH_SITE", "none") not in ("none", "same-origin"):
        raise NotServed(403, msg("requests of other sites' pages are refused"), "Forbidden")


def _length(environ: Environ) -> int | None:
    """Return the announced length of a body; None where it comes in chunks. Raises for one that is none."""
    if "chunked" in environ.get("HTTP_TRANSFER_ENCODING", "").lower():
        return None
    text = environ.get("CONTENT_LENGTH") or "0"
    if not (text.isascii() and text.isdecimal()) or len(text) > 18:
        raise NotServed(400, msg("Content-Length is not a number of bytes"))
    length = int(text)
    most = batches.BATCH_MAX if batches.is_asked(environ) else XML_MAX
    if environ["REQUEST_METHOD"] != "PUT" and length > most:
        raise NotServed(
            413, msg("the body has {length} bytes; at most {most} are possible", length=length, most=most)
        )
    return length


def _whole(environ: Environ, start: Start, body: bytes, kind: str = "application/json") -> bytes:
    """Begin the answer 200 with a body of this content type; return the body."""
    _guarded(environ, start)("200 OK", [("Content-Type", kind), ("Content-Length", str(len(body)))])
    return body


def _guarded(environ: Environ, start: Start) -> Start:
    def guarded(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
        drain(environ)
        if status.startswith("204") and environ.get(MADE):  # which wsgidav does not learn
            status = "201 Created"
        ours = {name.lower() for name, _ in GUARD}
        kept = [(k, v) for k, v in headers if k.lower() not in ours and k.lower() != "server"]
        if environ.get(STARTED):  # what was to come broke off: where nothing was sent yet, this is the answer
            exc_info = exc_info or sys.exc_info()
            request = environ.get("mlp.request")
            if request is not None and not request.sent_headers:
                request.outheaders = []
        environ[STARTED] = True
        return start(status, [*kept, *GUARD], exc_info)

    return guarded


def _refuse(environ: Environ, start: Start, refused: NotServed) -> Iterator[bytes]:
    tag = chosen("", str(environ.get("HTTP_ACCEPT_LANGUAGE", ""))[:200])
    body = {"msg": render(refused.message, Reader(tag))}
    if refused.reason is not None:
        body["reason"] = refused.reason
    data = json.dumps(body).encode()
    headers = [("Content-Type", "application/json"), ("Content-Length", str(len(data))), *refused.headers]
    try:
        phrase = HTTPStatus(refused.status).phrase
    except ValueError:
        phrase = "Refused"
    _guarded(environ, start)(f"{refused.status} {phrase}", headers)
    yield b"" if environ["REQUEST_METHOD"] == "HEAD" else data


def _of(error: DAVError) -> NotServed:
    status = int(error.value)
    found = error.context_info or HTTPStatus(status).phrase
    text = found if isinstance(found, Message) else verbatim(str(found))
    reasons = {403: "Forbidden", 404: "NotFound", 409: "Conflict", 412: "Conflict", 423: "Conflict"}
    return NotServed(status, text, getattr(error, "reason", None) or reasons.get(status))
