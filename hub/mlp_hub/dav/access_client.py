"""Requests to the service by its UNIX socket or over TCP, with the credentials of the asking user or with the platform's own token."""

from __future__ import annotations

import http.client
import json
import secrets
import socket
import threading
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

from mlp_hub.unix_sockets import Place
from mlp_language.message import Message, msg, verbatim

API = "/services/mlp/api/v1"
PATIENCE_S = 30.0
"""Safety: seconds for which the service is waited for."""
TAKEN_S = 15.0
"""Safety: seconds for which a request for room is retried without an answer, as during a restart."""
AGAIN_S = 0.5
"""Tuning: seconds until what could not be told is told again: fewer tries, for how late it counts."""


@dataclass(frozen=True, slots=True)
class ServiceAnswer:
    """An answer of the service; `status` is 503 where there was none."""

    status: int
    body: Any

    @property
    def message(self) -> Message:
        """The sentence of a refusal, in the language that it was asked in."""
        found = self.body.get("msg") if isinstance(self.body, dict) else None
        return verbatim(found) if isinstance(found, str) else msg("the platform does not answer; try again")


@dataclass(frozen=True, slots=True)
class DataAsker:
    """Caller of the file server: a token, or a browser with a session of the platform.

    A browser sends the session's cookies, and the token that its pages send.
    """

    token: str = ""
    cookies: str = ""
    xsrf: str = ""

    def headers(self) -> dict[str, str]:
        """Return the credentials of a request to the service, which alone can check them."""
        if self.token:
            return {"Authorization": f"Bearer {self.token}"}
        return {"Cookie": self.cookies, **({"X-XSRFToken": self.xsrf} if self.xsrf else {})}


@dataclass(frozen=True, slots=True)
class Access:
    """Dataset that a token may use: its uid, the system uid of its files' owner (None: the platform), and the asker's language.

    The files are in the tree of `tenant`, as the service knows it.
    """

    uid: str
    user: str
    name: str
    owner: int | None
    language: str = ""
    tenant: str = ""
    through: bool = False  # its files are those of its source


class StorageRoom(Protocol):
    """Service that is asked for room, and gets reports of its use."""

    def request_room(self, uid: str, size: int, language: str = "") -> ServiceAnswer:
        """Ask for `size` bytes to write."""
        ...

    def report_written(self, uid: str, granted: int, grown: int, gone: int = 0) -> None:
        """Tell what was written."""
        ...


class AccessClient:
    """Requests and reports to the service; `token` is the platform's own."""

    def __init__(self, where: Place, token: str) -> None:
        self._where = where
        self._own = DataAsker(token)
        self._unreported: deque[dict[str, object]] = deque()
        self._news = threading.Event()
        self.refused: bool | None = None
        """Whether the service does not know the platform's own token; None while it said nothing of it."""
        threading.Thread(target=self._report_writes, name="tell", daemon=True).start()

    def may(
        self, asker: DataAsker, user: str, name: str, *, write: bool, language: str = ""
    ) -> ServiceAnswer:
        """Ask whether who asks may use a dataset; the answer's body is its access."""
        verb, method = ("write", "PUT") if write else ("read", "GET")
        return self.ask(method, f"{_path(user, name)}:{verb}", asker, language=language)

    def delete(self, asker: DataAsker, user: str, name: str, language: str = "") -> ServiceAnswer:
        """Delete a dataset."""
        return self.ask("DELETE", _path(user, name), asker, language=language)

    def request_room(self, uid: str, size: int, language: str = "") -> ServiceAnswer:
        """Ask for `size` bytes to write; retry under the same key without an answer, and finally take it back."""
        once = secrets.token_hex(16)
        until = time.monotonic() + TAKEN_S
        while True:
            asked = {"uid": uid, "size": size, "once": once}
            said = self.ask("PUT", "/stored:take", self._own, asked, language=language)
            if said.status != 503:
                return said
            if time.monotonic() >= until:
                self._later({"uid": uid, "granted": size, "grown": 0, "took": once})
                return said
            threading.Event().wait(AGAIN_S)

    def report_written(self, uid: str, granted: int, grown: int, gone: int = 0) -> None:
        """Report the bytes that were written. The report is repeated until the service confirms it, because granted bytes stay charged.

        `gone`: bytes that were removed as it seems. The service looks for itself: programs of the owner say how long files are.
        """
        if granted or grown or gone:
            what = {
                "uid": uid,
                "granted": granted,
                "grown": grown,
                "gone": gone,
                "once": secrets.token_hex(16),
            }
            if not self._give(what):
                self._later(what)

    def _later(self, what: dict[str, object]) -> None:
        self._unreported.append({"once": secrets.token_hex(16), **what})
        self._news.set()

    def open_source(self, what: dict[str, object], language: str = "") -> ServiceAnswer:
        """Ask for the address of an object of a dataset's source, for a user who may read the dataset."""
        return self.ask("PUT", "/stored:open", self._own, what, language=language)

    @property
    def token_state(self) -> str:
        """Service's answer about the token: `accepted`, `refused`, or `unknown` while it has not been asked."""
        return {None: "unknown", True: "refused", False: "accepted"}[self.refused]

    def begun(self) -> bool:
        """Report that no work is in progress here; return whether the service received it."""
        status = self.ask("PUT", "/stored:begun", self._own).status
        if status in (200, 401, 403):  # else nobody looked at it
            self.refused = status != 200
        return status == 200

    def ask(
        self, method: str, path: str, asker: DataAsker, body: Any = None, *, language: str = ""
    ) -> ServiceAnswer:
        """Send one request; a refusal comes in the language."""
        connection = _connection_to(self._where)
        headers = {**asker.headers(), "Host": "localhost", "Connection": "close"}
        if language:
            headers["Accept-Language"] = language
        sent = None if body is None else json.dumps(body).encode()
        if sent is not None:
            headers["Content-Type"] = "application/json"
        try:
            connection.request(method, API + path, sent, headers)
            answer = connection.getresponse()
            return ServiceAnswer(answer.status, json.loads(answer.read() or b"null"))
        except (OSError, http.client.HTTPException, ValueError):
            return ServiceAnswer(503, None)
        finally:
            connection.close()

    def _give(self, what: dict[str, object]) -> bool:
        # refused is heard too: nothing would change by saying it again
        return self.ask("PUT", "/stored:give", self._own, what).status in (200, 403)

    def _report_writes(self) -> None:
        while True:
            self._news.wait()
            self._news.clear()  # first: what comes from now on is told in the next turn, or in this one
            while self._unreported:
                if self._give(self._unreported[0]):
                    self._unreported.popleft()
                else:
                    threading.Event().wait(AGAIN_S)


def _path(user: str, name: str) -> str:
    return f"/users/{quote(user, safe='')}/datasets/{quote(name, safe='')}"


def _connection_to(where: Place) -> http.client.HTTPConnection:
    if isinstance(where, Path):
        return _Connection(str(where))
    return http.client.HTTPConnection(*where, timeout=PATIENCE_S)


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=PATIENCE_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(PATIENCE_S)
        self.sock.connect(self._path)
