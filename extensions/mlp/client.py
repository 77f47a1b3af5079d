"""The REST client: one method per thing that is done, plain dictionaries as on the wire.

Requests that may be repeated without harm (all but a submit without a key, and a submit has one) are repeated with
growing waits while the service is away, so that a restart of the hub is not seen. A client may be used by
several threads: each has its own connection.
"""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote as _quote
from urllib.parse import urlencode

from mlp import settings
from mlp.errors import Refused, Unauthorized, Unreachable
from mlp.transport import Address

Json = dict[str, Any]
FIRST_WAIT = 0.15
LONGEST_WAIT = 2.0
LOG_PAGE = 10_000
RETRIED = frozenset({429, 502, 503, 504})


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
        except ValueError:
            raise Unreachable(
                f"the answer is not MLP Hub's (HTTP {self.status}, {self.headers.get('content-type', 'no type')}); "
                "is MLP_API_URL right?"
            ) from None


class Client:
    """Talks to the service as one user.

    `patience` is for how many seconds a request is repeated while nobody answers; `timeout` bounds each try.
    """

    def __init__(
        self,
        url: str,
        token: str,
        user: str | None = None,
        *,
        timeout: float = 30.0,
        patience: float = 10.0,
        sleep: Callable[[float], object] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.address = Address.parse(url)
        self.token = token
        self.timeout = timeout
        self.patience = patience
        self._user = user
        self._sleep = sleep
        self._clock = clock
        self._local = threading.local()

    @classmethod
    def from_env(cls, **options: Any) -> Client:
        """Make a client for this environment; raises `Unreachable` or `Unauthorized` where that cannot be."""
        found = settings.load()
        return cls(found.url, found.token, found.user, **options)

    @property
    def user(self) -> str:
        """Whose token this is; the service is asked once."""
        if self._user is None:
            self._user = str(self.get("/auth"))
        return self._user

    # ------------------------------------------------------------ requests

    def request(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None, **query: Any
    ) -> Answer:
        """Send and return the answer; raises one of this package's errors for any that is not a success."""
        asked = {k: v for k, v in query.items() if v is not None}
        target = self.address.base + path + (f"?{urlencode(asked)}" if asked else "")
        data = None if body is None else json.dumps(body, allow_nan=False).encode()
        sent = {"Authorization": f"Bearer {self.token}", "Accept": "application/json", **(headers or {})}
        if data is not None:
            sent["Content-Type"] = "application/json"
        until = self._clock() + self.patience
        wait = FIRST_WAIT
        tries = 0
        while True:
            tries += 1
            pause = wait * (0.5 + random.random() / 2)  # noqa: S311 - spreads retries, guards nothing
            try:
                answer = self._once(method, target, data, sent)
            except (OSError, http.client.HTTPException) as error:
                if self._clock() + pause > until:
                    raise self._unreachable(error) from error
            else:
                if answer.status not in RETRIED:
                    break
                pause = max(pause, _seconds(answer.headers.get("retry-after")))
                if self._clock() + pause > until:
                    break
            self._sleep(pause)
            wait = min(wait * 2, LONGEST_WAIT)
        if method == "DELETE" and tries > 1 and _reason(answer) == "NotFound":
            return Answer(200, answer.headers, b"{}")  # an earlier try did it, its answer was lost
        return self._checked(answer)

    def get(self, path: str, **query: Any) -> Any:
        """GET and parse."""
        return self.request("GET", path, **query).json()

    def _once(self, method: str, target: str, data: bytes | None, headers: Mapping[str, str]) -> Answer:
        kept: http.client.HTTPConnection | None = getattr(self._local, "connection", None)
        for connection in (kept, None):
            conn = connection or self.address.http(self.timeout)
            self._local.connection = conn
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

    def _unreachable(self, error: Exception) -> Unreachable:
        why = str(error) or type(error).__name__
        return Unreachable(
            f"MLP Hub does not answer at {self.address.shown} ({why}). Jobs that run are not affected."
        )

    def _checked(self, answer: Answer) -> Answer:
        if 200 <= answer.status < 300:
            return answer
        if answer.status == 401:
            raise Unauthorized(
                "the token is not valid (any more). In a notebook: restart your server. Else: mlp login"
            )
        msg, reason = _message(answer), _reason(answer)
        if answer.status == 429 or answer.status >= 500:
            raise Unreachable(msg or f"MLP Hub cannot answer just now (HTTP {answer.status}); try again soon")
        if answer.status == 403 or reason:
            raise Refused(reason or "Forbidden", msg or "the request was refused without a reason")
        raise Unreachable(
            f"no MLP Hub answers at {self.address.shown}{self.address.base} (HTTP {answer.status}); "
            "is MLP_API_URL right?"
        )

    # --------------------------------------------------------------- verbs

    def _job(self, name: str, user: str | None = None) -> str:
        return f"/users/{quote(user or self.user)}/jobs/{quote(name)}"

    def submit(self, create: Json) -> Json:
        """Submit; a repeated delivery of this one call makes one job."""
        key = {"Idempotency-Key": uuid.uuid4().hex}
        return _object(self.request("POST", f"/users/{quote(self.user)}/jobs", create, key))

    def job(self, name: str, user: str | None = None) -> Json:
        """Return a job as on the wire."""
        return _object(self.request("GET", self._job(name, user)))

    def jobs(self, *, tenant: str | None = None) -> list[Json]:
        """Return all of the user's jobs, over all pages."""
        return list(self._pages(f"/users/{quote(self.user)}/jobs", tenant=tenant))

    def _pages(self, path: str, **query: Any) -> Iterator[Json]:
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

    def act(
        self, verb: str, name: str, user: str | None = None, *, size: Mapping[str, Any] | None = None
    ) -> Json:
        """Cancel, suspend, resume or resubmit; `size` is what a job is submitted again with."""
        return _object(self.request("PUT", f"{self._job(name, user)}:{verb}", dict(size or {})))

    def delete(self, name: str, user: str | None = None) -> Json:
        """Delete a job that has ended."""
        return _object(self.request("DELETE", self._job(name, user)))

    def why(self, name: str, user: str | None = None) -> Json:
        """Return why the job stands where it stands."""
        return _object(self.request("GET", f"{self._job(name, user)}/why"))

    def decisions(self, name: str, user: str | None = None) -> list[Json]:
        """Return why the scheduler started, stopped or resized the job, the oldest first; kept for two weeks."""
        return list(self.get(f"{self._job(name, user)}/decisions"))

    def events(self, name: str, user: str | None = None) -> list[Json]:
        """Return the job's timeline."""
        found = self.get(f"{self._job(name, user)}/events")
        return list(found.get("items", [])) if isinstance(found, dict) else list(found)

    def log(
        self, name: str, user: str | None = None, *, rank: int = 0, tail: int | None = None
    ) -> list[Json]:
        """Return a rank's log lines (`time`, `stream`, `text`), or the last `tail` of them."""
        if tail is not None and tail <= LOG_PAGE:
            return list(self.get(f"{self._job(name, user)}/logs", rank=rank, tail=tail)["lines"])
        found: deque[Json] = deque(maxlen=tail)
        since = 0
        while True:
            page = self.get(f"{self._job(name, user)}/logs", rank=rank, since=since, limit=LOG_PAGE)
            found.extend(page["lines"])
            if not page["lines"] or page["offset"] == since:
                return list(found)
            since = page["offset"]

    def quota(self) -> Any:
        """Return the user's tenants with what is used."""
        return self.get(f"/users/{quote(self.user)}/quota")

    def offer(self, shape: Json) -> Json:
        """Return what a job of this shape would get."""
        return _object(self.request("GET", "/offer", **shape))

    def tenants(self) -> list[Json]:
        """Return the tenants that this user sees."""
        return list(self._pages("/tenants"))

    def runtimes(self) -> list[Any]:
        """Return the runtimes on offer."""
        return list(self._pages("/runtimes"))


def _object(answer: Answer) -> Json:
    body = answer.json() if answer.body else {}
    return body if isinstance(body, dict) else {}


def _field(answer: Answer, name: str) -> str:
    try:
        body = json.loads(answer.body)
    except ValueError:
        return ""
    value = body.get(name) if isinstance(body, dict) else None
    return value if isinstance(value, str) else ""


def _message(answer: Answer) -> str:
    return _field(answer, "msg")


def _reason(answer: Answer) -> str:
    return _field(answer, "reason") if answer.status == 403 else ""


def _seconds(retry_after: str | None) -> float:
    try:
        return min(max(float(retry_after or 0), 0.0), 60.0)
    except ValueError:
        return 0.0
