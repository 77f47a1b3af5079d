"""Sessions of browsers."""

from __future__ import annotations

from sqlalchemy import delete, select

from mlp_hub.store.records import StoredSession
from mlp_hub.store.repos.base import Repo
from mlp_hub.store.tables import browser_session as t


class BrowserSessions(Repo):
    """Sessions by the SHA-256 (hex) of their cookie; neither cookie nor token can be read here."""

    __slots__ = ()

    def add(self, sha256: str, session: StoredSession) -> None:
        """Store a new session."""
        values = {"user": session.user, "masked": session.masked, "expires_at": session.expires_at}
        self._c.execute(t.insert(), {"sha256": sha256, **values})

    def get(self, sha256: str) -> StoredSession | None:
        """Return a session, also one that is over; None where there is none."""
        row = self._c.execute(select(t).where(t.c.sha256 == sha256)).first()
        return None if row is None else StoredSession(row.user, row.masked, row.expires_at)

    def remove(self, sha256: str) -> None:
        """Forget a session; nothing where there is none."""
        self._c.execute(delete(t).where(t.c.sha256 == sha256))

    def delete_expired(self, now: float) -> int:
        """Forget the sessions that are over; return how many."""
        return int(self._c.execute(delete(t).where(t.c.expires_at <= now)).rowcount)
