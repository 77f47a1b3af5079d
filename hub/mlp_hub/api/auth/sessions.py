"""Browser sessions: a cookie with a random id, and the hub token that it represents.

They are rows of the database, so a restart of the service logs nobody out. Another replica that
takes over logs nobody out either. A row has the id's hash, and the token masked with a key made
from the id: a reader of the database learns neither. A row that was read is cached for 3 seconds,
as the hub's answer about a token is. A session that ends here ends at once. One that another
replica ended ends within that time.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from mlp_hub.store.database import Database
from mlp_hub.store.records import StoredSession

COOKIE = "mlp-session"
"""The cookie's name, where only one hub has the host name for itself."""
BELIEVED_S = 3.0
"""Tuning: seconds that a session is believed without reading it again: how soon a logout elsewhere counts, for fewer reads."""
REMEMBERED = 10_000
"""Safety: sessions that are remembered: bounds memory."""


@dataclass(frozen=True, slots=True)
class BrowserSession:
    """A session that is valid until `expires_at` (seconds since the epoch), as far as the hub keeps its token."""

    id: str
    token: str
    user: str
    expires_at: float


class Sessions:
    """All sessions of a database; the platform's sweep removes those that are over.

    `lifetime_s`: seconds that a login lasts, which bounds the harm of a lost cookie.
    """

    def __init__(
        self,
        db: Database,
        clock: Callable[[], float],
        cookie: str = COOKIE,
        lifetime_s: float = 14 * 86_400.0,
    ) -> None:
        self.lifetime_s = lifetime_s
        self.cookie = cookie  # browsers share cookies between ports, so two hubs on a host need two names
        self._db = db
        self._clock = clock
        self._known: OrderedDict[str, tuple[float, BrowserSession]] = OrderedDict()  # and when it was read
        self._ended = 0

    async def create(self, user: str, token: str) -> BrowserSession:
        """Begin a session; on disk before it is returned."""
        session = BrowserSession(secrets.token_urlsafe(32), token, user, self._clock() + self.lifetime_s)
        stored = StoredSession(user, mask(session.id, token.encode()), session.expires_at)
        await self._db.write(lambda tx: tx.sessions.add(_name(session.id), stored))
        self._remember(session)
        return session

    async def get(self, sid: str) -> BrowserSession | None:
        """Find a session by its cookie; None when it is unknown or over."""
        if not sid or len(sid) > 100 or not sid.isascii():
            return None
        read_at, session = self._known.get(sid, (0.0, None))
        if session is None or not 0 <= self._clock() - read_at < BELIEVED_S:
            session = await self._read(sid)
        if session is not None and session.expires_at <= self._clock():
            await self.end(sid)
            return None
        return session

    async def end(self, sid: str) -> None:
        """Forget a session."""
        self._ended += 1
        await self._db.write(lambda tx: tx.sessions.remove(_name(sid)))
        self._ended += 1
        self._known.pop(sid, None)

    async def _read(self, sid: str) -> BrowserSession | None:
        ended = self._ended
        stored = await self._db.read(lambda tx: tx.sessions.get(_name(sid)))
        if stored is None:
            self._known.pop(sid, None)
            return None
        session = BrowserSession(sid, mask(sid, stored.masked).decode(), stored.user, stored.expires_at)
        if ended == self._ended:  # what is being read while it ends is not known afterwards
            self._remember(session)
        return session

    def _remember(self, session: BrowserSession) -> None:
        self._known[session.id] = (self._clock(), session)
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)


def xsrf_token(sid: str) -> str:
    """Derive the session's XSRF token; a page learns it from GET /session."""
    return hashlib.blake2b(sid.encode(), digest_size=24, person=b"mlp-xsrf").hexdigest()


def xsrf_matches(sid: str, given: str) -> bool:
    """Compare in constant time."""
    return hmac.compare_digest(xsrf_token(sid).encode(), given.encode("utf-8", "replace"))


def _name(sid: str) -> str:
    return hashlib.sha256(b"name:" + sid.encode()).hexdigest()


def mask(sid: str, data: bytes) -> bytes:
    """Mask what belongs to a secret id of 256 random bits with a key made from it; the same again unmasks."""
    # the id is 256 random bits used for this one session, so the stream is never used twice
    stream = hashlib.shake_256(b"token:" + sid.encode()).digest(len(data))
    return bytes(a ^ b for a, b in zip(data, stream, strict=True))
