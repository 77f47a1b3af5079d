"""Credentials by their SHA-256 or the hub's ids: sessions of browsers, and from where tokens were used. None can be read here."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import select

from mlp_hub.store.records import StoredSession
from mlp_hub.store.repos.base import KeyedRepo, Repo
from mlp_hub.store.rows import Rows
from mlp_hub.store.tables import browser_session as t
from mlp_hub.store.tables import token_use as u


class BrowserSessions(KeyedRepo[StoredSession]):
    """Sessions by the SHA-256 (hex) of their cookie, also those that are over; neither cookie nor token can be read here."""

    __slots__ = ()
    rows = Rows(StoredSession, t, beside=("sha256",))

    def add(self, sha256: str, session: StoredSession) -> None:
        """Store a new session."""
        self._insert_row(self.rows, session, sha256=sha256)

    def delete_expired(self, now: float) -> int:
        """Delete the sessions that are over; return their number."""
        return self._delete(t, t.c.expires_at <= now)


class TokenUsesRepo(Repo):
    """Addresses by the hub's ids of tokens; the tokens themselves are not here."""

    __slots__ = ()

    def set(self, token: str, user: str, address: str, at: float) -> None:
        """Store from where a token is used."""
        row = {"token": token, "user": user, "address": address, "at": at}
        self._c.execute(self._upsert(u, ("token",)), row)

    def uses_of(self, user: str, tokens: Collection[str] | None = None) -> dict[str, tuple[str, float]]:
        """Return address and time of those of a user's tokens, or of these of them, that were used."""
        wanted = None if tokens is None else frozenset(tokens)
        rows = self._c.execute(select(u).where(u.c.user == user))
        return {r.token: (r.address, r.at) for r in rows if wanted is None or r.token in wanted}

    def delete_before(self, before: float) -> int:
        """Delete older ones; return how many rows."""
        return self._delete(u, u.c.at < before)
