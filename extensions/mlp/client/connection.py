"""Requests to the service: each thread has its own connection, and failed ones are repeated.

Requests that can be repeated without harm are repeated with growing waits while the service is
away. So a restart of the hub is not visible. These are all except a submit without a key, and every
submit has one.
"""

from __future__ import annotations

import contextlib
import copy
import http.client
import json
import random
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self
from urllib.parse import quote as _quote
from urllib.parse import urlencode

from mlp.client import settings
from mlp.client.transport import Address
from mlp.errors import MLPError, NoHub, Refused, Unauthorized, Unreachable
from mlp.language import answered_in, say
from mlp.language import headers as reader

Json = dict[str, Any]
FIRST_WAIT = 0.15
LONGEST_WAIT = 2.0
TRANSFER_S = 60.0
"""Tuning: seconds for which a transfer's step is repeated without progress: the platform might restart."""
LEAST_S = 2.0
"""Seconds that a try is given at least, however little time its caller has."""
RETRIED = frozenset({429, 502, 503, 504})
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


def quote(part: str) -> str:
    """Quote one step of a path."""
    return _quote(part, safe="")


@dataclass(frozen=True, slots=True)
class Answer:
    """A response as it came."""

    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes

    def json(self) -> Any:
        """Return the parsed body; raises `Unreachable` when it is not the service that answered."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            raise Unreachable(
                say(
                    "the answer is not MLP Hub's (HTTP {status}, {type}); is MLP_API_URL right?",
                    status=self.status,
                    type=self.headers.get("content-type", "-"),
                )
            ) from None


class ServiceConnection:
    """Connection to the service as one user.

    `data_url` is the address of datasets' files, if that is not beside the API. `patience` is the
    number of seconds for which a request is repeated without an answer; `timeout` bounds each try.
    `anonymous` sends no token: for clients that are about to get one.
    """

    def __init__(
        self,
        url: str,
        token: str,
        user: str | None = None,
        *,
        data_url: str = "",
        anonymous: bool = False,
        timeout: float = 30.0,
        patience: float = 10.0,
        sleep: Callable[[float], object] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.url = url
        self.address = Address.parse(url)
        self.data = Address.parse(data_url) if data_url else data_beside(self.address)
        self.token = token
        self.anonymous = anonymous
        self.timeout = timeout
        self.patience = patience
        self._user = user
        self.sleep = sleep
        self.clock = clock
        self._local = threading.local()

    @classmethod
    def from_env(cls, **options: Any) -> Self:
        """Make a client for this environment; raises `Unreachable` or `Unauthorized` where that cannot be."""
        found = settings.load()
        return cls(found.url, found.token, found.user, data_url=found.data_url, **options)

    @property
    def user(self) -> str:
        """Owner of the token; the service is asked once."""
        if self._user is None:
            self._user = str(self.get("/auth"))
        return self._user

    def patiently(self) -> Self:
        """Return a client for transfers that outlasts a restart of the platform.

        A client without patience gives one without patience.
        """
        found = copy.copy(self)
        found.patience = max(self.patience, TRANSFER_S) if self.patience else 0.0
        return found

    # ------------------------------------------------------------ requests

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        /,
        **query: Any,
    ) -> Answer:
        """Send and return the answer; raises one of this package's errors for any that is not a success."""
        target = self._target(path, query)
        data = None if body is None else json.dumps(body, allow_nan=False).encode()
        sent = self._headers(headers)
        if data is not None:
            sent["Content-Type"] = "application/json"
        until = self.clock() + self._bounded(self.patience)
        wait = FIRST_WAIT
        tries = 0
        while True:
            tries += 1
            pause = wait * (0.5 + random.random() / 2)  # noqa: S311 - spreads retries, guards nothing
            try:
                answer = self._once(method, target, data, sent)
                answered_in(answer.headers.get("content-language"))
            except (OSError, http.client.HTTPException) as error:
                if self.clock() + pause > until:
                    raise self.unreachable(error) from error
            else:
                if answer.status not in RETRIED:
                    break
                pause = max(pause, _seconds(answer.headers.get("retry-after")))
                if self.clock() + pause > until:
                    break
            self.sleep(pause)
            wait = min(wait * 2, LONGEST_WAIT)
        if method == "DELETE" and tries > 1 and _reason(answer) == "NotFound":
            return Answer(200, answer.headers, b"{}")  # an earlier try did it, its answer was lost
        return self.checked(answer)

    @contextlib.contextmanager
    def within(self, seconds: float | None) -> Iterator[None]:
        """Have this thread's requests take no longer than that, retries included; None: as long as they ever may."""
        self._local.within = None if seconds is None else self.clock() + seconds
        try:
            yield
        finally:
            self._local.within = None

    def _bounded(self, seconds: float, least: float = 0.0) -> float:
        until = getattr(self._local, "within", None)
        return seconds if until is None else min(seconds, max(least, until - self.clock()))

    def _target(self, path: str, query: Mapping[str, Any]) -> str:
        asked = {k: v for k, v in query.items() if v is not None}
        return self.address.base + path + (f"?{urlencode(asked)}" if asked else "")

    def told(self) -> dict[str, str]:
        """Return the headers that say who asks, and in which language."""
        return self._headers(None)

    def _headers(self, more: Mapping[str, str] | None) -> dict[str, str]:
        return {
            **({} if self.anonymous else {"Authorization": f"Bearer {self.token}"}),
            "Accept": "application/json",
            **reader(),
            **(more or {}),
        }

    @contextlib.contextmanager
    def opened(
        self, path: str, headers: Mapping[str, str], /, **query: Any
    ) -> Iterator[http.client.HTTPResponse]:
        """Send a GET once, on a separate connection, and return the answer to read piece by piece."""
        connection = self.address.http(self.timeout)
        try:
            connection.request("GET", self._target(path, query), headers=self._headers(headers))
            yield connection.getresponse()
        finally:
            connection.close()

    def get(self, path: str, /, **query: Any) -> Any:
        """GET and parse."""
        return self.request("GET", path, **query).json()

    def _once(self, method: str, target: str, data: bytes | None, headers: Mapping[str, str]) -> Answer:
        kept: http.client.HTTPConnection | None = getattr(self._local, "connection", None)
        for connection in (kept, None):
            conn = connection or self.address.http(self.timeout)
            self._local.connection = conn
            # a hub that is frozen takes connections all the same
            conn.timeout = self._bounded(self.timeout, LEAST_S)
            if conn.sock is not None:
                conn.sock.settimeout(conn.timeout)
            try:
                conn.request(method, target, body=data, headers=dict(headers))
                response = conn.getresponse()
                found = {k.lower(): v for k, v in response.getheaders()}
                return Answer(response.status, found, response.read())
            except (OSError, http.client.HTTPException) as error:
                conn.close()
                self._local.connection = None
                # the server may have closed a kept connection just now: once more on a fresh one
                if connection is None or isinstance(error, TimeoutError):
                    raise
        raise AssertionError("the second try returns or raises")

    def unreachable(self, error: Exception) -> Unreachable:
        """Return what to raise where the service does not answer."""
        why = str(error) or type(error).__name__
        return Unreachable(
            say(
                "MLP Hub does not answer at {address} ({why}). Running jobs are not affected.",
                address=self.address.shown,
                why=why,
            )
        )

    def checked(self, answer: Answer) -> Answer:
        """Return an answer that is a success; raises one of this package's errors for any other."""
        if 200 <= answer.status < 300:
            return answer
        error = self._error_of(answer)
        error.request_id = _request_id(answer)
        raise error

    def _error_of(self, answer: Answer) -> MLPError:
        if answer.status == 401:
            return Unauthorized(
                say(
                    "the token is not valid (any more). In a notebook: restart your server. Otherwise: mlp login"
                )
            )
        msg, reason = _message(answer), _reason(answer)
        if answer.status == 429 or answer.status >= 500:
            return Unreachable(
                msg
                or say("MLP Hub cannot answer just now (HTTP {status}); try again soon", status=answer.status)
            )
        if answer.status == 403 or reason:
            return Refused(reason or "Forbidden", msg or say("the request was refused without a reason"))
        return NoHub(
            say(
                "no MLP Hub answers at {address} (HTTP {status}); is MLP_API_URL correct?",
                address=f"{self.address.shown}{self.address.base}",
                status=answer.status,
            )
        )

    def pages(self, path: str, /, **query: Any) -> Iterator[Json]:
        """Yield all objects of a list, page after page."""
        cursor: str | None = None
        while True:
            answer = self.request("GET", path, cursor=cursor, **query)
            body = answer.json()
            following = answer.headers.get("x-next-cursor")
            if isinstance(body, dict):
                following = body.get("next_cursor") or following
                body = body.get("items", [])
            yield from body
            if not following or following == cursor:
                return
            cursor = following


