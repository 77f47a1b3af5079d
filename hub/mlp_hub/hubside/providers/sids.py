"""The provider's sessions that people's logins here belong to: needed when one of the two ends.

Kept are the session by which the hub asks about a person, and for each of their browsers its session and its ID token.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from jupyterhub import orm
from jupyterhub.crypto import decrypt, encrypt
from sqlalchemy import Column, DateTime, ForeignKey, Integer, LargeBinary, String, desc

from mlp_hub.hubside.ending import end_browser

BROWSERS_MAX = 20
"""Safety: browsers of one person whose sessions are known; the oldest is forgotten first: bounds what is stored."""


class ProviderSession(orm.Base):  # type: ignore[misc]  # jupyterhub is untyped
    """The session that a person is asked about by; of a provider that names none there is no row."""

    __tablename__ = "mlp_provider_sessions"
    name = Column(String(128), primary_key=True)
    session = Column(String(255), nullable=False, index=True)


class ProviderBrowser(orm.Base):  # type: ignore[misc]
    """The session by which a browser logged in. `hub_session` is JupyterHub's name of that browser, which its tokens bear."""

    __tablename__ = "mlp_provider_browsers"
    login = Column(String(64), primary_key=True)
    user_id = Column(Integer, ForeignKey("users.id", ondelete="CASCADE"), nullable=False, index=True)
    session = Column(String(255), nullable=False, index=True)
    hub_session = Column(String(255), nullable=False)
    begun = Column(DateTime, nullable=False)


class ProviderIdToken(orm.Base):  # type: ignore[misc]
    """The ID token of one browser's login, encrypted with the hub's key: a logout shows it, so that the provider asks nothing."""

    __tablename__ = "mlp_provider_id_tokens"
    login = Column(String(64), primary_key=True)
    user_id = Column(Integer, ForeignKey("users.id", ondelete="CASCADE"), nullable=False, index=True)
    token = Column(LargeBinary, nullable=False)


def ensure_table(db: Any) -> None:
    """Make what is not there yet."""
    for table in (ProviderSession, ProviderBrowser, ProviderIdToken):
        table.__table__.create(db.bind, checkfirst=True)


def note(db: Any, name: str, session: str) -> None:
    """Note the session of somebody, in the place of the one before; the caller commits."""
    known = db.get(ProviderSession, name)
    if not session:
        if known is not None:
            db.delete(known)
    elif known is None:
        db.add(ProviderSession(name=name, session=session))
    elif known.session != session:
        known.session = session


def names_of(db: Any, session: str) -> list[str]:
    """Return whose session it is: nobody's, or one person's."""
    found = {row.name for row in db.query(ProviderSession.name).filter(ProviderSession.session == session)}
    browsers = db.query(orm.User.name).join(ProviderBrowser, ProviderBrowser.user_id == orm.User.id)
    return sorted(found | {row.name for row in browsers.filter(ProviderBrowser.session == session)})


def note_browser(db: Any, user_id: int, *, login: str, session: str, hub_session: str) -> None:
    """Note by which session a browser logged in; `session` is empty where the provider names none."""
    if not login:
        return
    now = datetime.now(UTC).replace(tzinfo=None)
    db.merge(
        ProviderBrowser(
            login=login, user_id=user_id, session=session, hub_session=hub_session or "", begun=now
        )
    )
    db.flush()
    mine = db.query(ProviderBrowser).filter(ProviderBrowser.user_id == user_id)
    newest_first = mine.order_by(desc(ProviderBrowser.begun), ProviderBrowser.login).all()
    for old in newest_first[BROWSERS_MAX:]:
        forget_browser(db, old.login)
    db.commit()


async def keep_id_token(db: Any, user_id: int, login: str, token: str) -> None:
    """Keep the ID token of a browser that `note_browser` has noted; of a provider without such tokens nothing is kept."""
    if login and token:
        held = await encrypt({"id_token": token})
        if db.get(ProviderBrowser, login) is not None:
            db.merge(ProviderIdToken(login=login, user_id=user_id, token=held))
            db.commit()


async def id_token_of(db: Any, login: str) -> str:
    """Return the ID token of a browser's login; empty where none is kept, or none that today's key opens."""
    found = db.get(ProviderIdToken, login) if login else None
    if found is None:
        return ""
    try:
        return str((await decrypt(found.token)).get("id_token") or "")
    except Exception:  # noqa: BLE001 - another key of the hub: the provider asks then, and the logout goes on
        return ""


def forget_browser(db: Any, login: str) -> None:
    """Forget one browser's login; the caller commits."""
    for table in (ProviderIdToken, ProviderBrowser):
        db.query(table).filter(table.login == login).delete()


def of_browser(db: Any, login: str) -> str:
    """Return the session of a browser's login; empty where none is known."""
    found = db.get(ProviderBrowser, login) if login else None
    return "" if found is None else str(found.session)


def end_browsers(db: Any, user: Any, session: str) -> int:
    """End what a person has open in the browsers that logged in by this session; return how many there were."""
    mine = db.query(ProviderBrowser).filter(ProviderBrowser.user_id == user.id)
    found = mine.filter(ProviderBrowser.session == session).all()
    for browser in found:
        end_browser(db, user, browser.login, browser.hub_session)
        forget_browser(db, browser.login)
    db.commit()
    return len(found)
