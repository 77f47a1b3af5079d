"""Visits of browsers to apps: a code that works once, and the cookie of the app's origin that it gives.

A visit is worth as much as the session that began it. Each check of a visit also checks that
session, so a logout ends all visits. A row has the hash of the code or cookie, and the session's id
masked with a key made from it. A code is bound to the browser that asked for it. Its hash is made
with the digest of a secret that this browser has at the app's origin (`way`). Without both, a
request writes nothing.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable

from mlp_hub.api.auth.sessions import BrowserSession, Sessions, mask
from mlp_hub.domain.apps.app_gate import AppVisit
from mlp_hub.store.database import Database
from mlp_hub.store.tx import Tx

CODE_S = 60.0
"""Safety: seconds that a code is good: bounds the harm of an address that somebody else reads."""


class AppVisits:
    """All visits of a database; the platform's sweep removes those that are over.

    A browser may use an app for `visit_s` seconds before it is led past the hub again, which bounds the harm of a lost cookie.
    """

    def __init__(self, db: Database, sessions: Sessions, clock: Callable[[], float], visit_s: float) -> None:
        self._visit_s = visit_s
        self._db = db
        self._sessions = sessions
        self._clock = clock

    async def begin(self, app: str, session: str, way: str) -> str:
        """Return a code for the browser of a session, with which it enters an app; on disk before it is returned."""
        code = secrets.token_urlsafe(32)
        visit = AppVisit(app, True, mask(code, session.encode()), self._clock() + CODE_S)
        await self._db.write(lambda tx: tx.app_gate.add_visit(_name(code, way), visit))
        return code

    async def enter(self, app: str, code: str, way: str) -> tuple[str, float] | None:
        """Exchange a code for a cookie and the number of seconds that it lasts.

        Return None where the code is used, too old, or of another app or browser.
        """
        cookie = secrets.token_urlsafe(32)
        now, name = self._clock(), _name(code, way)
        if await self._db.read(lambda tx: tx.app_gate.visit(name, is_code=True)) is None:
            return None

        def work(tx: Tx) -> bool:
            found = tx.app_gate.visit(name, is_code=True)
            if found is None or not tx.app_gate.drop_visit(name):
                return False
            if found.app != app or found.expires_at <= now:
                return False  # it is used up nevertheless
            session = mask(code, found.masked)
            tx.app_gate.add_visit(
                _name(cookie), AppVisit(app, False, mask(cookie, session), now + self._visit_s)
            )
            return True

        return (cookie, self._visit_s) if await self._db.write(work) else None

    async def session(self, app: str, cookie: str) -> BrowserSession | None:
        """Return the session that a cookie of this app's origin stands for; None where it is none, or over."""
        found = await self._db.read(lambda tx: tx.app_gate.visit(_name(cookie), is_code=False))
        if found is None or found.app != app or found.expires_at <= self._clock():
            return None
        return await self._sessions.get(mask(cookie, found.masked).decode())


def _name(secret: str, way: str = "") -> str:
    return hashlib.sha256(f"visit:{way and way + ':'}{secret}".encode()).hexdigest()
