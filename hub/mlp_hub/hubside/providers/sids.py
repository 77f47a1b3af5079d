"""Which of the provider's sessions a person's last login here is of, for notes of a logout that name nobody."""

from __future__ import annotations

from typing import Any

from jupyterhub import orm
from sqlalchemy import Column, String


class ProviderSession(orm.Base):  # type: ignore[misc]  # jupyterhub is untyped
    """The session of a person; of a provider that names none there is no row."""

    __tablename__ = "mlp_provider_sessions"
    name = Column(String(128), primary_key=True)
    session = Column(String(255), nullable=False, index=True)


def ensure_table(db: Any) -> None:
    """Make it where it is not there yet."""
    ProviderSession.__table__.create(db.bind, checkfirst=True)


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
    return [row.name for row in db.query(ProviderSession.name).filter(ProviderSession.session == session)]
