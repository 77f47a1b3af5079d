"""Which of the provider's sessions people's logins here are of, for notes of a logout that name a session.

Of each person the session that they are asked about by, and those of the browsers in which they are logged in.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from jupyterhub import orm
from sqlalchemy import Column, DateTime, ForeignKey, Integer, String, desc

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


def ensure_table(db: Any) -> None:
    """Make what is not there yet."""
    for table in (ProviderSession, ProviderBrowser):
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
    """Note by which session a browser logged in."""
    if not (login and session):
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
        db.delete(old)
    db.commit()


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
        db.delete(browser)
    db.commit()
    return len(found)
