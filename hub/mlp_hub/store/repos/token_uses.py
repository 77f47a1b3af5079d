"""From where tokens were used last."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import delete, select

from mlp_hub.store.repos.base import Repo
from mlp_hub.store.tables import token_use as t


class TokenUsesRepo(Repo):
    """Addresses by the hub's ids of tokens; the tokens themselves are not here."""

    __slots__ = ()

    def set(self, token: str, user: str, address: str, at: float) -> None:
        """Store from where a token is used."""
        self._c.execute(delete(t).where(t.c.token == token))
        self._c.execute(t.insert(), {"token": token, "user": user, "address": address, "at": at})

    def uses_of(self, user: str, tokens: Collection[str] | None = None) -> dict[str, tuple[str, float]]:
        """Return address and time of those of a user's tokens, or of these of them, that were used."""
        wanted = None if tokens is None else frozenset(tokens)
        rows = self._c.execute(select(t).where(t.c.user == user))
        return {r.token: (r.address, r.at) for r in rows if wanted is None or r.token in wanted}

    def delete_before(self, before: float) -> int:
        """Forget what is older; return how many rows."""
        return int(self._c.execute(delete(t).where(t.c.at < before)).rowcount)