def data_beside(api: Address) -> Address:
    """Return where files of datasets are, of the hub whose API this is: a socket beside its own, or a path beside its own."""
    base = f"{api.base.removesuffix('/api/v1')}/data"
    if api.scheme != "http+unix":
        return replace(api, base=base)
    return replace(api, host=f"{api.host.rpartition('/')[0]}/data.sock", base=base)


def delivery_key() -> dict[str, str]:
    """Return what makes one request of its deliveries, however often it is sent."""
    return {"Idempotency-Key": uuid.uuid4().hex}


def object_of(answer: Answer) -> Json:
    """Return the body where it is an object, else an empty one."""
    body = answer.json() if answer.body else {}
    return body if isinstance(body, dict) else {}


def _field(answer: Answer, name: str) -> str:
    try:
        body = json.loads(answer.body)
    except ValueError:
        return ""
    value = body.get(name) if isinstance(body, dict) else None
    return value if isinstance(value, str) else ""


def _request_id(answer: Answer) -> str:
    found = answer.headers.get("x-request-id") or _field(answer, "request_id")
    return found if _ID.fullmatch(found) else ""


def _message(answer: Answer) -> str:
    return _field(answer, "msg")


def _reason(answer: Answer) -> str:
    return _field(answer, "reason") if answer.status == 403 else ""


def _seconds(retry_after: str | None) -> float:
    try:
        return min(max(float(retry_after or 0), 0.0), 60.0)
    except ValueError:
        return 0.0
