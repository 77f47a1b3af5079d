"""Changes of rights by the provider that the platform's service has not got yet, for the audit log.

They are stored with the change, so a kill of the hub loses none.
"""

from __future__ import annotations

from typing import Any

from jupyterhub import orm
from sqlalchemy import Boolean, Column, Integer, String


class UnreportedChange(orm.Base):  # type: ignore[misc]  # jupyterhub is untyped
    """Change of a person: the admin right, and the number of tokens that ended with the account; null: no change."""

    __tablename__ = "mlp_unreported"
    name = Column(String(128), primary_key=True)
    admin = Column(Boolean)
    tokens = Column(Integer)


def ensure_table(db: Any) -> None:
    """Make it where it is not there yet."""
    UnreportedChange.__table__.create(db.bind, checkfirst=True)


def note(db: Any, name: str, *, admin: bool | None = None, tokens: int | None = None) -> None:
    """Note a change; the caller commits, with the change."""
    row = db.get(UnreportedChange, name)
    if row is None:
        row = UnreportedChange(name=name)
        db.add(row)
    if admin is not None:
        row.admin = admin
    if tokens is not None:
        row.tokens = tokens


def all_of(db: Any) -> dict[str, dict[str, object]]:
    """Return what is not reported, by name."""
    found: dict[str, dict[str, object]] = {}
    for row in db.query(UnreportedChange):
        fields = {"admin": row.admin, "tokens": row.tokens}
        found[row.name] = {key: value for key, value in fields.items() if value is not None}
    return found


def forget(db: Any, name: str) -> None:
    """Forget what was reported of somebody."""
    db.query(UnreportedChange).filter(UnreportedChange.name == name).delete()
    db.commit()
