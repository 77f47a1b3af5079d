"""Logins at the hub, browser by browser.

JupyterHub's own login cookie holds a number of the user that never changes, so that a copy of it
works after the logout. Ours names one login, which is kept here and ends with the logout, with a
new password, or with "Log out everywhere".
"""

from __future__ import annotations

import hashlib
import secrets
from datetime import UTC, datetime, timedelta
from typing import Any

from jupyterhub import orm
from jupyterhub.handlers import BaseHandler
from jupyterhub.handlers.login import LogoutHandler
from sqlalchemy import Column, DateTime, ForeignKey, Integer, String

KEPT_DAYS = 31  # longer than any cookie is taken
ENTERED = "mlp_entered_at"
"""Attribute of a handler that logs somebody in: when the password was entered elsewhere; None where it is not known."""
_BEGUN = "mlp_login_begun"


class Login(orm.Base):  # type: ignore[misc]  # jupyterhub is untyped
    """Login of one browser; only a digest of the cookie's value is stored."""

    __tablename__ = "mlp_logins"
    digest = Column(String(64), primary_key=True)
    user_id = Column(Integer, ForeignKey("users.id", ondelete="CASCADE"), nullable=False, index=True)
    begun = Column(DateTime, nullable=False, index=True)


def begin(db: Any, user_id: int) -> str:
    """Begin a login and return what its cookie is to hold."""
    now = datetime.now(UTC).replace(tzinfo=None)
    db.query(Login).filter(Login.begun < now - timedelta(days=KEPT_DAYS)).delete()
    value = secrets.token_urlsafe(32)
    db.add(Login(digest=digest(value), user_id=user_id, begun=now))
    db.commit()
    return value


def user_of(db: Any, value: str) -> Any:
    """Return the hub's record of the user whose login this is; None where it has ended or never was."""
    query = db.query(orm.User).join(Login, Login.user_id == orm.User.id)
    return query.filter(Login.digest == digest(value)).first()


def end(db: Any, value: str) -> None:
    """End one login."""
    db.query(Login).filter(Login.digest == digest(value)).delete()
    db.commit()


def end_all(db: Any, user_id: int) -> None:
    """End all logins of a user; the caller commits."""
    db.query(Login).filter(Login.user_id == user_id).delete()


def cookie_of(handler: Any) -> str:
    """Return what the hub's login cookie of a request holds; empty without one that is signed by us and young enough."""
    found = handler.get_secure_cookie(handler.hub.cookie_name, max_age_days=handler.cookie_max_age_days)
    return "" if found is None else str(found.decode("utf-8", "replace"))


def digest_of(handler: Any) -> str:
    """Return the digest of the login that a request has, or was given; empty where it has none."""
    held = getattr(handler, _BEGUN, "") or cookie_of(handler)
    return digest(held) if held else ""


def install() -> None:
    """Make all pages of this process use these cookies instead of JupyterHub's."""
    BaseHandler._set_user_cookie = _set_user_cookie  # noqa: SLF001 - the hub has no public way
    BaseHandler._user_for_cookie = _user_for_cookie  # noqa: SLF001
    clean_up = LogoutHandler._backend_logout_cleanup  # noqa: SLF001

    def ending(self: Any, name: str) -> None:
        held = cookie_of(self)
        clean_up(self, name)  # which has to know still who logs out
        end(self.db, held)

    LogoutHandler._backend_logout_cleanup = ending  # noqa: SLF001


def _set_user_cookie(self: Any, user: Any, server: Any) -> None:
    if before := cookie_of(self):  # whoever logged in here before
        end(self.db, before)
    value = begin(self.db, user.id)
    setattr(self, _BEGUN, value)
    self._set_cookie(server.cookie_name, value, encrypted=True, path=server.base_url)


def _user_for_cookie(self: Any, cookie_name: str, cookie_value: Any = None) -> Any:
    held = self.get_secure_cookie(cookie_name, cookie_value, max_age_days=self.cookie_max_age_days)
    user = None if held is None else self._user_from_orm(user_of(self.db, held.decode("utf-8", "replace")))
    if user is None:
        if self.get_cookie(cookie_name):
            self.log.warning("A login cookie that has ended or is not ours")
            self.clear_cookie(cookie_name, path=self.hub.base_url)
        return None
    if self._record_activity(user):
        self.db.commit()
    return user


def digest(value: str) -> str:
    """Return the stored digest of a cookie's value."""
    return hashlib.sha256(value.encode()).hexdigest()
