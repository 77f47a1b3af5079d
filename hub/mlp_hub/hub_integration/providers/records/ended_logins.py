"""Ended logins at the provider, and the way that they ended.

They are kept until the next login, over restarts of the hub.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from jupyterhub import orm
from sqlalchemy import Column, DateTime, String


class LoginEnd(orm.Base):  # type: ignore[misc]  # jupyterhub is untyped
    """End of a person's login; a person who is logged in has no row."""

    __tablename__ = "mlp_login_ends"
    name = Column(String(128), primary_key=True)
    why = Column(String(16), nullable=False)
    at = Column(DateTime, nullable=False)


def ensure_table(db: Any) -> None:
    """Make it where it is not there yet."""
    LoginEnd.__table__.create(db.bind, checkfirst=True)


def note(db: Any, name: str, why: str) -> bool:
    """Note an end, from the first time it was seen on, and return whether it is news; the caller commits."""
    known = db.get(LoginEnd, name)
    if known is None:
        db.add(LoginEnd(name=name, why=why, at=_now()))
    elif (
        why == "disabled" != known.why
    ):  # whose login ended may lose the account too; never the other way round
        known.why = why
    else:
        return False
    return True


def clear(db: Any, name: str) -> None:
    """Note that somebody is in again; the caller commits."""
    db.query(LoginEnd).filter(LoginEnd.name == name).delete()


def of(db: Any, why: str) -> set[str]:
    """Return whose login ended like this."""
    return {row.name for row in db.query(LoginEnd.name).filter(LoginEnd.why == why)}


def over(db: Any, unseen_s: float) -> set[str]:
    """Return users who are not let in until the next login: without an account, or with a login long over.

    `unseen_s` is the limit of the latter.
    """
    long_ago = _now() - timedelta(seconds=unseen_s)
    query = db.query(LoginEnd.name).filter((LoginEnd.why == "disabled") | (LoginEnd.at <= long_ago))
    return {row.name for row in query}


def has(db: Any, name: str) -> bool:
    """Whether somebody's login ended at all."""
    return db.get(LoginEnd, name) is not None


def is_over(db: Any, name: str, unseen_s: float) -> bool:
    """Say it of one."""
    known = db.get(LoginEnd, name)
    return known is not None and (known.why == "disabled" or known.at <= _now() - timedelta(seconds=unseen_s))


def _now() -> datetime:
    return datetime.now(UTC).replace(tzinfo=None)
