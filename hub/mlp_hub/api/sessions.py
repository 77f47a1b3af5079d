"""Browser sessions: a cookie with a random id, and the hub token that it stands for.

One small file a session, so that a restart of the service logs nobody out. A file's name is the id's hash and
the token in it is masked with a key made from the id: who reads the directory learns neither.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import secrets
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

log = logging.getLogger(__name__)
COOKIE = "mlp-session"
"""The cookie's name, where only one hub has the host name for itself."""
LIFETIME_S = 14 * 24 * 3600
REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class Session:
    """A session that is valid until `expires_at` (seconds since the epoch), as far as the hub keeps its token."""

    id: str
    token: str
    user: str
    expires_at: float


class _File(msgspec.Struct):
    user: str
    masked: str
    expires_at: float


class Sessions:
    """All sessions, below one directory (made with mode 0700)."""

    def __init__(self, directory: Path, clock: Callable[[], float], cookie: str = COOKIE) -> None:
        self.cookie = cookie  # browsers share cookies between ports, so two hubs on a host need two names
        self._dir = directory
        self._clock = clock
        self._known: dict[str, Session] = {}
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.sweep()

    def create(self, user: str, token: str) -> Session:
        """Begin a session; on disk before it is returned."""
        sid = secrets.token_urlsafe(32)
        session = Session(sid, token, user, self._clock() + LIFETIME_S)
        data = msgspec.json.encode(_File(user, _mask(sid, token.encode()).hex(), session.expires_at))
        handle, temporary = tempfile.mkstemp(dir=self._dir, prefix=".new-")  # mode 0600
        with os.fdopen(handle, "wb") as out:
            out.write(data)
        Path(temporary).replace(self._path(sid))
        self._remember(session)
        return session

    def get(self, sid: str) -> Session | None:
        """Find a session by its cookie; None when it is unknown or over."""
        if not sid or len(sid) > 100 or not sid.isascii():
            return None
        session = self._known.get(sid) or self._load(sid)
        if session is not None and session.expires_at <= self._clock():
            self.end(sid)
            return None
        return session

    def end(self, sid: str) -> None:
        """Forget a session."""
        self._known.pop(sid, None)
        self._path(sid).unlink(missing_ok=True)

    def sweep(self) -> None:
        """Remove the files of sessions that are over."""
        for path in self._dir.iterdir():
            try:
                if path.stat().st_mtime + LIFETIME_S <= self._clock():
                    path.unlink(missing_ok=True)
            except OSError as err:
                log.warning("session file %s: %s", path.name, err)

    def _load(self, sid: str) -> Session | None:
        try:
            data = msgspec.json.decode(self._path(sid).read_bytes(), type=_File)
            token = _mask(sid, bytes.fromhex(data.masked)).decode()
        except (OSError, ValueError):
            return None
        session = Session(sid, token, data.user, data.expires_at)
        self._remember(session)
        return session

    def _remember(self, session: Session) -> None:
        if len(self._known) >= REMEMBERED:
            self._known.clear()  # they are read from disk again
        self._known[session.id] = session

    def _path(self, sid: str) -> Path:
        return self._dir / hashlib.sha256(b"name:" + sid.encode()).hexdigest()


def xsrf_token(sid: str) -> str:
    """Derive the session's XSRF token; a page learns it from GET /session."""
    return hashlib.blake2b(sid.encode(), digest_size=24, person=b"mlp-xsrf").hexdigest()


def xsrf_matches(sid: str, given: str) -> bool:
    """Compare in constant time."""
    return hmac.compare_digest(xsrf_token(sid).encode(), given.encode("utf-8", "replace"))


def _mask(sid: str, data: bytes) -> bytes:
    # the id is 256 random bits used for this one session, so the stream is never used twice
    stream = hashlib.shake_256(b"token:" + sid.encode()).digest(len(data))
    return bytes(a ^ b for a, b in zip(data, stream, strict=True))
