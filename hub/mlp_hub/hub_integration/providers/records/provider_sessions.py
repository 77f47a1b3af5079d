"""The provider's sessions that people's logins here belong to: needed when one of the two ends.

Kept are the session by which the hub asks about a person, and for each of their browsers its session and its tokens.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from jupyterhub import orm
from jupyterhub.crypto import decrypt, encrypt
from sqlalchemy import Column, DateTime, ForeignKey, Integer, LargeBinary, String, desc, select

from mlp_hub.hub_integration.accounts import logins
from mlp_hub.hub_integration.accounts.ending import end_browser
from mlp_hub.hub_integration.providers.protocols.provider import AuthState

BROWSERS_MAX = 20
"""Safety: browsers of one person whose sessions are known; the oldest is forgotten first: bounds what is stored."""


class ProviderSession(orm.Base):  # type: ignore[misc]  # jupyterhub is untyped
    """Session that a person is asked about by; with a provider that names none, the person has no row."""

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


class ProviderLogin(orm.Base):  # type: ignore[misc]
    """Tokens that the provider gave at one browser's login, encrypted with the hub's key.

    A logout shows its ID token, so that the provider asks nothing. The other tokens are for the end of
    the session that the person is asked about by. Then these tokens are used instead. They are useless
    once the browser is logged out here.
    """

    # ID tokens were all that it held once. The hub's database is JupyterHub's, whose revisions are not ours: its tables are
    # made where they are missing and never altered, and under another name those who are in would be forgotten
    __tablename__ = "mlp_provider_id_tokens"
    login = Column(String(64), primary_key=True)
    user_id = Column(Integer, ForeignKey("users.id", ondelete="CASCADE"), nullable=False, index=True)
    token = Column(LargeBinary, nullable=False)


def ensure_table(db: Any) -> None:
    """Make what is not there yet."""
    for table in (ProviderSession, ProviderBrowser, ProviderLogin):
        table.__table__.create(db.bind, checkfirst=True)


def note(db: Any, name: str, session: str) -> None:
    """Store the session of a person instead of the one before; the caller commits."""
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
        forget_browsers(db, login=old.login)
    _forget_tokens_of_ended(db, user_id)
    db.commit()


async def keep_login(db: Any, user_id: int, login: str, state: AuthState) -> None:
    """Keep what the provider gave to a browser that `note_browser` has noted, and that is not logged out here."""
    if login and state:
        held = await encrypt(dict(state))
        if all(db.get(table, login) is not None for table in (ProviderBrowser, logins.Login)):
            db.merge(ProviderLogin(login=login, user_id=user_id, token=held))
            db.commit()


async def renew_logins(db: Any, user_id: int, state: AuthState) -> None:
    """Replace tokens by renewed ones for the browsers of their session; forget those of browsers that are out."""
    session = str(state.get("session") or "")
    held = await encrypt(dict(state)) if session else b""
    _forget_tokens_of_ended(db, user_id)
    if session:
        for browser in _going_on(db, user_id).filter(ProviderBrowser.session == session).all():
            db.merge(ProviderLogin(login=browser.login, user_id=user_id, token=held))
    db.commit()


def _going_on(db: Any, user_id: int) -> Any:
    """Return a query of a person's browsers that are not logged out here."""
    mine = db.query(ProviderBrowser).filter(ProviderBrowser.user_id == user_id)
    return mine.join(logins.Login, logins.Login.digest == ProviderBrowser.login)


async def login_of(db: Any, login: str) -> AuthState:
    """Return what is kept of a browser's login; empty where nothing is, or nothing that today's key opens."""
    found = db.get(ProviderLogin, login) if login else None
    if found is None:
        return {}
    try:
        return dict(await decrypt(found.token))
    except Exception:  # noqa: BLE001 - another key of the hub: the provider asks then, and the logout goes on
        return {}


async def newest_login(db: Any, user_id: int) -> AuthState:
    """Return the stored data of a person's last login that continues and names its session; empty without."""
    named = _going_on(db, user_id).filter(ProviderBrowser.session != "")
    for browser in named.order_by(desc(ProviderBrowser.begun), ProviderBrowser.login).all():
        if (state := await login_of(db, browser.login)).get("session") == browser.session:
            return state
    return {}


def forget_browsers(db: Any, *, login: str | None = None, user_id: int | None = None) -> None:
    """Forget what is kept of one browser (`login`), or of all browsers of a person (`user_id`); the caller commits."""
    if (login is None) == (user_id is None):
        raise ValueError("give either a login or a user's id; without both, everybody's would go")
    for table in (ProviderLogin, ProviderBrowser):
        mine: Any = table.user_id == user_id if login is None else table.login == login
        db.query(table).filter(mine).delete()


def _forget_tokens_of_ended(db: Any, user_id: int) -> None:
    """Forget the tokens of a person's logins that have ended here in whatever way; the caller commits."""
    going_on: Any = select(logins.Login.digest).where(logins.Login.user_id == user_id)
    mine = db.query(ProviderLogin).filter(ProviderLogin.user_id == user_id)
    mine.filter(ProviderLogin.login.not_in(going_on)).delete()


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
        forget_browsers(db, login=browser.login)
    db.commit()
    return len(found)
